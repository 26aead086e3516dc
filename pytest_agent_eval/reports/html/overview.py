"""What the first view shows: verdict, judges with their intervals, gates, claims, comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agent_eval.evidence.aggregate import Aggregate
from pytest_agent_eval.evidence.calibration import Calibration
from pytest_agent_eval.evidence.comparison import Comparison
from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.intervals import Interval
from pytest_agent_eval.evidence.summary import SuiteSummary, titles
from pytest_agent_eval.reports.calibration import calibration_text
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.reports.numbers import count, money, seconds, tokens
from pytest_agent_eval.reports.printable import one_line
from pytest_agent_eval.reports.terminal import gate_text, usage_text

__all__ = ["overview"]

_ORDER = ("worse", "better", "no difference shown", "not compared")


def overview(run: FinishedRun) -> dict[str, Any]:
    """``{verdict, good, id, facts, notes, suites}`` as JSON types."""
    names = titles(suite.info for suite in run.summary.suites)
    return {
        "verdict": _verdict(run),
        "good": not run.summary.missed and not _bad(run) and run.summary.complete,
        "id": run.run_id,
        "facts": [*_facts(run)],
        "baseline": "" if run.baseline is None else run.baseline.path.name,
        "notes": [*run.notes],
        "suites": [
            _suite(suite, names[suite.info.key, suite.info.variant]) for suite in run.summary.suites
        ],
    }


def _bad(run: FinishedRun) -> int:
    return sum(s.statuses.get(w, 0) for s in run.summary.suites for w in ("failed", "error"))


def _verdict(run: FinishedRun) -> str:
    missed = len(run.summary.missed)
    parts = [f"{count(bad, 'case')} did not pass"] if (bad := _bad(run)) else []
    parts += [f"{count(missed, 'gate')} missed"] if missed else []
    if not run.summary.complete:
        parts.append("incomplete")
    return ", ".join(parts) or "passed"


def _facts(run: FinishedRun) -> Iterator[tuple[str, str]]:
    header = run.header
    for name in ("started", "ended"):
        if isinstance(header.get(name), str):
            yield name, header[name]
    git = header.get("git")
    if isinstance(git, Mapping) and git.get("commit"):
        yield "commit", f"{git['commit']}{', with changes' if git.get('dirty') else ''}"
    if header.get("rescored_from"):
        yield "judged again", str(header["rescored_from"])
    sessions = header.get("sessions")
    if isinstance(sessions, list) and len(sessions) > 1:
        yield "sessions", str(len(sessions))
    for name in ("options", "versions"):
        pairs = header.get(name)
        if isinstance(pairs, Mapping):
            text = ", ".join(f"{key} {value}" for key, value in pairs.items() if value is not None)
            if text:
                yield name, text


def _suite(suite: SuiteSummary, title: str) -> dict[str, Any]:
    info = suite.info
    return {
        "title": title,
        "name": info.name,
        "variant": info.variant,
        "file": info.file or info.key,
        "key": info.key,
        "statuses": dict(suite.statuses),
        "coverage": [
            [half, *(counts.get(half, 0) for counts in _coverage(suite))]
            for half in ("dev", "holdout")
        ],
        "complete": suite.complete,
        "usage": [*_usage(suite)],
        "usage_text": usage_text(suite),
        "judges": [
            {
                "name": judge.name,
                "kind": judge.kind,
                "range": list(judge.score_range) if judge.score_range else None,
                "unvalidated": judge.name in suite.unvalidated,
            }
            for judge in info.judges
        ],
        "aggregates": [_aggregate(found) for found in suite.aggregates if found.cases],
        "gates": [_gate(gate) for gate in suite.gates],
        "claims": list(suite.claims),
        "calibrations": [_calibration(found) for found in suite.calibrations],
        "comparisons": sorted(
            map(_comparison, suite.comparisons),
            key=lambda one: _ORDER.index(one["outcome"]),
        ),
        "changes": list(suite.changes),
        "sealed": _sealed(suite),
    }


def _coverage(suite: SuiteSummary) -> tuple[Mapping[str, int], ...]:
    return suite.coverage.total, suite.coverage.selected, suite.coverage.finished


def _sealed(suite: SuiteSummary) -> int:
    """Holdout cases that have a result and are shown as aggregates only."""
    if not suite.info.sealed:
        return 0
    shown = sum(case.split == "holdout" for case in suite.cases)
    return max(suite.coverage.finished.get("holdout", 0) - shown, 0)


def _usage(suite: SuiteSummary) -> Iterator[tuple[str, str]]:
    totals = suite.totals
    cost = "unknown" if totals.cost_usd is None else money(totals.cost_usd)
    if totals.cost_usd is not None and totals.unknown_costs:
        cost += f" + {totals.unknown_costs} unknown"
    yield "cost", cost
    if totals.input_tokens is not None or totals.output_tokens is not None:
        yield "tokens in", tokens(totals.input_tokens or 0)
        yield "tokens out", tokens(totals.output_tokens or 0)
    yield "agent time", seconds(totals.duration_s)
    yield "judging", seconds(totals.judging_s)
    if totals.judge_calls:
        cost = "cost unknown" if totals.judge_cost_usd is None else money(totals.judge_cost_usd)
        recorded = f", {totals.judge_recorded:,} recorded" if totals.judge_recorded else ""
        yield "judges' model calls", f"{totals.judge_calls:,}{recorded}, {cost}"


def _interval(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def _aggregate(found: Aggregate) -> dict[str, Any]:
    return {
        "judge": found.judge,
        "split": found.split,
        "kind": found.kind,
        "value": found.value,
        "interval": _interval(found.interval),
        "method": _method(found.interval),
        "why": found.no_interval,
        "cases": found.cases,
        "scored": found.scored,
        "passed": found.passed,
        "skipped": found.skipped,
        "errored": found.errored,
        "clusters": found.clusters,
        "trials": found.trials,
        "at_k": found.pass_at_k,
        "hat_k": found.pass_hat_k,
        "flaky": found.flaky,
        "wins": [found.wins, found.losses, found.ties] if found.kind == "wins" else None,
    }


def _method(found: Interval | None) -> str:
    return "" if found is None else f"{100 * found.confidence:g} % {found.method}"


def _gate(gate: Gate) -> dict[str, Any]:
    text = gate_text(gate).removeprefix("GATE ").removesuffix(f" -> {gate.outcome}")
    start = len(one_line(gate.name))
    head, _, said = text[start:].partition(": ")
    return {
        "judge": gate.judge,
        "key": gate.key,
        "bound": gate.bound,
        "split": gate.split or "all",
        "part": gate.part,
        "head": text[:start] + head,
        "said": said,
        "outcome": gate.outcome,
        "unvalidated": gate.unvalidated,
    }


def _calibration(found: Calibration) -> dict[str, Any]:
    return {
        "judge": found.judge,
        "validated": found.validated,
        "text": calibration_text(found, 1),
        "differ": list(found.disagreeing[:200]),
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "judge": found.judge,
        "split": found.split,
        "kind": found.kind,
        "outcome": found.outcome,
        "pairs": found.pairs,
        "new": found.new,
        "old": found.old,
        "difference": found.difference,
        "interval": _interval(found.interval),
        "method": _method(found.interval),
        "why": found.no_interval,
        "p": found.p,
        "p_adjusted": found.p_adjusted,
        "smallest": found.smallest,
        "improved": list(found.improved),
        "regressed": list(found.regressed),
        "only_new": list(found.only_new),
        "only_old": list(found.only_old),
        "unvalidated": found.unvalidated,
    }
