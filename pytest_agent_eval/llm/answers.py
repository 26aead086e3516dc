"""Structured answers: how a model is asked for one, and how it is read from what came."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pytest_agent_eval.llm.request import AnswerForm, ModelReply

__all__ = ["LADDER", "Rung", "objects_in", "submitted", "wanted"]

Rung = Literal["tool", "schema", "object", "text"]
LADDER: tuple[Rung, ...] = ("tool", "schema", "object", "text")
"""Ways to ask for a structured answer, the most binding first: a forced tool call, a JSON schema, a
JSON object of a schema as servers of local models have it, words alone."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^"{}\[\]]+|"', re.DOTALL)
"""A string, a bracket, or what is between them."""

_MENDED = 20
"""Objects of a reply that are looked at for superfluous commas."""

_LONGEST = 200_000
"""Characters at the end of a reply in which an object is looked for."""


def wanted(form: AnswerForm, rung: Rung) -> dict[str, Any]:
    """The parameters of a call that asks for an answer of this form."""
    schema = {**form.schema, "additionalProperties": False}
    if rung == "tool":
        function = {"name": form.name, "description": form.description, "parameters": schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": form.name}},
        }
    if rung == "schema":
        named = {"name": form.name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if rung == "object":
        return {"response_format": {"type": "json_object", "schema": schema}}
    return {}


def instruction(form: AnswerForm, rung: Rung) -> str:
    """What the model is told about the form of its answer."""
    if rung == "tool":
        return f"Answer by calling the tool {form.name}."
    schema = json.dumps(form.schema, ensure_ascii=False)
    return f"Answer with one JSON object and nothing else. Its JSON schema: {schema}"


def submitted(reply: ModelReply, form: AnswerForm) -> Iterator[Mapping[str, Any]]:
    """The objects that may be the answer, the likeliest first."""
    for call in reply.tool_calls:
        if call.name == form.name:
            yield from reversed(objects_in(call.arguments))
    yield from reversed(objects_in(reply.text))


def objects_in(text: str) -> list[Mapping[str, Any]]:
    """The JSON objects in a text that are part of no other, in order.

    A comma before a closing bracket and a line break within a string, which models like to write,
    do no harm.
    """
    text = text[-_LONGEST:]
    decoder = json.JSONDecoder(strict=False)
    found: list[Mapping[str, Any]] = []
    mended = 0
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end = None, at + 1
            if mended < _MENDED:
                mended += 1
                value, end = _mended(text, at) or (None, end)
        if value is not None:
            found.append(value)
        at = text.find("{", end)
    return found


def _mended(text: str, start: int) -> tuple[Mapping[str, Any], int] | None:
    """The object that begins here, read without its superfluous commas, and where it ends."""
    depth = 0
    parts: list[str] = []
    for token in _TOKEN.finditer(text, start):
        word = token[0]
        if word in "}]" and parts and parts[-1].rstrip().endswith(","):
            parts[-1] = parts[-1].rstrip()[:-1]
        parts.append(word)
        depth += (word in "{[") - (word in "}]")
        if depth == 0:
            try:
                return json.loads("".join(parts), strict=False), token.end()
            except (ValueError, RecursionError):
                return None
    return None
