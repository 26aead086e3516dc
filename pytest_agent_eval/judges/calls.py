"""The tool calls of a trial, from its events, with what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Call", "calls_of", "count_names", "text_list"]

ROOT = "root"


class Call(NamedTuple):
    """One tool call.

    Attributes:
        name: of the tool.
        input: its arguments.
        failed: its result was an error; False also when no result is known.
        agent: ``root``, or the id of a subagent.
        result: its text, if known.
    """

    name: str
    input: Mapping[str, Any]
    failed: bool = False
    agent: str = ROOT
    result: str = ""


def calls_of(outputs: Mapping[str, Any], *, include_subagents: bool = True) -> list[Call]:
    """All tool calls in order: of the events, or of ``tool_calls`` when there are no events."""
    events = outputs["events"]
    if any(event.get("type") == "tool_call" for event in events):
        calls = _from_events(events)
    else:
        calls = [
            _call(item, item.get("is_error"), item.get("result")) for item in outputs["tool_calls"]
        ]
    if include_subagents:
        return calls
    return [call for call in calls if call.agent == ROOT]


def count_names(calls: Iterable[Call]) -> str:
    """``Read x3, Bash``, or ``none``."""
    counts: dict[str, int] = {}
    for call in calls:
        counts[call.name] = counts.get(call.name, 0) + 1
    shown = [name if count == 1 else f"{name} x{count}" for name, count in counts.items()]
    if len(shown) > 12:
        shown[12:] = [f"and {len(shown) - 12} more"]
    return ", ".join(shown) or "none"


def text_list(value: Any, name: str) -> list[str]:
    """A list of texts, each once: of a list, one text, or nothing.

    Raises:
        ValueError: anything else.
    """
    if value is None:
        return []
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError(f"{name} must be a text or a list of texts, not {type(value).__name__}")
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise ValueError(f"{name}[{index}] must be a text, not {item!r}")
    return [item for item in dict.fromkeys(items) if item.strip()]


def _from_events(events: Iterable[Mapping[str, Any]]) -> list[Call]:
    results = {
        event["id"]: event
        for event in events
        if event.get("type") == "tool_result" and event.get("id") is not None
    }
    calls = []
    for event in events:
        if event.get("type") == "tool_call":
            result = results.get(event.get("id"), {})
            calls.append(_call(event, result.get("is_error"), result.get("text")))
    return calls


def _call(item: Mapping[str, Any], is_error: Any, result: Any) -> Call:
    given = item.get("input")
    return Call(
        name=str(item.get("name") or ""),
        input=given if isinstance(given, Mapping) else {"input": given},
        failed=is_error is True,
        agent=str(item.get("agent") or ROOT),
        result=result if isinstance(result, str) else "",
    )
