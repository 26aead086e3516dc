"""Events: what an agent did, in the one form that judges see."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_agent_eval.execution.names import plain
from pytest_agent_eval.redaction import NO_SECRETS, Secrets

__all__ = [
    "EVENT_TYPES",
    "conversation",
    "event_of",
    "has_messages",
    "last_message",
    "read_events",
    "tool_calls",
]

EVENT_TYPES = frozenset(
    {"message", "thinking", "tool_call", "tool_result", "question", "error", "result", "other"}
)

_TEXTS = ("agent", "text", "name", "id", "answer")
_KEYS = frozenset({*_TEXTS, "input", "is_error", "options", "raw", "result", "tier", "type"})


def event_of(raw: Any, secrets: Secrets = NO_SECRETS) -> dict[str, Any]:
    """One event in the documented form; anything else becomes ``{"type": "other", "raw": ...}``.

    Secrets are replaced in all but what the form itself consists of.
    """
    event = _event(raw)
    if not secrets:
        return event
    return {
        key if key in _KEYS else secrets.text(key): value if key == "type" else secrets.value(value)
        for key, value in event.items()
    }


def _event(raw: Any) -> dict[str, Any]:
    kind = raw.get("type") if isinstance(raw, Mapping) else None
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        return {"type": "other", "raw": plain(raw)}
    event: dict[str, Any] = plain(raw)
    if any(event.get(key) is not None and not isinstance(event[key], str) for key in _TEXTS):
        return {"type": "other", "raw": event}
    if event.get("agent") is None:
        event["agent"] = "root"
    return event


def read_events(
    data: bytes, name: str = "events.jsonl", *, secrets: Secrets = NO_SECRETS
) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of a JSON Lines file, and notes about lines that are no JSON object."""
    events = []
    broken: list[int] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line.decode("utf-8", "replace").lstrip("\ufeff"))
        except (ValueError, RecursionError):
            broken.append(number)
            continue
        if isinstance(raw, dict):
            events.append(event_of(raw, secrets))
        else:
            broken.append(number)
    if not broken:
        return events, []
    shown = ", ".join(str(number) for number in broken[:5])
    more = f" and {len(broken) - 5} more" if len(broken) > 5 else ""
    noun = "line" if len(broken) == 1 else "lines"
    return events, [f"{name}: {noun} {shown}{more}: no JSON object, ignored"]


def has_messages(events: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the root agent said anything."""
    return any(event["type"] == "message" and _is_root(event) for event in events)


def conversation(events: Iterable[Mapping[str, Any]], *, thinking: bool = False) -> str:
    """What the root agent said, paragraphs apart; with ``thinking`` also what it thought."""
    types = ("message", "thinking") if thinking else ("message",)
    texts = [
        event.get("text") or "" for event in events if event["type"] in types and _is_root(event)
    ]
    return "\n\n".join(text for text in texts if text)


def last_message(events: Sequence[Mapping[str, Any]]) -> str:
    """The last thing the root agent said; empty when it said nothing."""
    for event in reversed(events):
        if event["type"] == "message" and _is_root(event) and event.get("text"):
            return str(event["text"])
    return ""


def tool_calls(
    events: Iterable[Mapping[str, Any]], patterns: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Each call with its result: ``{name, input, result, is_error, agent}``.

    Args:
        events: results belong to the call with the same ``id``; without one, to the last call
            that has none.
        patterns: globs, or parts of names; a call that matches one is kept. Empty: all are.
    """
    calls: list[dict[str, Any]] = []
    by_id: dict[str | None, dict[str, Any]] = {}
    for event in events:
        if event["type"] == "tool_call":
            call = {
                "name": event.get("name") or "",
                "input": event.get("input"),
                "result": None,
                "is_error": False,
                "agent": event.get("agent", "root"),
            }
            by_id[event.get("id")] = call
            if not patterns or _matches(call["name"], patterns):
                calls.append(call)
        elif event["type"] == "tool_result" and event.get("id") in by_id:
            call = by_id[event.get("id")]
            call["result"] = event.get("text", event.get("result"))
            call["is_error"] = bool(event.get("is_error"))
    return calls


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(p in name or fnmatch.fnmatchcase(name, p) for p in patterns)


def _is_root(event: Mapping[str, Any]) -> bool:
    return bool(event.get("agent", "root") == "root")
