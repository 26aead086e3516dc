"""What a run says in GitHub Actions: a job summary, and annotations of what is to be looked at.

Source of the forms: GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_agent_eval.errors import ReportError
from pytest_agent_eval.reports.failure import headline
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.reports.markdown import markdown
from pytest_agent_eval.reports.printable import one_line
from pytest_agent_eval.reports.terminal import gate_text
from pytest_agent_eval.results import TrialResult

__all__ = ["GitHub"]

MOST_ANNOTATIONS = 10
"""GitHub shows as many errors of a step."""
_MOST_BYTES = 1024 * 1024
"""GitHub refuses a larger summary of a step."""


class GitHub:
    """Adds the Markdown report to the job's summary, and annotates gates and cases.

    Args:
        environ: of the process; ``GITHUB_STEP_SUMMARY`` names the file of the summary.
        rootdir: pytest's, which the suites' files are relative to.
    """

    def __init__(self, environ: Mapping[str, str], rootdir: Path) -> None:
        self._summary = environ.get("GITHUB_STEP_SUMMARY", "")
        self._prefix = _relative(rootdir, environ.get("GITHUB_WORKSPACE", ""))

    def trial(self, result: TrialResult) -> None:
        """Nothing: the run holds all trials."""

    def finished(self, run: FinishedRun) -> str:
        """Add to the summary; the annotations are for the terminal, where GitHub reads them.

        Raises:
            ReportError: the summary cannot be written.
        """
        if self._summary:
            self._append(markdown(run))
        found = [*self._gates(run), *self._cases(run)]
        return "\n".join(found[:MOST_ANNOTATIONS])

    def _append(self, text: str) -> None:
        data = f"{text}\n".encode("utf-8", "backslashreplace")
        try:
            with open(self._summary, "ab") as file:
                room = _MOST_BYTES - file.tell()
                if len(data) > room:
                    data = b"\nThe report of the agent evaluation is too long for this page.\n"
                file.write(data)
        except OSError as error:
            where = f"$GITHUB_STEP_SUMMARY, {self._summary}"
            raise ReportError(f"{where}: cannot be written: {error.strerror}") from None

    def _gates(self, run: FinishedRun) -> Iterator[str]:
        for gate in run.summary.missed:
            yield self._annotation(gate.suite, f"gate missed: {gate.name}", gate_text(gate))

    def _cases(self, run: FinishedRun) -> Iterator[str]:
        for suite in run.summary.suites:
            for case in suite.cases:
                if case.status in ("failed", "error"):
                    title = f"{case.label}: {case.status}"
                    yield self._annotation(suite.info.key, title, headline(case.told, 400))

    def _annotation(self, file: str, title: str, message: str) -> str:
        where = f"{self._prefix}/{file}" if self._prefix else file
        return f"::error file={_property(where)},title={_property(title)}::{_data(message)}"


def _relative(rootdir: Path, workspace: str) -> str:
    """The root directory below the checkout, which annotations name files from."""
    if not workspace or not rootdir.is_relative_to(workspace):
        return ""
    found = os.path.relpath(rootdir, workspace)
    return "" if found == "." else found.replace(os.sep, "/")


def _data(text: str) -> str:
    return one_line(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
