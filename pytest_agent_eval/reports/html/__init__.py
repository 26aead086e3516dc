"""A report as one HTML file: overview, table of cases, a page for each case. Needs no network.

``overview`` and ``table`` say what the summary says, ``detail`` reads what a trial left,
``budget`` decides how much of it is kept, and ``document`` puts it all into one file with the
style sheet and the scripts of ``page/``.
"""

from __future__ import annotations

from pathlib import Path

from pytest_agent_eval.reports.handler import FinishedRun, write_report
from pytest_agent_eval.reports.html.document import document
from pytest_agent_eval.results import TrialResult

__all__ = ["HtmlFile", "document", "make"]


class HtmlFile:
    """Writes the report to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def trial(self, result: TrialResult) -> None:
        """Nothing: the run holds all trials."""

    def finished(self, run: FinishedRun) -> str:
        """Write the file.

        Raises:
            ReportError: it cannot be written.
        """
        return write_report(self._path, document(run, self._path.absolute().parent))


def make(path: Path) -> HtmlFile:
    """The handler that writes a file."""
    return HtmlFile(path)
