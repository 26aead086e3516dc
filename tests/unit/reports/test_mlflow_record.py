"""What MLflow is told, without MLflow."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest
import yaml

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.summary import SuiteInfo, Summary, summarise
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.reports.mlflow_log import MlflowPlan, shown_uri, uri_of, what_is_missing
from pytest_agent_eval.reports.mlflow_record import MAX_FILE, MlflowRecord, record_of
from pytest_agent_eval.results import TrialResult, Usage, Verdict

HEADER = {
    "git": {"commit": "abc", "dirty": False},
    "versions": {"python": "3.12.1", "pytest-agent-eval": "0.1"},
}


def trial(case: str, good: bool, grade: float | None, **more: Any) -> TrialResult:
    verdicts = (
        Verdict("tone?", good, "because", passed=good),
        Verdict("grade", grade, skipped=grade is None),
    )
    more = {
        "split": "dev",
        "status": "passed" if good else "failed",
        "execution": Verdict("execution", True, passed=True),
        "usage": Usage(cost_usd=0.5, input_tokens=7, model="m-1"),
        **more,
    }
    return TrialResult("evals/eval.yaml", case, verdicts=verdicts, **more)


def finished(*results: TrialResult, **more: Any) -> FinishedRun:
    halves = {half: sum(r.split == half for r in results) for half in ("dev", "holdout")}
    info = SuiteInfo(
        "evals/eval.yaml",
        "support",
        file="evals/eval.yaml",
        digest="d1",
        judges=(JudgeInfo("tone?", "check"), JudgeInfo("tone!", "check"), JudgeInfo("grade")),
        thresholds={"tone?": {"min_pass_rate": 0.9}},
        total=halves,
        selected=halves,
        runner="cli",
        model="m",
    )
    return FinishedRun("run-1", None, HEADER, summarise([replace(info, **more)], results))


def record(run: FinishedRun, **tags: Any) -> MlflowRecord:
    return record_of(run, run.summary.suites[0], tags)


def test_what_is_logged_of_a_suite() -> None:
    found = record(
        finished(
            trial("a", True, 4.0, reward=0.5),
            trial("b", False, None, reward_reason="judge grade was skipped"),
            trial("c", True, 2.0, reward=1.0, split="holdout"),
        ),
        team="search",
        since=2026,
    )
    assert (found.name, found.status) == ("run-1", "FINISHED")
    assert found.parameters == {
        "suite": "support",
        "suite_file": "evals/eval.yaml",
        "suite_digest": "d1",
        "runner": "cli",
        "model": "m",
        "models_used": "m-1",
        "split": "all",
        "pass": "all",
        "git_commit": "abc",
        "git_dirty": "False",
        "python": "3.12.1",
        "pytest_agent_eval": "0.1",
    }
    metrics = found.metrics
    assert metrics["judge/tone_/all/pass_rate"] == pytest.approx(2 / 3)
    low, high = (metrics[f"judge/tone_/all/pass_rate_{end}"] for end in ("low", "high"))
    assert low < 2 / 3 < high
    assert metrics["judge/tone_/holdout/pass_rate"] == 1.0
    assert metrics["judge/tone_/all/errors_2"] == 0, "of the judge whose name looks alike"
    assert metrics["judge/grade/all/mean"] == 3.0
    assert metrics["reward/all/mean"] == 0.75
    assert metrics["reward/dev/scored_cases"] == 1
    assert (metrics["gate/tone_/min_pass_rate"], metrics["gates_missed"]) == (0, 1)
    assert (metrics["cases/passed"], metrics["cases/failed"]) == (2, 1)
    assert (metrics["cost_usd"], metrics["input_tokens"], metrics["trials"]) == (1.5, 21, 3)
    assert "output_tokens" not in metrics, "unknown is not zero"
    assert found.tags == {
        "team": "search",
        "since": "2026",
        "agent_eval.run_id": "run-1",
        "agent_eval.suite": "evals/eval.yaml",
        "agent_eval.outcome": "gates missed",
        "mlflow.loggedArtifacts": '[{"path": "cases.json", "type": "table"}]',
    }
    assert yaml.safe_load(found.files["summary.yaml"])["suite"] == "support"
    stored = [json.loads(line) for line in found.files["results.jsonl"].splitlines()]
    assert [line["case"] for line in stored] == ["a", "b", "c"]
    table = json.loads(found.files["cases.json"])
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    assert [row["tone?"] for row in rows] == [True, False, True]
    assert [row["grade"] for row in rows] == [4.0, "skipped", 2.0]
    assert rows[0]["tone?.rationale"] == "because"


def test_only_cases_of_the_summary_are_logged_and_only_files_of_some_size() -> None:
    run = finished(trial("a", True, 1.0), trial("secret", True, 1.0, split="holdout"))
    suite = run.summary.suites[0]
    sealed = replace(suite, cases=suite.cases[:1])
    found = record_of(replace(run, summary=Summary((sealed,))), sealed, {})
    assert not [name for name, text in found.files.items() if "secret" in text]

    large = record(finished(trial("a", True, 1.0, reason="x" * (MAX_FILE + 1))))
    assert large.tags["agent_eval.left_out"] == "cases.json, results.jsonl, summary.yaml"
    assert not large.files
    assert "mlflow.loggedArtifacts" not in large.tags


def test_a_variant_and_a_session_that_was_cut_short() -> None:
    run = finished(trial("a", True, 1.0, variant="big"), variant="big")
    found = record(replace(run, summary=replace(run.summary, interrupted=True)))
    assert (found.name, found.status) == ("run-1 [big]", "KILLED")
    assert found.parameters["variant"] == found.tags["agent_eval.variant"] == "big"
    assert found.tags["agent_eval.outcome"] == "incomplete"


def test_where_it_goes_and_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = MlflowPlan("s", None, "e")
    assert uri_of(plan, {}) == "http://127.0.0.1:5000"
    assert uri_of(plan, {"MLFLOW_TRACKING_URI": "http://x"}) == "http://x"
    own = replace(plan, tracking_uri="sqlite:///a.db")
    assert uri_of(own, {"MLFLOW_TRACKING_URI": "http://x"}) == "sqlite:///a.db"
    assert MlflowPlan(**own.to_dict()) == own
    assert shown_uri("http://me:secret@host:1/a?b") == "http://host:1/a?b"
    assert shown_uri("sqlite:////tmp/a@b.db") == "sqlite:////tmp/a@b.db"
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert "pip install 'pytest-agent-eval[mlflow]'" in what_is_missing(own, {})
