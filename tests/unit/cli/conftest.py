from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.cli import main
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.results import TrialResult, Usage, Verdict
from pytest_agent_eval.runs.writer import RunWriter

HEADER = {"v": 1, "suites": [], "options": {"split": "dev"}, "git": {"commit": "c0ffee"}}
WORKED = Verdict("execution", True, passed=True)
INFO = SuiteInfo("evals/eval.yaml", "greetings", file="evals/eval.yaml")

Command = Callable[..., tuple[int, str, str]]


def trial(case: str = "a", *, value: bool = True, **more: Any) -> TrialResult:
    verdict = Verdict("polite", value, "as it should be" if value else "rude", passed=value)
    return TrialResult(
        "evals/eval.yaml",
        case,
        **{
            "split": "dev",
            "status": "passed" if value else "failed",
            "kind": "" if value else "verdict",
            "reason": "" if value else "1 of 1 judges failed: polite",
            "execution": WORKED,
            "verdicts": (verdict,),
            "exit_code": 0,
            "duration_s": 1.5,
            "usage": Usage(cost_usd=0.25, input_tokens=1200, output_tokens=30),
            **more,
        },
    )


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of runs below the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path / ".agent-eval" / "runs"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run agent-eval; its exit status, output and errors."""

    def command(*words: str) -> tuple[int, str, str]:
        status = main(words)
        said = capsys.readouterr()
        return status, said.out, said.err

    return command


def store(runs: Path, *results: TrialResult, name: str = "", **header: Any) -> RunWriter:
    """An open run with these results, each with a record."""
    writer = RunWriter.create(runs, {**HEADER, **header}, name=name)
    for result in results:
        writer.append(result)
    return writer


def close(writer: RunWriter, *results: TrialResult, complete: bool = True, status: int = 0) -> None:
    """Close a run as a session does."""
    thresholds = {"polite": {"min_pass_rate": 0.9}}
    info = SuiteInfo(INFO.key, INFO.name, file=INFO.file, thresholds=thresholds)
    summary = summarise([info], results, gate_mode="always")
    suites = [{"name": INFO.name, "file": INFO.file, "digest": "d"}]
    writer.close(summary.to_yaml_dict(writer.run_id), status, complete, suites)
