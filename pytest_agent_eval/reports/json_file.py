"""A report as JSON: everything that the summary says, and each trial with its verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_agent_eval.reports.case_table import in_order
from pytest_agent_eval.reports.handler import FileReport, FinishedRun
from pytest_agent_eval.runs.lines import sanitised

__all__ = ["make", "render", "report_data"]

VERSION = 1
"""Of the form of the file; what is added to it does not change it."""


def report_data(run: FinishedRun) -> dict[str, Any]:
    """What the file holds, as JSON types but for numbers that are not finite."""
    return {
        "v": VERSION,
        "run": {"id": run.run_id, **run.header},
        "summary": run.summary.to_yaml_dict(run.run_id),
        "notes": list(run.notes),
        "trials": [
            trial.to_dict()
            for suite in run.summary.suites
            for case in in_order(suite.cases)
            for trial in case.trials
        ],
    }


def render(run: FinishedRun) -> str:
    """The file's text: strict JSON."""
    return json.dumps(sanitised(report_data(run)), indent=1, allow_nan=False) + "\n"


def make(path: Path) -> FileReport:
    """The handler that writes ``{v, run, summary, notes, trials}``; trials as the lines of
    ``results.jsonl``.
    """
    return FileReport(path, render)
