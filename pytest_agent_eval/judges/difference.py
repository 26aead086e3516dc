"""Expected against actual, place by place."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

__all__ = ["Difference", "Rules", "differences", "normalize", "show"]

_SHOWN = 80
"""Characters of a value in a difference."""


class Rules(NamedTuple):
    """What counts as equal.

    Attributes:
        tolerance: numbers that differ by at most this (absolute) are equal.
        normalize: texts are compared without regard to letter case, spaces and Unicode form.
    """

    tolerance: float = 1e-9
    normalize: bool = False


DEFAULT_RULES = Rules()


class Difference(NamedTuple):
    """One place where they differ.

    Attributes:
        place: such as ``items[2].price``; empty for the whole.
        text: such as ``expected 'refund', got 'replace'``.
    """

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


def differences(
    expected: Any, actual: Any, rules: Rules = DEFAULT_RULES, place: str = ""
) -> Iterator[Difference]:
    """The places where ``actual`` is not as expected, in the order of ``expected``.

    Only the keys of an expected mapping count; a missing key is not equal to null. A list has
    the same length. A boolean equals no number, NaN equals nothing, and null, ``""`` and 0 are
    three different things.
    """
    if isinstance(expected, Mapping):
        yield from _mapping(expected, actual, rules, place)
    elif isinstance(expected, Sequence) and not isinstance(expected, (str, bytes)):
        yield from _sequence(expected, actual, rules, place)
    elif not _equal(expected, actual, rules):
        yield Difference(place, f"expected {show(expected)}, got {show(actual)}")


def normalize(text: str) -> str:
    """Without differences in letter case, runs of white space, and Unicode form."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return re.sub(r"\s+", " ", folded).strip()


def show(value: Any) -> str:
    """A value as YAML and JSON would have it, cut to a line's length."""
    if isinstance(value, str):
        whole = repr(value[: _SHOWN * 2])
    elif value is None or isinstance(value, bool):
        return json.dumps(value)
    elif isinstance(value, Mapping):
        whole = "{" + ", ".join(f"{key}: {_brief(value[key])}" for key in islice(value, 8))
        whole += ", ...}" if len(value) > 8 else "}"
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        whole = "[" + ", ".join(_brief(item) for item in value[:8])
        whole += ", ...]" if len(value) > 8 else "]"
    else:
        whole = _number(value)
    if len(whole) <= _SHOWN and not (isinstance(value, str) and len(value) > _SHOWN * 2):
        return whole
    size = f" ({len(value):,} characters)" if isinstance(value, str) else ""
    return f"{whole[:_SHOWN]}...{size}"


def _brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{...}" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[...]" if value else "[]"
    return show(value)


def _number(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # an int of more digits than Python agrees to print
        return f"a number of {value.bit_length():,} bits"


def _mapping(
    expected: Mapping[Any, Any], actual: Any, rules: Rules, place: str
) -> Iterator[Difference]:
    if not isinstance(actual, Mapping):
        yield Difference(place, f"expected a mapping, got {show(actual)}")
        return
    for key, value in expected.items():
        inner = f"{place}.{key}" if place else str(key)
        found = key if key in actual else str(key)  # keys of JSON are texts
        if found in actual:
            yield from differences(value, actual[found], rules, inner)
        else:
            yield Difference(inner, f"expected {show(value)}, but the key is missing")


def _sequence(
    expected: Sequence[Any], actual: Any, rules: Rules, place: str
) -> Iterator[Difference]:
    if not isinstance(actual, Sequence) or isinstance(actual, (str, bytes)):
        yield Difference(place, f"expected a list, got {show(actual)}")
        return
    if len(expected) != len(actual):
        yield Difference(place, f"expected {len(expected)} items, got {len(actual)}")
    for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
        yield from differences(one, other, rules, f"{place}[{index}]")


def _equal(expected: Any, actual: Any, rules: Rules) -> bool:
    if _is_number(expected) and _is_number(actual):
        try:
            return bool(expected == actual or abs(expected - actual) <= rules.tolerance)
        except OverflowError:  # an int beyond every float
            return False
    if isinstance(expected, str) and isinstance(actual, str):
        if rules.normalize:
            return normalize(expected) == normalize(actual)
        return expected == actual
    if isinstance(actual, str) and hasattr(expected, "isoformat"):
        return bool(expected.isoformat() == actual)  # YAML reads a plain date as one; JSON cannot
    return type(expected) is type(actual) and bool(expected == actual)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
