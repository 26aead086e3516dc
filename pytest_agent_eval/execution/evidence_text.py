"""A few lines about what an agent did, for the prompt of a model that judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

__all__ = ["describe_evidence"]

_READS = frozenset({"read", "view", "read_file", "open_file", "cat", "notebookread"})
_WRITES = frozenset(
    {"write", "edit", "multiedit", "write_file", "apply_patch", "notebookedit", "file_change"}
)
_PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path")


def describe_evidence(record: Mapping[str, Any]) -> str:
    """Turns, cost, tool counts, files read and written, one line each, unknown ones named so."""
    calls = [event for event in record["events"] if event["type"] == "tool_call"]
    tools = Counter(str(call.get("name") or "?") for call in calls)
    errors = sum(
        1 for event in record["events"] if event["type"] == "tool_result" and event.get("is_error")
    )
    counts = ", ".join(f"{name} {count}" for name, count in tools.most_common())
    cost = record["cost_usd"]
    turns = record["num_turns"]
    lines = [
        f"turns: {'unknown' if turns is None else turns}",
        f"cost: {'unknown' if cost is None else f'${cost:.4f}'}",
        f"duration: {record['duration_s']:.1f} s",
        f"tool calls: {counts or 'none recorded'}" + (f" ({errors} failed)" if errors else ""),
        f"files read: {_paths(calls, _READS)}",
        f"files written: {_paths(calls, _WRITES)}",
        f"output files: {', '.join(record['files']) or 'none'}",
    ]
    return "\n".join(lines)


def _paths(calls: list[dict[str, Any]], names: frozenset[str]) -> str:
    found: dict[str, None] = {}
    for call in calls:
        given = call.get("input")
        if str(call.get("name", "")).lower() not in names or not isinstance(given, Mapping):
            continue
        changes = given.get("changes")  # of Codex: several files in one call
        for place in (given, *(changes if isinstance(changes, list) else ())):
            if not isinstance(place, Mapping):
                continue
            path = next((place[key] for key in _PATH_KEYS if isinstance(place.get(key), str)), None)
            if path is not None:
                found[path] = None
    return ", ".join(found) or "none recorded"
