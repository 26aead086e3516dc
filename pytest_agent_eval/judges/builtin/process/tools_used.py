"""Which tools the agent used, which it did not, and in what order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from pytest_agent_eval.judges.calls import Call, calls_of, count_names


def judge(
    outputs: Mapping[str, Any],
    required: str | list[Any] | None = None,
    forbidden: str | list[Any] | None = None,
    ordered: list[Any] | None = None,
    include_subagents: bool = True,
) -> tuple[bool, str]:
    """Pass if the calls are as wanted.

    An entry is a tool's name, in which ``*``, ``?`` and ``[...]`` match as in file names, or a
    mapping ``{tool: name, input: {argument: regular expression}}``: the expression is searched in
    the argument's text (its JSON, if it is no text).

    Args:
        outputs: the record.
        required: each entry was called at least once.
        forbidden: no entry was ever called; an attempt that failed counts.
        ordered: the entries were called in this order, with any calls between.
        include_subagents: look at the calls of subagents too.
    """
    calls = calls_of(outputs, include_subagents=include_subagents)
    faults = [
        f"{_show(entry)} was not called" for entry in _entries(required) if not _first(entry, calls)
    ]
    for entry in _entries(forbidden):
        count = sum(_matches(entry, call) for call in calls)
        if count:
            faults.append(f"{_show(entry)} is forbidden and was called {count} x")
    faults += _order_faults(_entries(ordered), calls)
    called = f"called: {count_names(calls)}"
    return not faults, "; ".join([*faults, called])


def validate(**arguments: Any) -> Iterator[tuple[str, str]]:
    """Entries that are none and expressions that do not compile, as (argument, message)."""
    if not any(_entries(arguments.get(name)) for name in ("required", "forbidden", "ordered")):
        yield "", "needs at least one of required, forbidden and ordered"
    for name in ("required", "forbidden", "ordered"):
        for entry in _entries(arguments.get(name)):
            fault = _entry_fault(entry)
            if fault:
                yield name, f"{entry!r}: {fault}"


def _entries(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _entry_fault(entry: Any) -> str:
    if isinstance(entry, str):
        return "" if entry else "an entry needs a tool's name"
    if not isinstance(entry, dict) or not isinstance(entry.get("tool"), str):
        return "an entry is a tool's name or {tool: name, input: {argument: expression}}"
    unknown = [key for key in entry if key not in ("tool", "input")]
    if unknown:
        return f"unknown key {unknown[0]!r}; there is tool, input"
    patterns = entry.get("input") or {}
    if not isinstance(patterns, dict):
        return "input must be a mapping: argument -> regular expression"
    for argument, pattern in patterns.items():
        try:
            re.compile(str(pattern))
        except re.error as error:
            return f"the expression for {argument} does not compile: {error}"
    return ""


def _first(entry: Any, calls: Iterable[Call]) -> bool:
    return any(_matches(entry, call) for call in calls)


def _order_faults(entries: list[Any], calls: Iterable[Call]) -> list[str]:
    left = iter(calls)  # each search goes on where the one before it ended
    for index, entry in enumerate(entries):
        if not _first(entry, left):
            after = f" after {_show(entries[index - 1])}" if index else ""
            return [f"{_show(entry)} was not called{after}"]
    return []


def _matches(entry: Any, call: Call) -> bool:
    if isinstance(entry, str):
        return fnmatchcase(call.name, entry)
    if not fnmatchcase(call.name, entry["tool"]):
        return False
    patterns = entry.get("input") or {}
    return all(
        argument in call.input and re.search(str(pattern), _text(call.input[argument]))
        for argument, pattern in patterns.items()
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _show(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    patterns = entry.get("input") or {}
    inside = ", ".join(f"{argument}=~{pattern}" for argument, pattern in patterns.items())
    return f"{entry['tool']}({inside})"
