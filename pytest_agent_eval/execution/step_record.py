"""The record of one step of a pipeline: what the agent did in that step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.stored_files import StoredFiles

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case

__all__ = ["STEPS", "StepRecord", "step_records"]

STEPS = "steps"
"""Name of the directory of steps in a trial's directory."""


class StepRecord(Record):
    """A record whose logs, events, times and costs are those of one step.

    Files are those of the whole trial, as all steps share a workspace.
    """

    def __init__(self, whole: Record, directory: str, data: Mapping[str, Any], case: Case) -> None:
        super().__init__(directory, data, case)
        self._whole = whole
        self._values["hook_outputs"] = whole["hook_outputs"]

    def _files(self, **options: str) -> StoredFiles:
        return self._whole._files(**options)

    def _steps(self) -> dict[str, Record]:
        steps: dict[str, Record] = self._whole["steps"]
        return steps


def step_records(
    whole: Record, directory: str, data: Mapping[str, Any], case: Case
) -> dict[str, Record]:
    """Id -> record of each step that ran, in their order.

    Args:
        whole: of the trial.
        directory: of the trial (absolute).
        data: what its ``record.json`` holds; ``steps`` has that of each step.
        case: the case.
    """
    return {
        name: StepRecord(whole, os.path.join(directory, STEPS, name), {**data, **step}, case)
        for name, step in (data.get(STEPS) or {}).items()
    }
