"""Whether a judge's ``arguments`` fit the function they are for: known before any agent runs."""

from __future__ import annotations

import difflib
import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union

__all__ = ["argument_problems", "nearest"]

_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}


def nearest(word: str, known: Sequence[str]) -> str:
    """``; did you mean max_cost_usd?``, or what there is, or nothing."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; there is {', '.join(sorted(known))}" if known else ""


def argument_problems(
    function: Callable[..., Any], arguments: Mapping[str, Any], *, types_too: bool = False
) -> list[tuple[str, str]]:
    """What is wrong with calling ``function(outputs=..., **arguments)``.

    Args:
        function: its first parameter, or one named ``outputs``, takes the record.
        arguments: the judge's ``arguments``.
        types_too: also check the values against the annotations (of shipped judges).

    Returns:
        (argument or empty, message) for each problem; nothing for a function without signature.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    parameters = signature.parameters
    takes_any = any(item.kind is item.VAR_KEYWORD for item in parameters.values())
    named = {
        name: item
        for name, item in parameters.items()
        if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)
    }
    problems = []
    if "outputs" not in named and not takes_any:
        problems.append(("", "the function takes no argument named outputs"))
    known = [name for name in named if name != "outputs"]
    for name in arguments:
        if name == "outputs":
            problems.append((name, "outputs is the record, which is always given"))
        elif name not in named and not takes_any:
            problems.append((name, f"unknown argument {name!r}{nearest(name, known)}"))
    for name, item in named.items():
        if item.default is item.empty and name != "outputs" and name not in arguments:
            problems.append(("", f"the argument {name} is required"))
    if types_too and not problems:
        problems = _type_problems(function, arguments)
    return problems


def _type_problems(
    function: Callable[..., Any], arguments: Mapping[str, Any]
) -> list[tuple[str, str]]:
    hints = typing.get_type_hints(function)
    return [
        (name, f"{name} must be {_describe(hints[name])}, not {value!r}")
        for name, value in arguments.items()
        if name in hints and not _fits(value, hints[name])
    ]


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from YAML is of an annotated type; true for annotations not known here."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and not math.isnan(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (bool, str):
        return isinstance(value, hint)
    if hint is type(None):
        return value is None
    if origin is Literal:
        return value in parts
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is list:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if origin is dict or hint is dict:
        return isinstance(value, dict)
    return True


def _describe(hint: Any) -> str:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _NAMES:
        return _NAMES[hint]
    if origin is Literal:
        return "one of " + ", ".join(str(part) for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(part) for part in parts if part is not type(None))
    if origin is list:
        return f"a list ({_describe(parts[0])} each)"
    return "a mapping" if origin is dict or hint is dict else "another value"
