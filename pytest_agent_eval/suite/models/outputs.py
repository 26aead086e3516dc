"""``outputs`` and ``traces``: what an agent leaves behind that is kept."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from pytest_agent_eval.suite.models.base import Block, NonEmpty, RelativePath

__all__ = ["OutputConfig", "TracesConfig"]

_NUMBER = re.compile(r"\{n(:0?\d*d)?\}")


def _below(value: str) -> str:
    if posixpath.normpath(value) == ".":
        raise ValueError(
            "must be a directory or file below the workspace, not the workspace itself"
        )
    return value


def _pattern(value: str) -> str:
    if value in ("", "*"):
        return value
    rest, count = _NUMBER.subn("", value)
    if count == 1 and not set(rest) & set("{}*"):
        return value
    raise ValueError(
        f"must be *, or a name prefix with one {{n}}, such as T-{{n:03d}}, not {value!r}"
    )


class OutputConfig(Block):
    """One kind of output: exactly one of `path` and `tool`."""

    path: Annotated[RelativePath, AfterValidator(_below)] | None = Field(
        None, description="Directory or file below the workspace."
    )
    tool: NonEmpty | None = Field(
        None, description="Part of a tool's name; its calls are kept as `tool_calls`."
    )
    schema_: str = Field("", alias="schema", description="Prose about it, for judges.")
    batch_pattern: Annotated[str, AfterValidator(_pattern)] = Field(
        "", description="Which files belong to which case in mode `batch`: `*`, or `T-{n:03d}`."
    )
    types: Mapping[str, str] = Field(
        default_factory=dict, description="File name or glob -> semantic type for the report."
    )


class TracesConfig(Block):
    """What is recorded of a trial besides its files."""

    stdout: bool = Field(True, description="Keep standard output.")
    stderr: bool = Field(True, description="Keep standard error.")
    events: bool = Field(True, description="Keep the agent's events.")
    metrics: bool = Field(True, description="Keep tokens, cost, turns and times.")
