"""What a model is asked, and what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_agent_eval.results import Usage
from pytest_agent_eval.suite.digests import canonical_digest

__all__ = ["AnswerForm", "ModelReply", "ModelRequest", "Protocol", "ToolCall"]

Protocol = Literal["chat", "responses"]
"""In which form a model is asked: OpenAI's chat completions, or its Responses API."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of a structured answer.

    Attributes:
        name: of the tool that the model submits it with; an identifier.
        description: of that tool, one sentence.
        schema: JSON schema of an object; the order of its properties is that of writing.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model.

    Attributes:
        model: ``provider/model``, as LiteLLM names it.
        messages: in the form of the protocol: messages, or input items.
        answer: the form of the answer; None for free text.
        tools: that the model may call, in the same form; not together with ``answer``.
        protocol: of the question; a form of the answer needs ``chat``.
        parameters: ``temperature``, ``max_tokens``, ``reasoning_effort`` ...: passed on.
        sample: 0-based; a question that is asked several times has several recordings.
    """

    model: str
    messages: tuple[Mapping[str, Any], ...]
    answer: AnswerForm | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sample: int = 0
    protocol: Protocol = "chat"

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types: all that decides the answer."""
        form = self.answer
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": [dict(message) for message in self.messages],
            "answer": None
            if form is None
            else {
                "name": form.name,
                "description": form.description,
                "schema": dict(form.schema),
            },
            "tools": [dict(tool) for tool in self.tools],
            "parameters": dict(self.parameters),
            "sample": self.sample,
        }
        if self.protocol != "chat":
            asked["protocol"] = self.protocol
        return asked

    @property
    def key(self) -> str:
        """xxh3_128 (hexadecimal) over :meth:`to_dict`."""
        return canonical_digest(self.to_dict())


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of a model; ``arguments`` is the JSON text that it wrote."""

    id: str
    name: str
    arguments: str

    def to_dict(self) -> dict[str, str]:
        """A mapping of strings."""
        return {"id": self.id, "name": self.name, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model answered.

    Attributes:
        text: free text, or why it refused; empty when it only called tools.
        tool_calls: in order; of tools that are not the provider's own.
        usage: tokens and US dollars; the cost is None where the price is unknown.
        model: that answered, as the provider names it.
        date: of the answer, ISO 8601 in UTC.
        finish: why it stopped: ``stop``, ``tool_calls``, ``length``, ``content_filter``, or what
            else the provider says.
        thinking: what it says of its reasoning; that of the Responses API is in ``parts``.
        refused: the text is a refusal, and the provider says so.
        parts: the reply in the provider's own form, as far as later questions give it back to the
            model: keys of the assistant's message, or all output items of the Responses API.
        recorded: it was read from a recording and cost nothing now.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    date: str = ""
    finish: str = ""
    thinking: str = ""
    refused: bool = False
    parts: tuple[Mapping[str, Any], ...] = ()
    recorded: bool = False
