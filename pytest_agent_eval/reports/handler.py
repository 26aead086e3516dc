"""Reports as handlers of one stream: each gets every trial as it ends, and the run at its end.

A new report is one module with a function ``make(path) -> ReportHandler``, and one line in
:data:`FORMATS`. A report that belongs to a project is a handler that its ``conftest.py`` returns
from the hook ``pytest_agent_eval_report_handlers``.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agent_eval.errors import ReportError

if TYPE_CHECKING:
    from pytest_agent_eval.evidence.summary import Summary
    from pytest_agent_eval.results import TrialResult
    from pytest_agent_eval.runs.stored import StoredRun, StoredTrial

__all__ = [
    "FORMATS",
    "FileReport",
    "FinishedRun",
    "ReportHandler",
    "check_path",
    "make_handler",
    "write_report",
]

FORMATS: Mapping[str, str] = {
    ".csv": "pytest_agent_eval.reports.table_file",
    ".html": "pytest_agent_eval.reports.html",
    ".json": "pytest_agent_eval.reports.json_file",
    ".md": "pytest_agent_eval.reports.markdown",
}
"""Suffix of a report's file -> module that makes it. Imported when one is asked for."""


@dataclass(frozen=True)
class FinishedRun:
    """A run that has ended, as reports see it.

    Attributes:
        run_id: its name.
        directory: of the run (absolute); None where nothing is stored.
        header: ``run.json``.
        summary: aggregates, gates and cases. Only the cases in it may be shown: those of a sealed
            half are not, although they are stored.
        notes: more sentences worth telling.
        baseline: the run that this one is compared with, or None.
    """

    run_id: str
    directory: Path | None
    header: Mapping[str, Any]
    summary: Summary
    notes: tuple[str, ...] = ()
    baseline: StoredRun | None = field(default=None, repr=False)

    def record(self, result: TrialResult) -> Path | None:
        """Where the record of a trial is; None where it has none or has lost it.

        Of a run that was judged again it is in the run that it came from.
        """
        if self.directory is None or not result.record:
            return None
        path = Path(os.path.normpath(self.directory / result.record))
        kept_beside = path.is_relative_to(self.directory.parent)
        return path if kept_beside and path.is_dir() else None

    def baseline_trial(
        self, suite: str, case: str, variant: str | None, trial: int
    ) -> StoredTrial | None:
        """The same trial of the baseline, or None."""
        return None if self.baseline is None else self.baseline.find(suite, case, variant, trial)


class ReportHandler(Protocol):
    """One report."""

    def trial(self, result: TrialResult) -> None:
        """A trial has a result. In pytest's order; trials of a sealed half are left out. A trial
        that is carried out again has another result, which replaces the first.
        """

    def finished(self, run: FinishedRun) -> str:
        """The run has ended.

        Returns:
            What the terminal shall say of it, one line or several; empty for nothing.

        Raises:
            ReportError: the report cannot be made. The session fails, and says so.
        """


class FileReport:
    """A report that is a file, made of the whole run at its end.

    Args:
        path: of the file.
        render: what it holds; text is written as UTF-8.
    """

    def __init__(self, path: Path, render: Callable[[FinishedRun], str | bytes]) -> None:
        self._path = path
        self._render = render

    def trial(self, result: TrialResult) -> None:
        """Nothing: the run holds all trials."""

    def finished(self, run: FinishedRun) -> str:
        """Write the file.

        Raises:
            ReportError: it cannot be written.
        """
        return write_report(self._path, self._render(run))


def check_path(path: Path) -> None:
    """Find what keeps a report from being written, before the first agent is paid for.

    Raises:
        ReportError: no report has this suffix, or the path is that of a directory.
    """
    if path.suffix.lower() not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        raise ReportError(f"{path.name}: a report ends in one of {known}")
    if path.is_dir():
        raise ReportError(f"{path}: is a directory")


def make_handler(path: Path) -> ReportHandler:
    """The handler that writes a report of the kind that the path's suffix names.

    Raises:
        ReportError: no report has this suffix.
    """
    check_path(path)
    module = importlib.import_module(FORMATS[path.suffix.lower()])
    made: ReportHandler = module.make(path)
    return made


def write_report(path: Path, data: str | bytes) -> str:
    """Write a report in one go: nobody sees half of it, and an earlier one stays if this fails.

    Args:
        path: of the report; its directories are made.
        data: what it holds; text is written as UTF-8.

    Returns:
        The line for the terminal.

    Raises:
        ReportError: it cannot be written.
    """
    content = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        os.replace(partial, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
        why = "a part of its path is a file" if in_the_way else error.strerror
        raise ReportError(f"{path}: cannot be written: {why}") from None
    return f"report: {os.path.relpath(path)}"
