"""``tool_handlers.yaml``: the handlers of questions and tool calls, spelt out."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator

from pytest_agent_eval.suite.models.base import Block, Items, Named, NonEmpty

__all__ = ["EnvCheck", "HandlerConfig", "HandlersConfig", "answer_of"]


def _pattern(value: str) -> str:
    if not value.strip() or any(letter.isspace() for letter in value):
        raise ValueError(f"must be the name of a tool, not {value!r}")
    if "*" in value[:-1]:
        raise ValueError(f"a * may stand at the end only, as in mcp__tickets__*, not {value!r}")
    return value


def _regex(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float | date):
        return str(value)
    raise ValueError(f"an answer is text, or a list of texts, not {type(value).__name__}")


def answer_of(value: Any) -> tuple[str, ...]:
    """An answer as it is written for a question: one text, or those of a list.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, list | tuple):
        return tuple(map(_text, value))
    return (_text(value),)


Answer = Annotated[tuple[str, ...], PlainValidator(answer_of)]


def _prompt_file(value: str) -> str:
    if "\0" in value or ".." in value.replace("\\", "/").split("/"):
        raise ValueError(f"must not hold .., as {value!r} does")
    return value


class EnvCheck(Block):
    """What a variable of the agent's environment has to hold."""

    must_contain: Items[NonEmpty] = Field(description="Texts, each of which its value holds.")


class HandlerConfig(Block):
    """One handler; the first that selects a call decides about it."""

    match: str = Field("", description="Which calls, in prose; read where `patterns` is empty.")
    patterns: Items[Annotated[str, AfterValidator(_pattern)]] = Field(
        (), description="Names of tools, or `prefix*`."
    )
    prompt: str = Field("", description="How to answer, or why a call is denied.")
    prompt_file: Annotated[str, AfterValidator(_prompt_file)] = Field(
        "", description="File that says so, relative to the suite."
    )
    input_filters: Items[Annotated[str, AfterValidator(_regex)]] = Field(
        (), description="Regular expressions, one of which the call's input matches."
    )
    env_checks: Named[EnvCheck] = Field(
        default_factory=dict, description="Variables that allow the call."
    )


class HandlersConfig(Block):
    """The whole file."""

    handlers: Items[HandlerConfig] = Field((), description="In order.")
    hook_model: str = Field("", description="Answerer, where `models.hook` names none.")
    case_overrides: Named[Answer] = Field(
        default_factory=dict, description="Question -> its answer, for all cases."
    )
