"""Regular expressions that must, or must not, match the output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agent_eval.judges.content import content_of
from pytest_agent_eval.judges.difference import show


def judge(
    outputs: Mapping[str, Any],
    pattern: str | list[str] | None = None,
    none_of: str | list[str] | None = None,
    full: bool = False,
    ignore_case: bool = False,
    multiline: bool = False,
    dotall: bool = False,
    file: str | None = None,
) -> tuple[bool, str]:
    """Pass if every pattern is found and no forbidden one is.

    The patterns are Python's and the suite author's. One that backtracks without end cannot be
    interrupted; keep quantifiers from being nested.

    Args:
        outputs: the record.
        pattern: each is found somewhere in the output.
        none_of: none is found.
        full: ``pattern`` must match the whole output, but for a line break at its end.
        ignore_case: letter case does not matter.
        multiline: ``^`` and ``$`` match at each line.
        dotall: ``.`` matches line breaks too.
        file: the output file to look at; default: the main content.
    """
    content = content_of(outputs, file)
    if content.fault:
        return False, content.fault
    flags = re.IGNORECASE * ignore_case | re.MULTILINE * multiline | re.DOTALL * dotall
    faults = []
    for item in _patterns(pattern):
        compiled = re.compile(item, flags)
        if full:
            match = compiled.fullmatch(content.text) or compiled.fullmatch(
                content.text.removesuffix("\n")
            )
        else:
            match = compiled.search(content.text)
        if match is None:
            verb = "does not match" if full else "has no match for"
            faults.append(f"{content.name} {verb} {item!r}")
    for item in _patterns(none_of):
        match = re.compile(item, flags).search(content.text)
        if match is not None:
            line = content.text.count("\n", 0, match.start()) + 1
            faults.append(f"{content.name}:{line} matches {item!r}: {show(match.group())}")
    said = "; ".join(faults)
    if not faults:
        said = f"{content.name} matches"
    elif full:
        said += f"; it is {show(content.text)}"
    return not faults, said


def validate(**arguments: Any) -> Iterator[tuple[str, str]]:
    """Patterns that do not compile, as (argument, message)."""
    if not arguments.get("pattern") and not arguments.get("none_of"):
        yield "", "needs pattern or none_of"
    for name in ("pattern", "none_of"):
        for item in _patterns(arguments.get(name)):
            try:
                re.compile(item)
            except (re.error, OverflowError) as error:
                yield name, f"{item!r} is no regular expression: {error}"


def _patterns(value: str | list[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else value
