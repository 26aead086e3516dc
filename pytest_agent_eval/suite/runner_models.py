"""Runners that ask a model by themselves, through the gateway, and what each needs to be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_agent_eval.errors import Problem
from pytest_agent_eval.suite.known import ASKED_BY_WORDS, MODEL_RUNNERS
from pytest_agent_eval.suite.models.execution import StepConfig
from pytest_agent_eval.suite.models.runner import RunnerConfig
from pytest_agent_eval.suite.models.suite import SuiteConfig
from pytest_agent_eval.suite.suite import Suite

__all__ = ["asks_models", "unasked"]


def asks_models(config: SuiteConfig) -> bool:
    """Whether the suite's runner, or that of a step, asks a model."""
    return any(runner.type in MODEL_RUNNERS for _, runner, _ in _runners(config))


def unasked(suite: Suite, model: str) -> tuple[Problem, ...]:
    """One problem for each runner that would be asked nothing, or has no model to ask.

    Args:
        suite: as a variant changes it.
        model: of the command line, which comes before ``models.skill``; may be empty.
    """
    config = suite.config
    found: dict[str, str] = {}
    for place, runner, step in _runners(config):
        kind = runner.type
        named = model or config.models.skill or _default_model(runner.settings, kind)
        if kind in MODEL_RUNNERS and not named:
            found[f"{place}.type"] = (
                f"{kind} asks a model and none is named: set models.skill, or --agent-eval-model"
            )
        execution = config.execution
        words = (execution.skill, execution.prompt, execution.arguments)
        if step is None and kind in ASKED_BY_WORDS and not any(words):
            found["execution"] = (
                f"the agent is asked nothing: {kind} needs execution.prompt or execution.skill"
            )
    return tuple(
        Problem(message, path=path, file=suite.shown, line=suite.line(path) or 1)
        for path, message in found.items()
    )


def _default_model(settings: Mapping[str, object], kind: str) -> object:
    return settings.get("default_model") if kind == "responses-api" else None


def _runners(config: SuiteConfig) -> Iterator[tuple[str, RunnerConfig, StepConfig | None]]:
    """Place, runner and step of each agent: those of the steps, else the suite's own."""
    steps = config.execution.steps
    if not steps:
        yield "runner", config.runner, None
    for index, step in enumerate(steps):
        own = step.runner is not None and "type" in step.runner.model_fields_set
        if step.runner is not None and own:
            yield f"execution.steps[{index}].runner", step.runner, step
        else:
            yield "runner", config.runner, step
