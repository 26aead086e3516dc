"""``models``, ``permissions`` and ``inputs``: what the agent is, may do, and is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from pytest_agent_eval.suite.models.base import Block, Items, NonEmpty, PathText

__all__ = ["InputsConfig", "ModelsConfig", "PathRule", "PermissionsConfig", "ToolConfig"]


class ModelsConfig(Block):
    """Default models by role, as LiteLLM names them."""

    skill: NonEmpty | None = Field(None, description="The agent under test.")
    subagent: NonEmpty | None = Field(None, description="Its subagents. Default: `skill`.")
    judge: NonEmpty | None = Field(
        None, description="LLM judges. Default: the variable EVAL_JUDGE_MODEL."
    )
    hook: NonEmpty | None = Field(None, description="Answerer of questions. Default: `judge`.")
    api_base: NonEmpty | None = Field(
        None,
        description="Server of the judges' and the answerer's models. Default: the provider's, or "
        "what its variables say.",
    )


class PathRule(Block):
    """A rule on paths; a directory (trailing `/`) covers its whole tree."""

    path: PathText = Field(description="File, directory or glob.")
    tools: Items[NonEmpty] = Field(
        description="Tools it applies to: Read, Edit, Write, Grep, Glob; in `deny` also Bash."
    )
    reason: str = Field("", description="For people.")


def _rule(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, dict):
        return handler(value)
    raise ValueError(f"must be a pattern such as Skill, or {{path, tools}}, not {value!r}")


if TYPE_CHECKING:
    Rule = str | PathRule
else:
    # A plain union would put its branches' names into the paths of problems.
    Rule = Annotated[PathRule, WrapValidator(_rule, json_schema_input_type=str | PathRule)]


class PermissionsConfig(Block):
    """What the agent's tools may do; for runners that have permissions."""

    allow: Items[Rule] = Field((), description="Patterns, or `{path, tools}` rules.")
    deny: Items[Rule] = Field((), description="Patterns, or `{path, tools}` rules.")


class ToolConfig(Block):
    """How one kind of tool call is answered."""

    match: NonEmpty = Field(description="Which calls, in prose.")
    prompt: str | None = Field(None, description="How to answer; excludes `prompt_file`.")
    prompt_file: PathText | None = Field(None, description="File that says how to answer.")


class InputsConfig(Block):
    """What an unattended agent is answered."""

    tools: Items[ToolConfig] = Field((), description="Handlers of questions and tool calls.")
