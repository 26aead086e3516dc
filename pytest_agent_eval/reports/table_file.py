"""A report as CSV: one row a trial, one column a judge, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_agent_eval.reports.case_table import in_order
from pytest_agent_eval.reports.handler import FileReport, FinishedRun
from pytest_agent_eval.reports.printable import printable
from pytest_agent_eval.results import TrialResult, Verdict

__all__ = ["make", "render", "rows"]

COLUMNS = (
    "suite",
    "case",
    "variant",
    "trial",
    "split",
    "group",
    "category",
    "tags",
    "status",
    "kind",
    "reason",
    "reward",
    "cost_usd",
    "input_tokens",
    "output_tokens",
    "duration_s",
    "judging_s",
    "record",
)
"""Those before the judges': of each judge of the run follow ``NAME`` and ``NAME.rationale``."""
_FORMULA = tuple("=+-@\t\r")


def rows(run: FinishedRun) -> Iterator[list[Any]]:
    """The heading, then one row a trial.

    A value is ``true``, ``false``, a number, ``skipped`` or ``error``; the rationale of an error
    is what went wrong. Text that a spreadsheet would take for a formula gets an apostrophe before
    it.
    """
    judges = dict.fromkeys(
        judge.name for suite in run.summary.suites for judge in suite.info.judges
    )
    names = [printable(name) for name in judges]
    yield [*COLUMNS, *(_text(f"{name}{end}") for name in names for end in ("", ".rationale"))]
    for suite in run.summary.suites:
        for case in in_order(suite.cases):
            for trial in case.trials:
                verdicts = {verdict.judge: verdict for verdict in trial.verdicts}
                yield [
                    *_facts(trial),
                    *(cell for name in judges for cell in _cells(verdicts.get(name))),
                ]


def _facts(trial: TrialResult) -> list[Any]:
    usage = trial.usage
    facts = {
        "tags": " ".join(f"{key}={value}" for key, value in sorted(trial.tags.items())),
        "cost_usd": usage.cost_usd,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
    }
    return [_cell(facts[name] if name in facts else getattr(trial, name)) for name in COLUMNS]


def _cells(verdict: Verdict | None) -> tuple[Any, Any]:
    if verdict is None:
        return "", ""
    if verdict.error:
        return "error", _text(verdict.error)
    if verdict.skipped:
        return "skipped", _text(verdict.rationale)
    return _cell(verdict.value), _text(verdict.rationale)


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    shown = printable(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def render(run: FinishedRun) -> str:
    """The file's text: one row a trial. What is unknown is empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows(run))
    return text.getvalue()


def make(path: Path) -> FileReport:
    """The handler that writes a file."""
    return FileReport(path, render)
