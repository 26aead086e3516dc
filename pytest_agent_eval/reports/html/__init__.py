"""A report as one HTML file: overview, table of cases, a page for each case. Needs no network.

``overview`` and ``table`` say what the summary says, ``detail`` reads what a trial left,
``budget`` decides how much of it is kept, and ``document`` puts it all into one file with the
style sheet and the scripts of ``page/``.
"""

from __future__ import annotations

from pathlib import Path

from pytest_agent_eval.reports.handler import FileReport
from pytest_agent_eval.reports.html.document import document

__all__ = ["document", "make"]


def make(path: Path) -> FileReport:
    """The handler that writes a file."""
    return FileReport(path, lambda run: document(run, path.absolute().parent))
