"""``execution``: what the agent is asked to do, how often, and within which limits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from pytest_agent_eval.suite.models.base import Amount, Block, Items, NonEmpty, Seconds
from pytest_agent_eval.suite.models.runner import RunnerConfig

__all__ = ["ExecutionConfig", "StepConfig", "default_parallelism"]

_RATE = re.compile(r"rate:(\d+(?:\.\d*)?|\.\d+)")


def default_parallelism() -> int:
    """The smaller of 8 and 2 x CPUs."""
    return min(8, 2 * (os.cpu_count() or 1))


def _pass(value: str) -> str:
    if value in ("all", "any", "majority"):
        return value
    rate = _RATE.fullmatch(value)
    if rate and 0 < float(rate[1]) <= 1:
        return value
    raise ValueError(f"must be one of all, any, majority, rate:X with 0 < X <= 1, not {value!r}")


def _exit_codes(value: Any) -> tuple[int, ...] | Literal["any"]:
    if value == "any":
        return "any"
    if isinstance(value, list | tuple) and all(type(code) is int for code in value):
        return tuple(value)
    raise ValueError(f"must be a list of integers, or any, not {value!r}")


def _identifier(value: str) -> str:
    if not value.isidentifier():
        raise ValueError(f"must be an identifier (letters, digits, _), not {value!r}")
    return value


ExitCodes = Annotated[
    tuple[int, ...] | Literal["any"],
    PlainValidator(_exit_codes),
    WithJsonSchema({"anyOf": [{"const": "any"}, {"type": "array", "items": {"type": "integer"}}]}),
]


class StepConfig(Block):
    """One step of a pipeline: a conversation of its own in the case's workspace."""

    id: Annotated[str, AfterValidator(_identifier)] = Field(
        description="Unique identifier; later steps reach its result as `steps.<id>`."
    )
    name: str = Field("", description="Label in reports; the id if empty.")
    skill: NonEmpty | None = Field(None, description="Skill to call; excludes `prompt`.")
    prompt: NonEmpty | None = Field(None, description="Prompt template; excludes `skill`.")
    arguments: str = Field("", description="Template of the skill's arguments.")
    env: Mapping[str, str] = Field(
        default_factory=dict, description="Variables for the agent, on top of `execution.env`."
    )
    timeout: Seconds | None = Field(
        None, description="Seconds of wall clock. Default: `execution.timeout`."
    )
    max_budget_usd: Amount | None = Field(
        None, description="Cap of the step, US dollars. Default: `execution.max_budget_usd`."
    )
    runner: RunnerConfig | None = Field(None, description="Runner of this step. Default: `runner`.")
    on_failure: Literal["fail", "continue"] = Field(
        "fail", description="Whether a failing step ends the case."
    )


class ExecutionConfig(Block):
    """What the agent is asked to do, how often, and within which limits."""

    mode: Literal["case", "batch"] = Field(
        "case", description="`batch`: one invocation for all selected cases."
    )
    skill: NonEmpty | None = Field(None, description="Skill to call; excludes `prompt`.")
    prompt: NonEmpty | None = Field(None, description="Prompt template; excludes `skill`.")
    arguments: str = Field("", description="Template of the skill's or the command's arguments.")
    timeout: Seconds = Field(3600.0, description="Seconds of wall clock of one invocation.")
    max_budget_usd: Amount = Field(
        100.0, description="Cap of one invocation, US dollars; 0 means 0."
    )
    parallelism: Annotated[int, Field(ge=1)] = Field(
        default_factory=default_parallelism, description="Cases at once."
    )
    trials: Annotated[int, Field(ge=1)] = Field(1, description="Executions per case.")
    pass_: Annotated[str, AfterValidator(_pass)] = Field(
        "all",
        alias="pass",
        description="How a case's trials make its outcome: `all`, `any`, `majority`, or `rate:X`.",
    )
    allow_exit_codes: ExitCodes = Field(
        (0,), description="Exit statuses that count as the agent having worked, or `any`."
    )
    retries: Annotated[int, Field(ge=0)] = Field(
        0, description="Repetitions after infrastructure failures, never after a bad answer."
    )
    env: Mapping[str, str] = Field(
        default_factory=dict,
        description="Variables for the agent; `$NAME` as the whole value is taken from the caller.",
    )
    steps: Items[StepConfig] = Field(
        (), description="Pipeline of steps, in mode `case`; replaces `skill` and `prompt`."
    )
