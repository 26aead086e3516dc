"""Which file of a batch belongs to which case."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_agent_eval.cases.directories import natural_key
from pytest_agent_eval.errors import CaseError
from pytest_agent_eval.execution.names import printable

__all__ = ["Attribution", "BatchOutput", "attribute"]

EVERYONE = "*"

_NUMBER = re.compile(r"\{n(?::(0?\d*d))?\}")
_PREFIX = re.compile(r"([A-Za-z]+)-(\d+)(?![0-9])")


class BatchOutput(NamedTuple):
    """One place of outputs.

    Attributes:
        path: ``outputs[].path``, relative to the workspace.
        pattern: its ``batch_pattern``, or empty.
    """

    path: str
    pattern: str = ""


@dataclass
class Attribution:
    """The files of each case.

    Attributes:
        own: for each case, in order, the files that are its own.
        shared: files that every case gets.
    """

    own: list[list[str]]
    shared: list[str] = field(default_factory=list)


def attribute(
    files: Iterable[str], outputs: Sequence[BatchOutput], cases: Sequence[str]
) -> Attribution:
    """Give each file to a case, or to all of them.

    In each place of outputs, by the first of these that applies: its pattern; names that begin with
    the name of a case; a common prefix ``WORD-NNN``; one file or directory for each case, in order.
    Where no place lists a file it belongs to all.

    Args:
        files: relative to the workspace, with slashes.
        outputs: in the suite's order; a file belongs to the place with the longest path.
        cases: names, in the order of ``batch.yaml``.

    Raises:
        CaseError: some files cannot be given to a case; lists them. Its ``case`` is empty.
    """
    found = Attribution([[] for _ in cases])
    places = sorted(outputs, key=lambda output: len(_normal(output.path)), reverse=True)
    inside: defaultdict[BatchOutput, list[str]] = defaultdict(list)
    for path in sorted(files, key=natural_key):
        place = next((output for output in places if _is_below(path, output.path)), None)
        if place is None or place.pattern == EVERYONE:
            found.shared.append(path)
        else:
            inside[place].append(path)
    for place in outputs:
        if place in inside:
            _attribute(place, inside.pop(place), cases, found.own)
    return found


def _attribute(
    place: BatchOutput, files: Sequence[str], cases: Sequence[str], own: list[list[str]]
) -> None:
    ways = [_by_pattern] if place.pattern else [_by_name, _by_prefix, _in_order]
    for way in ways:
        given = way(place, files, cases)
        if given is not None:
            break
    else:
        given = [None] * len(files)
    left = [path for path, number in zip(files, given, strict=True) if number is None]
    if left:
        raise CaseError("", _unattributed(place, left, len(cases)))
    for path, number in zip(files, given, strict=True):
        if number is not None:
            own[number].append(path)


Given = list[int | None]
"""For each file the index of its case; None where it has none."""


def _by_pattern(place: BatchOutput, files: Sequence[str], cases: Sequence[str]) -> Given:
    prefixes = [_prefix(place.pattern, number) for number in range(1, len(cases) + 1)]
    return [
        next(
            (
                index
                for part in _parts(path, place.path)
                for index, prefix in enumerate(prefixes)
                if _begins(part, prefix)
            ),
            None,
        )
        for path in files
    ]


def _by_name(place: BatchOutput, files: Sequence[str], cases: Sequence[str]) -> Given | None:
    """By the names of the cases; None where no file has one."""
    longest_first = sorted(range(len(cases)), key=lambda index: len(cases[index]), reverse=True)
    given: Given = [
        next(
            (
                index
                for part in _parts(path, place.path)
                for index in longest_first
                if _begins(part, cases[index]) and not part[len(cases[index]) :][:1].isalpha()
            ),
            None,
        )
        for path in files
    ]
    return None if set(given) <= {None} else given


def _by_prefix(place: BatchOutput, files: Sequence[str], cases: Sequence[str]) -> Given | None:
    """By a common prefix such as ``TICKET-007``; None where there is no such.

    Its numbers are places in the batch, unless they are too large for that: then the smallest is
    the first case's, if there is one for each case.
    """
    numbers: list[int | None] = []
    words = set()
    for path in files:
        match = next((m for part in _parts(path, place.path) if (m := _PREFIX.match(part))), None)
        numbers.append(int(match[2]) if match else None)
        if match:
            words.add(match[1])
    there = sorted({number for number in numbers if number is not None})
    if len(words) != 1 or 2 * len(there) < len(cases):
        return None
    if there[0] >= 1 and there[-1] <= len(cases):
        index = {number: number - 1 for number in there}
    elif len(there) == len(cases):
        index = {number: position for position, number in enumerate(there)}
    else:
        index = {}
    return [None if number is None else index.get(number) for number in numbers]


def _in_order(place: BatchOutput, files: Sequence[str], cases: Sequence[str]) -> Given | None:
    """One file or directory a case; None where their numbers differ."""
    tops = [_parts(path, place.path)[0] for path in files]
    order = {top: index for index, top in enumerate(dict.fromkeys(tops))}
    if len(order) != len(cases):
        return None
    return [order[top] for top in tops]


def _prefix(pattern: str, number: int) -> str:
    return _NUMBER.sub(lambda found: format(number, found[1] or "d"), pattern)


def _begins(part: str, prefix: str) -> bool:
    """Whether a name begins with a prefix; ``T-1`` does not begin ``T-12``."""
    rest = part[len(prefix) :]
    return part.startswith(prefix) and not (prefix[-1:].isdigit() and rest[:1].isdigit())


def _parts(path: str, below: str) -> list[str]:
    """The names on the way from a place of outputs to a file; of a single file its own name."""
    inside = path[len(_normal(below)) :].strip("/")
    return inside.split("/") if inside else [posixpath.basename(path)]


def _is_below(path: str, output: str) -> bool:
    return f"{path}/".startswith(f"{_normal(output)}/")


def _normal(path: str) -> str:
    return posixpath.normpath(path)


def _unattributed(place: BatchOutput, files: Sequence[str], count: int) -> str:
    shown = ", ".join(printable(path) for path in files[:10])
    more = f" and {len(files) - 10} more" if len(files) > 10 else ""
    if place.pattern:
        fits = f"batch_pattern is {place.pattern}, so that their names begin with "
        last = _prefix(place.pattern, count)
        fits += _prefix(place.pattern, 1) + (f" to {last}" if count > 1 else "")
    else:
        fits = (
            "name them after the cases, give them a prefix such as T-001, leave one for each of "
            f"the {count} cases, or set batch_pattern"
        )
    noun = "file belongs" if len(files) == 1 else "files belong"
    return f"{len(files)} {noun} to no case of the batch: {shown}{more}; {fits}"
