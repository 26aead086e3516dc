"""Texts that must, or must not, occur in the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agent_eval.judges.calls import text_list
from pytest_agent_eval.judges.content import content_of, place_in
from pytest_agent_eval.judges.difference import show


def judge(
    outputs: Mapping[str, Any],
    text: str | list[str] | None = None,
    any_of: list[str] | None = None,
    none_of: str | list[str] | None = None,
    expected: str | None = None,
    ignore_case: bool = False,
    file: str | None = None,
) -> tuple[bool, str]:
    """Pass if the output contains what it should and nothing of what it should not.

    Args:
        outputs: the record.
        text: each of these occurs.
        any_of: at least one of these occurs.
        none_of: none of these occurs.
        expected: a dotted place in the record, such as ``annotations.expected_mentions``, whose
            text or texts occur, each of them.
        ignore_case: letter case does not matter.
        file: the output file to look at; default: the main content.
    """
    content = content_of(outputs, file)
    if content.fault:
        return False, content.fault
    wanted = text_list(text, "text")
    if expected is not None:
        wanted += text_list(place_in(outputs, expected), expected)
    found = content.text.casefold() if ignore_case else content.text

    def occurs(part: str) -> bool:
        return (part.casefold() if ignore_case else part) in found

    missing = [part for part in wanted if not occurs(part)]
    unwanted = [part for part in text_list(none_of, "none_of") if occurs(part)]
    choices = text_list(any_of, "any_of")
    faults = []
    if missing:
        faults.append(f"{content.name} does not contain {_listed(missing)}")
    if choices and not any(occurs(part) for part in choices):
        faults.append(f"{content.name} contains none of {_listed(choices)}")
    if unwanted:
        faults.append(f"{content.name} contains {_listed(unwanted)}")
    return not faults, "; ".join(faults) or f"{content.name} contains what it should"


def validate(**arguments: Any) -> Iterator[tuple[str, str]]:
    """A judge that could only pass, as (argument, message)."""
    if not any(arguments.get(name) for name in ("text", "any_of", "none_of", "expected")):
        yield "", "needs at least one of text, any_of, none_of and expected"


def _listed(parts: list[str]) -> str:
    more = f" and {len(parts) - 8} more" if len(parts) > 8 else ""
    return ", ".join(show(part) for part in parts[:8]) + more
