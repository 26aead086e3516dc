"""What ``codex exec --json`` prints, in the words of this package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pytest_agent_eval.results import Usage
from pytest_agent_eval.runners.agent_tool import Line, text_of
from pytest_agent_eval.runners.base import Failure

__all__ = ["CodexStory"]

_INFRASTRUCTURE = re.compile(
    r"\bstatus:? (?:401|402|403|404|408|429|5\d\d)\b|rate.?limit|usage limit|quota|billing|"
    r"overloaded|high demand|at capacity|unauthorized|not logged in|api key|"
    r"stream (?:disconnected|error)|error sending request|connection|network|timed? ?out|"
    r"model .{0,80}(?:does not exist|not found|not supported)",
    re.IGNORECASE | re.DOTALL,
)
_WAITS = "reconnecting"


class CodexStory:
    """The lines of one task, read; a :class:`~pytest_agent_eval.runners.agent_tool.Story`.

    Args:
        lines: what was printed.
        model: that it was told to use, for it does not say which one answered; may be empty.
    """

    def __init__(self, lines: Sequence[Line], model: str = "") -> None:
        self._lines = lines
        self._model = model

    @cached_property
    def events(self) -> tuple[Mapping[str, Any], ...]:
        """In the form that judges see."""
        return tuple(_events(self._lines, self.output))

    @cached_property
    def output(self) -> str:
        """The final message: the last that the agent said."""
        for line in reversed(self._lines):
            item = _item(line)
            if line.get("type") == "item.completed" and item.get("type") == "agent_message":
                return str(item.get("text") or "")
        return ""

    @cached_property
    def usage(self) -> Usage:
        """Tokens, once a turn was completed. Codex tells no cost, and no number of answers."""
        models = (self._model,) if self._model else ()
        used = _mapping(_last(self._lines, "turn.completed").get("usage"))
        given, read = _count(used.get("input_tokens")), _count(used.get("cached_input_tokens"))
        made = _count(used.get("cache_write_input_tokens"))
        if given is not None:
            # OpenAI counts what was cached among the input, Anthropic beside it. Here: beside it.
            given = max(0, given - (read or 0) - (made or 0))
        answered = _count(used.get("output_tokens"))
        tokens = {"input": given, "output": answered, "cache_read": read, "cache_create": made}
        return Usage(
            input_tokens=given,
            output_tokens=answered,
            cache_read_tokens=read,
            cache_create_tokens=made,
            model=self._model or None,
            models_used=models,
            per_model_usage={model: tokens for model in models if used},
        )

    @cached_property
    def failure(self) -> tuple[Failure | None, str]:
        """Why it did not work, by what it says. Errors before a completed turn were overcome."""
        said = ""
        for line in self._lines:
            if line.get("type") == "turn.completed":
                said = ""
            elif line.get("type") in ("turn.failed", "error"):
                said = _message(line) or "the turn failed"
        if not said:
            return None, ""
        lost = _INFRASTRUCTURE.search(said) is not None
        return ("infrastructure" if lost else "agent"), f"Codex: {said}"

    @cached_property
    def stalled(self) -> str:
        """What kept it waiting at the end: its last line says that it connects again."""
        line = self._lines[-1] if self._lines else {}
        said = _message(line) if line.get("type") == "error" else ""
        return said if said.lower().startswith(_WAITS) else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """None: what is worth telling is among the events."""
        return ()


def _events(lines: Sequence[Line], output: str) -> Iterator[Mapping[str, Any]]:
    started: set[str] = set()
    for line in lines:
        kind = str(line.get("type") or "")
        if kind in ("item.started", "item.completed"):
            yield from _of_item(line, kind == "item.completed", started)
        elif kind == "turn.completed":
            yield {"type": "result", "text": output, "is_error": False, "agent": "root"}
        elif kind == "turn.failed":
            yield {"type": "result", "text": _message(line), "is_error": True, "agent": "root"}
        elif kind == "error":
            yield {"type": "error", "text": _message(line), "agent": "root"}
        else:
            yield {"type": "other", "raw": line, "agent": "root"}


def _of_item(line: Line, completed: bool, started: set[str]) -> Iterator[Mapping[str, Any]]:
    item = _item(line)
    kind, identity = str(item.get("type") or ""), str(item.get("id") or "")
    if kind in _TEXTS:
        if completed:
            text = item.get("text") or item.get("message")
            yield {"type": _TEXTS[kind], "text": str(text or ""), "agent": "root"}
        return
    call = _call(kind, item)
    if call is None:
        yield {"type": "other", "raw": line, "agent": "root"}
        return
    if identity not in started:
        started.add(identity)
        yield {"type": "tool_call", **call, "id": identity, "agent": "root"}
    if completed:
        yield {
            "type": "tool_result",
            "id": identity,
            "text": _result(item),
            "is_error": item.get("status") in ("failed", "declined") or bool(item.get("error")),
            "agent": "root",
        }


_TEXTS = {"agent_message": "message", "reasoning": "thinking", "error": "error"}


def _call(kind: str, item: Mapping[str, Any]) -> dict[str, Any] | None:
    """Name and input of a tool call; None for items that are none."""
    if kind == "command_execution":
        return {"name": kind, "input": {"command": item.get("command")}}
    if kind == "file_change":
        return {"name": kind, "input": {"changes": item.get("changes")}}
    if kind == "web_search":
        return {"name": kind, "input": {"query": item.get("query")}}
    if kind == "mcp_tool_call":
        name = f"mcp__{item.get('server')}__{item.get('tool')}"
        return {"name": name, "input": item.get("arguments")}
    if kind == "collab_tool_call":
        given = {key: item.get(key) for key in ("prompt", "receiver_thread_ids")}
        return {"name": str(item.get("tool") or kind), "input": given}
    return None


def _result(item: Mapping[str, Any]) -> str:
    if "aggregated_output" in item:
        return str(item.get("aggregated_output") or "")
    error = _mapping(item.get("error"))
    if error:
        return str(error.get("message") or "")
    result = _mapping(item.get("result"))
    if result:
        return text_of(result.get("content"))
    return str(item.get("status") or "")


def _item(line: Line) -> Mapping[str, Any]:
    return _mapping(line.get("item"))


def _message(line: Line) -> str:
    return str(line.get("message") or _mapping(line.get("error")).get("message") or "")


def _last(lines: Sequence[Line], kind: str) -> Line:
    return next((line for line in reversed(lines) if line.get("type") == kind), {})


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
