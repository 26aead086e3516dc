"""The records of a baseline, as a judge that compares two runs looks them up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.execution.manifest import case_digest, case_manifest
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.runs.baseline import Baseline

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case

__all__ = ["StoredRecords"]


class StoredRecords:
    """The records of one suite in a baseline. Used from several threads at once.

    Args:
        baseline: the run.
        suite: the suite's key.
        case: finds a case of the suite by its name.
    """

    def __init__(self, baseline: Baseline, suite: str, case: Callable[[str], Case]) -> None:
        self._baseline = baseline
        self._suite = suite
        self._case = case

    @property
    def name(self) -> str:
        """The run's."""
        return self._baseline.name

    @property
    def identity(self) -> str:
        """A digest; another one where the executions may be others."""
        return self._baseline.identity(self._suite)

    def find(self, record: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """The record of the same case, variant and trial, or why there is none to compare with.

        Raises:
            RunDirectoryError: it was stored, and cannot be read any more.
        """
        key = (self._suite, record["case"], record["variant"], record["trial"])
        stored = self._baseline.find(*key)
        if stored is None:
            return self._baseline.lacks(*key)
        result = stored.result
        if result.execution is None or not result.record:
            return f"the baseline did not carry it out: {result.reason or result.status}"
        if result.status == "error":
            return f"the baseline could not carry it out: {result.reason or result.kind}"
        case = self._case(record["case"])
        path = str(case.path)
        if result.case_digest != case_digest(path, case_manifest(path)):
            return "the case has changed since the baseline"
        return Record.from_directory(str(self._baseline.run.record_directory(result)), case=case)
