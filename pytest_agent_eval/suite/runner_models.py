"""Runners that ask a model by themselves, through the gateway."""

from __future__ import annotations

from pytest_agent_eval.suite.models.suite import SuiteConfig

__all__ = ["asks_models"]

_TYPE = "litellm"


def asks_models(config: SuiteConfig) -> bool:
    """Whether the suite's runner, or that of a step, asks a model."""
    steps = config.execution.steps
    types = [
        config.runner.type
        if step.runner is None or "type" not in step.runner.model_fields_set
        else step.runner.type
        for step in steps
    ]
    return _TYPE in (types or [config.runner.type])
