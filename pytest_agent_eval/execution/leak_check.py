"""What ``dataset.leak`` makes of answers that an agent has seen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.errors import AgentEvalError
from pytest_agent_eval.execution.events import read_events
from pytest_agent_eval.execution.leaks import find_leaks, with_leaks
from pytest_agent_eval.execution.record import EVENTS
from pytest_agent_eval.execution.runtime import SuiteRuntime
from pytest_agent_eval.results import TrialResult, Verdict

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case

__all__ = ["leak_checked"]


def leak_checked(
    shared: SuiteRuntime,
    case: Case,
    directory: str,
    executed: TrialResult,
    values: Mapping[str, Any] | None = None,
) -> TrialResult:
    """The result of an agent's work with a note for each leak, or with a failing execution.

    Args:
        shared: of the suite.
        case: with its answer key.
        directory: where the trial is stored (absolute).
        executed: as far as the agent goes.
        values: the case's input, if it was read already.
    """
    config = shared.config
    if config.dataset.leak == "off" or executed.execution is None:
        return executed
    try:
        leaks = find_leaks(
            case,
            directory,
            answers=config.dataset.answers,
            files=config.dataset.workspace.files,
            texts=[*_told(shared, case, values), *_answered(shared, directory)],
        )
    except AgentEvalError as error:  # the agent has been paid for: this must not lose its work
        note = f"not looked for leaks: {error}"
        return replace(executed, notes=(*executed.notes, note))
    if not leaks:
        return executed
    if config.dataset.leak == "error":
        verdict: Verdict = with_leaks(executed.execution, leaks)
        return replace(
            executed, status="failed", kind="agent", reason=verdict.rationale, execution=verdict
        )
    return replace(executed, notes=(*executed.notes, *map(str, leaks)))


def _told(shared: SuiteRuntime, case: Case, values: Mapping[str, Any] | None) -> list[str]:
    """What the agent was told besides its files."""
    config = shared.config
    templates = [item for item in (shared.prompt, shared.arguments) if item is not None]
    if templates and values is None:
        values = case.input()
    texts = [template.render(values or {}, case=case.name) for template in templates]
    more = [text for step in config.execution.steps for text in (step.prompt, step.arguments)]
    more += [config.runner.system_prompt, config.execution.skill, config.dataset.schema_]
    more += [output.path for output in config.outputs]
    return [*texts, *(text for text in more if text)]


def _answered(shared: SuiteRuntime, directory: str) -> list[str]:
    """What the agent was answered when it asked, which may well stand in ``answers.yaml``."""
    if not shared.interactions.handlers.answers_questions:
        return []
    try:
        with open(os.path.join(directory, EVENTS), "rb") as stream:
            events, _ = read_events(stream.read())
    except FileNotFoundError:
        return []
    told = [event for event in events if event["type"] == "question"]
    return [text for event in told for text in (event.get("text"), event.get("answer")) if text]
