"""What Claude Code prints with ``--output-format stream-json``, in the words of this package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pytest_agent_eval.results import Usage
from pytest_agent_eval.runners.agent_tool import Line, text_of
from pytest_agent_eval.runners.base import Failure

__all__ = ["ClaudeStory"]

_SYNTHETIC = "<synthetic>"
"""The model of messages that no model wrote."""

_INFRASTRUCTURE = frozenset(
    {"authentication_failed", "billing_error", "rate_limit", "overloaded", "server_error",
     "model_not_found", "oauth_org_not_allowed"}
)  # fmt: skip
_STATUSES = frozenset({401, 402, 403, 404, 408, 429})
_UNREACHED = re.compile(
    r"unable to connect|connection error|connection (?:refused|reset|closed)|ECONN|ENOTFOUND|"
    r"fetch failed|socket|request timed out|certificate|not logged in|invalid api key",
    re.IGNORECASE,
)
_LIMITS = {
    "error_max_turns": "it reached its maximum number of turns",
    "error_during_execution": "it ended with an error",
}


class ClaudeStory:
    """The lines of one task, read; a :class:`~pytest_agent_eval.runners.agent_tool.Story`."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._result = _last(lines, "result")

    @cached_property
    def events(self) -> tuple[Mapping[str, Any], ...]:
        """In the form that judges see."""
        return tuple(event for line in self._lines for event in _events(line))

    @cached_property
    def output(self) -> str:
        """The final message: of the result, else the last of the root agent."""
        said = self._result.get("result")
        if isinstance(said, str) and said:
            return said
        for event in reversed(self.events):
            if event["type"] == "message" and event["agent"] == "root":
                return str(event["text"])
        return ""

    @cached_property
    def usage(self) -> Usage:
        """Of the root agent and its subagents. Unknown without a result, as after a timeout."""
        turns = Counter(_answers(self._lines))
        used = _mapping(self._result.get("modelUsage"))
        per_model = {name: _of_model(_mapping(item)) for name, item in used.items()}
        model: Any = _last(self._lines, "system", "init").get("model") or next(iter(turns), None)
        tokens: dict[str, Any] = {**(_summed(per_model) if per_model else _of_root(self._result))}
        return Usage(
            cost_usd=_number(self._result.get("total_cost_usd")),
            num_turns=_count(self._result.get("num_turns")),
            model=model if isinstance(model, str) else None,
            models_used=tuple(dict.fromkeys((*per_model, *turns))),
            per_model_usage=per_model,
            per_model_turns=dict(turns),
            **tokens,
        )

    @cached_property
    def failure(self) -> tuple[Failure | None, str]:
        """Why it did not work, by what it says."""
        result = self._result
        kind = str(result.get("subtype") or "")
        if kind == "error_max_budget_usd":
            return "budget", _first(result.get("errors")) or "it spent its budget"
        if not result.get("is_error") and not kind.startswith("error"):
            return None, ""
        said = _first(result.get("errors")) or text_of(result.get("result"))
        error = f"Claude Code: {said or _LIMITS.get(kind) or kind or 'an error'}"
        status, reason = result.get("api_error_status"), self._last_error
        lost = (
            reason in _INFRASTRUCTURE
            or (isinstance(status, int) and (status in _STATUSES or status >= 500))
            or (status is None and _UNREACHED.search(said) is not None)
        )
        return ("infrastructure" if lost else "agent"), error

    @cached_property
    def stalled(self) -> str:
        """What kept it waiting at the end: its last line says that it asks again."""
        line = self._lines[-1] if self._lines else {}
        if (line.get("type"), line.get("subtype")) != ("system", "api_retry"):
            return ""
        status = line.get("error_status")
        reason = str(line.get("error") or "no answer")
        return f"{reason} (HTTP status {status})" if status else reason

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Tool calls that were refused for want of a permission."""
        denied = self._result.get("permission_denials")
        if not isinstance(denied, list) or not denied:
            return ()
        names = Counter(str(_mapping(item).get("tool_name") or "?") for item in denied)
        shown = ", ".join(f"{name} {count}" for name, count in names.items())
        return (f"tool calls without permission: {shown}",)

    def lacks(self, skill: str) -> bool:
        """Whether it ended because there is no such skill: no model was asked anything."""
        known = _last(self._lines, "system", "init").get("slash_commands")
        asked = any(True for _ in _answers(self._lines))
        return (
            isinstance(known, list)
            and skill.removeprefix("/") not in known
            and bool(self._result)
            and not self._result.get("is_error")
            and not asked
        )

    @property
    def _last_error(self) -> str:
        for line in reversed(self._lines):
            if line.get("type") == "assistant":
                return str(line.get("error") or "")
        return ""


def _events(line: Line) -> Iterator[Mapping[str, Any]]:
    kind = line.get("type")
    message = _mapping(line.get("message"))
    if kind in ("assistant", "user") and message:
        more = _about(line)
        if line.get("error"):
            yield {"type": "error", "text": text_of(message.get("content")), **more}
            return
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            yield from _of_block(_mapping(block), said=kind == "assistant", more=more)
    elif kind == "result":
        text, error = text_of(line.get("result")), bool(line.get("is_error"))
        text = text or _first(line.get("errors"))
        yield {"type": "result", "text": text, "is_error": error, **_about(line)}
    else:
        yield {"type": "other", "raw": line, "agent": "root"}


def _of_block(
    block: Mapping[str, Any], *, said: bool, more: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    kind = str(block.get("type") or "")
    if kind == "text" and said:
        if block.get("text"):
            yield {"type": "message", "text": str(block["text"]), **more}
    elif kind == "thinking":
        yield {"type": "thinking", "text": str(block.get("thinking") or ""), **more}
    elif kind == "tool_use" or kind.endswith("_tool_use"):
        call = {"name": str(block.get("name") or ""), "input": block.get("input")}
        yield {"type": "tool_call", **call, "id": str(block.get("id") or ""), **more}
    elif kind == "tool_result" or kind.endswith("_tool_result"):
        yield {
            "type": "tool_result",
            "id": str(block.get("tool_use_id") or ""),
            "text": text_of(block.get("content")),
            "is_error": bool(block.get("is_error")),
            **more,
        }
    else:
        yield {"type": "other", "raw": dict(block), **more}


def _about(line: Line) -> dict[str, Any]:
    """Whose event it is, and of when."""
    parent, time = line.get("parent_tool_use_id"), line.get("timestamp")
    found: dict[str, Any] = {"agent": parent if isinstance(parent, str) and parent else "root"}
    if isinstance(time, str):
        found["timestamp"] = time
    return found


def _answers(lines: Sequence[Line]) -> Iterator[str]:
    """The model of each answer. An answer has a line for each of its blocks, with one id."""
    seen = set()
    for line in lines:
        message = _mapping(line.get("message")) if line.get("type") == "assistant" else {}
        identity, model = str(message.get("id") or ""), message.get("model")
        if isinstance(model, str) and model != _SYNTHETIC and identity not in seen:
            seen.add(identity)
            yield model


def _of_model(used: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "input": _count(used.get("inputTokens")),
        "output": _count(used.get("outputTokens")),
        "cache_read": _count(used.get("cacheReadInputTokens")),
        "cache_create": _count(used.get("cacheCreationInputTokens")),
        "cost_usd": _number(used.get("costUSD")),
    }


def _summed(per_model: Mapping[str, Mapping[str, Any]]) -> dict[str, int | None]:
    """Tokens of all models; ``usage`` of the result leaves subagents out."""
    found: dict[str, int | None] = {}
    for key in ("input", "output", "cache_read", "cache_create"):
        counts = [used[key] for used in per_model.values() if used[key] is not None]
        found[f"{key}_tokens"] = sum(counts) if counts else None
    return found


def _of_root(result: Line) -> dict[str, int | None]:
    usage = _mapping(result.get("usage"))
    return {
        "input_tokens": _count(usage.get("input_tokens")),
        "output_tokens": _count(usage.get("output_tokens")),
        "cache_read_tokens": _count(usage.get("cache_read_input_tokens")),
        "cache_create_tokens": _count(usage.get("cache_creation_input_tokens")),
    }


def _last(lines: Sequence[Line], kind: str, subtype: str | None = None) -> Line:
    for line in reversed(lines):
        if line.get("type") == kind and subtype in (None, line.get("subtype")):
            return line
    return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(value: Any) -> str:
    return str(value[0]) if isinstance(value, list) and value else ""


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
