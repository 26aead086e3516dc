"""``hooks``: commands around the run, its cases and their steps."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_agent_eval.suite.models.base import Block, Items, NonEmpty, Seconds

__all__ = ["HookConfig", "HooksConfig"]


class HookConfig(Block):
    """One command, run by `bash -c`."""

    command: NonEmpty = Field(description="Shell command.")
    timeout: Seconds = Field(120.0, description="Seconds; then its process tree is ended.")
    description: str = Field("", description="For people.")
    on_failure: Literal["fail", "continue"] = Field(
        "fail", description="Whether a failure counts; `after_*` hooks never fail a case."
    )
    condition: NonEmpty | None = Field(
        None, description="Shell command; a non-zero exit status skips the hook."
    )


class HooksConfig(Block):
    """Commands around the run, its cases and their steps."""

    before_all: Items[HookConfig] = Field((), description="Once, before the first case.")
    before_each: Items[HookConfig] = Field((), description="Before each case.")
    before_step: Items[HookConfig] = Field((), description="Before each step.")
    after_step: Items[HookConfig] = Field((), description="After each step.")
    after_each: Items[HookConfig] = Field((), description="After each case, always.")
    before_scoring: Items[HookConfig] = Field((), description="Once, before the judges.")
    after_all: Items[HookConfig] = Field((), description="Once, after the judges, always.")
    before_report: Items[HookConfig] = Field((), description="Once, before reports are written.")

    @property
    def is_empty(self) -> bool:
        """Whether no hook is configured at all."""
        return not any(getattr(self, phase) for phase in type(self).model_fields)
