"""``runner``: what carries a task out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from pytest_agent_eval.suite.models.base import Block, Items, NonEmpty, PathText

__all__ = ["EFFORTS", "RunnerConfig"]

EFFORTS: Mapping[str, tuple[str, ...]] = {
    "claude-code": ("low", "medium", "high", "xhigh", "max"),
    "codex": ("minimal", "low", "medium", "high", "xhigh"),
}
"""Runner type -> values of ``effort``; other types pass any text on."""


def _command(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("must not be empty")
        return value
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a string or a list of strings, not {value!r}")
    for index, word in enumerate(value):
        if not isinstance(word, str):
            raise ValueError(f"word {index + 1} must be a string, not {word!r}; quote it")
    if not value or not value[0].strip():
        raise ValueError("must start with the program to run")
    return tuple(value)


Command = Annotated[
    str | tuple[str, ...],
    PlainValidator(_command),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        }
    ),
]


class RunnerConfig(Block):
    """What carries a task out."""

    type: NonEmpty = Field(
        "claude-code",
        description="`cli`, `python`, `claude-code`, `codex`, `responses-api`, `litellm`, or a "
        "type that a plugin registers.",
    )
    command: Command | None = Field(
        None,
        description="The command of type `cli`: a string is split as a POSIX shell splits words "
        "(no shell is run), a list is used as it is.",
    )
    function: NonEmpty | None = Field(
        None,
        description="The callable of type `python`: `package.module:callable` or `fixture:NAME`.",
    )
    effort: NonEmpty | None = Field(None, description="Reasoning effort, as the runner calls it.")
    permission_mode: (
        Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"] | None
    ) = Field(None, description="Permission mode of claude-code.")
    settings: Mapping[str, Any] = Field(
        default_factory=dict, description="The runner's own settings."
    )
    plugin_dirs: Items[PathText] = Field((), description="Plugin directories for the agent.")
    env: Mapping[str, str] = Field(
        default_factory=dict, description="Variables for the runner's process."
    )
    env_policy: Literal["inherit", "clean"] | None = Field(
        None,
        description="What of the caller's environment the agent sees. Default: `inherit` for cli "
        "and python, `clean` for the others.",
    )
    system_prompt: str = Field("", description="Appended to the agent's system prompt.")
    workspace_mode: Literal["repo"] | None = Field(
        None, description="`repo`: the real checkout is the working directory, one case at a time."
    )
    sandbox: Literal["none", "bubblewrap", "auto"] = Field(
        "none", description="Isolation of the agent's process."
    )
