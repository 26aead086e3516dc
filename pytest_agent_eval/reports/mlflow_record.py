"""What MLflow is told of a suite's results: parameters, metrics, tags, files. Pure, without MLflow.

The names are those of docs/mlflow.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agent_eval.evidence.aggregate import Aggregate
from pytest_agent_eval.evidence.summary import SuiteSummary
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.reports.printable import one_line, shortened
from pytest_agent_eval.results import TrialResult, Verdict
from pytest_agent_eval.runs.lines import encode_line, sanitised
from pytest_agent_eval.runs.yaml_text import dump_yaml

__all__ = ["MlflowRecord", "record_of"]

MAX_PARAMETER = 500
MAX_TAG = 5000
MAX_RATIONALE = 1000
MAX_FILE = 20 * 2**20
"""Bytes of one file; a larger one is left out, and a tag says so."""
TABLE = "cases.json"
_FORBIDDEN = re.compile(r"[^\w\-. ]", re.ASCII)
_COLUMNS = (
    "case",
    "variant",
    "trial",
    "split",
    "group",
    "category",
    "status",
    "kind",
    "reason",
    "reward",
)


@dataclass(frozen=True)
class MlflowRecord:
    """One MLflow run.

    Attributes:
        name: of the run.
        status: ``FINISHED``; ``KILLED`` where the session ended before its last case.
        parameters, tags: name -> text.
        metrics: name -> finite number; what is unknown is left out.
        files: name of an artifact -> its text.
    """

    name: str
    status: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    files: Mapping[str, str] = field(repr=False)


def record_of(run: FinishedRun, suite: SuiteSummary, tags: Mapping[str, Any]) -> MlflowRecord:
    """The MLflow run of a suite, or of one of its variants.

    Args:
        run: that has ended.
        suite: one of its summary.
        tags: of the suite's block ``mlflow``.
    """
    info = suite.info
    files = dict(_files(run, suite))
    large = sorted(name for name, text in files.items() if len(text.encode()) > MAX_FILE)
    own = {
        "agent_eval.run_id": run.run_id,
        "agent_eval.suite": info.key,
        "agent_eval.variant": info.variant or "",
        "agent_eval.outcome": _outcome(suite, run.summary.interrupted),
        "agent_eval.left_out": ", ".join(large),
    }
    if TABLE not in large:  # by this tag MLflow's pages show the file as a table
        own["mlflow.loggedArtifacts"] = json.dumps([{"path": TABLE, "type": "table"}])
    said = {str(name): str(value) for name, value in tags.items()}
    return MlflowRecord(
        name=f"{run.run_id} [{info.variant}]" if info.variant else run.run_id,
        status="KILLED" if run.summary.interrupted else "FINISHED",
        parameters={
            name: one_line(str(value), MAX_PARAMETER)
            for name, value in _parameters(run, suite).items()
            if value not in (None, "")
        },
        metrics=_unique(_metrics(suite)),
        tags={name: text[:MAX_TAG] for name, text in {**said, **own}.items() if text},
        files={name: text for name, text in files.items() if name not in large},
    )


def _outcome(suite: SuiteSummary, interrupted: bool) -> str:
    if any(gate.outcome == "missed" for gate in suite.gates):
        return "gates missed"
    if suite.statuses.get("failed") or suite.statuses.get("error"):
        return "cases failed"
    return "passed" if suite.complete and not interrupted else "incomplete"


def _parameters(run: FinishedRun, suite: SuiteSummary) -> dict[str, Any]:
    info, header = suite.info, run.header
    git = header.get("git") if isinstance(header.get("git"), Mapping) else {}
    versions = header.get("versions") if isinstance(header.get("versions"), Mapping) else {}
    answered = {
        trial.usage.model for case in suite.cases for trial in case.trials if trial.usage.model
    }
    return {
        "suite": info.name,
        "suite_file": info.file,
        "suite_digest": info.digest,
        "variant": info.variant,
        "runner": info.runner,
        "model": info.model,
        "models_used": ", ".join(sorted(answered)),
        "split": info.half or "all",
        "pass": info.pass_rule,
        "baseline": info.baseline,
        "git_commit": git.get("commit") if git else None,
        "git_dirty": git.get("dirty") if git else None,
        "python": versions.get("python") if versions else None,
        "pytest_agent_eval": versions.get("pytest-agent-eval") if versions else None,
    }


def _metrics(suite: SuiteSummary) -> Iterator[tuple[str, float | int | None]]:
    for found in suite.aggregates:
        yield from _aggregate(f"judge/{_name(found.judge)}/{found.split}", found)
        yield f"judge/{_name(found.judge)}/{found.split}/errors", found.errored
    for found in suite.rewards:
        yield from _aggregate(f"reward/{found.split}", found)
    for gate in suite.gates:
        decided = {"passed": 1, "missed": 0}.get(gate.outcome)
        part = f" {gate.part}" if gate.part else ""
        yield f"gate/{_name(gate.judge + part)}/{gate.key}", decided
    yield "gates_missed", sum(gate.outcome == "missed" for gate in suite.gates)
    for status, number in suite.statuses.items():
        yield f"cases/{status}", number
    totals = suite.totals
    for name in (
        *("trials", "cost_usd", "unknown_costs", "input_tokens", "output_tokens"),
        *("cache_read_tokens", "num_turns", "duration_s", "judging_s"),
        *("judge_calls", "judge_cost_usd"),
    ):
        yield name, getattr(totals, name)


def _aggregate(place: str, found: Aggregate) -> Iterator[tuple[str, float | int | None]]:
    what = {"rate": "pass_rate", "wins": "win_rate"}.get(found.kind, "mean")
    yield f"{place}/{what}", found.value
    if found.interval is not None:
        yield f"{place}/{what}_low", found.interval.low
        yield f"{place}/{what}_high", found.interval.high
    yield f"{place}/scored_cases", found.scored


def _unique(pairs: Iterator[tuple[str, float | int | None]]) -> dict[str, float]:
    """Metrics by name; two names that look alike to MLflow are kept apart by a number."""
    found: dict[str, float] = {}
    for name, value in pairs:
        if value is None or not math.isfinite(value):
            continue
        number, free = 1, name
        while free in found:
            number += 1
            free = f"{name}_{number}"
        found[free] = float(value)
    return found


def _name(judge: str) -> str:
    """As a part of a metric's name, in which MLflow allows some characters only."""
    return _FORBIDDEN.sub("_", judge)[:100] or "_"


def _files(run: FinishedRun, suite: SuiteSummary) -> Iterator[tuple[str, str]]:
    trials = [trial for case in suite.cases for trial in case.trials]
    head = {"run_id": run.run_id}
    yield "summary.yaml", dump_yaml({**head, **suite.to_yaml_dict()}).decode()
    yield "results.jsonl", "".join(encode_line(trial).decode() for trial in trials)
    yield TABLE, json.dumps(sanitised(_table(suite, trials)), allow_nan=False)


def _table(suite: SuiteSummary, trials: list[TrialResult]) -> dict[str, Any]:
    """One row a trial, two columns a judge, in the form of MLflow's own tables."""
    judges = [judge.name for judge in suite.info.judges]
    usage = ("cost_usd", "input_tokens", "output_tokens")
    columns = [*_COLUMNS, *usage, "duration_s"]
    heads = [head for judge in judges for head in (judge, f"{judge}.rationale")]
    rows = []
    for trial in trials:
        verdicts = {verdict.judge: verdict for verdict in trial.verdicts}
        said = [cell for judge in judges for cell in _cells(verdicts.get(judge))]
        facts = [getattr(trial, name) for name in _COLUMNS]
        spent = [getattr(trial.usage, name) for name in usage]
        rows.append([*facts, *spent, trial.duration_s, *said])
    return {"columns": [*columns, *heads], "data": rows}


def _cells(verdict: Verdict | None) -> tuple[Any, str]:
    if verdict is None:
        return None, ""
    value = verdict.value
    if value is None:
        value = "error" if verdict.error else "skipped"  # type: ignore[assignment]
    return value, shortened(verdict.error or verdict.rationale, MAX_RATIONALE)
