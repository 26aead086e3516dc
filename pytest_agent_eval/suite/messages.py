"""Saying in plain words what pydantic found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from pytest_agent_eval.suite.findings import Place
from pytest_agent_eval.suite.models.suite import SuiteConfig

__all__ = ["explain", "model_in", "nearest", "shown"]

_LIMITS = {
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "of at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "of at most {le:g}",
}
_TYPES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "model_type": "a mapping",
    "mapping_type": "a mapping",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
}


def explain(
    error: ErrorDetails,
    judge_kinds: frozenset[str] = frozenset(),
    *,
    root: type[BaseModel] = SuiteConfig,
) -> tuple[Place, str]:
    """Where and what: the place as it is in the file, and one sentence.

    Args:
        error: of pydantic.
        judge_kinds: keys that a judge's entry may have besides its own.
        root: the model of the whole file.
    """
    place = error["loc"]
    kind, value, ctx = error["type"], error["input"], error.get("ctx", {})
    if place[-1:] == ("[key]",):
        place, kind = place[:-1], "invalid_key"
    if kind == "missing":
        return place, "missing; it is required"
    if kind == "invalid_key":
        # Only the input has the key as it is: the location turns true into 1.
        return (*place[:-1], value), f"a key must be a string, not {shown(value)}; quote it"
    if kind == "extra_forbidden":
        known = _keys_at(root, place[:-1])
        if place[:-1] and place[0] == "judges" and len(place) == 3:
            known = known | judge_kinds
        return place, f"unknown key{nearest(str(place[-1]), known, what='keys here')}"
    if kind == "literal_error":
        options = ", ".join(re.findall(r"'([^']*)'", str(ctx["expected"])))
        hint = "; quote it" if isinstance(value, bool) else ""
        return place, f"must be one of {options}, not {shown(value)}{hint}"
    if kind in _LIMITS:
        number = "number" if isinstance(value, float) or _wants_float(ctx) else "whole number"
        return place, f"must be a {number} {_LIMITS[kind].format(**ctx)}, not {shown(value)}"
    if kind in _TYPES:
        return place, f"must be {_TYPES[kind]}, not {shown(value)}{_hint(kind, value)}"
    if "error" in ctx:
        return place, str(ctx["error"])
    return place, f"{error['msg'][:1].lower()}{error['msg'][1:]}, not {shown(value)}"


def shown(value: Any) -> str:
    """A value as its author wrote it, briefly."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, date):
        return f"the date {value}"
    if isinstance(value, bytes):
        return "binary data"
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a very large number"


def nearest(name: str, known: Iterable[str], *, what: str = "") -> str:
    """``; did you mean X?``, or ``; keys here: ...`` with all that there are."""
    known = sorted(known)
    # "min_pass" is likelier a cut-off "min_pass_rate" than a misspelt "min_cases".
    close = [item for item in known if len(name) > 3 and item.startswith(name)]
    close = close or get_close_matches(name, known, n=1, cutoff=0.6)
    if not close:
        close = [item for item in known if item.casefold() == name.casefold()]
    if close:
        return f"; did you mean {close[0]}?"
    return f"; {what}: {', '.join(known)}" if what and known else ""


def _wants_float(ctx: Mapping[str, Any]) -> bool:
    return any(isinstance(limit, float) for limit in ctx.values())


def _hint(kind: str, value: Any) -> str:
    if kind == "string_type":
        if value is None:
            return '; write "" for an empty string'
        if isinstance(value, bool | int | float | date):
            return f'; quote it: "{shown(value).removeprefix("the date ")}"'
    if kind in ("int_type", "float_type", "bool_type") and isinstance(value, str) and value:
        plain = "true" if kind == "bool_type" else "3"
        return f"; write it without quotes, such as {plain}"
    return ""


@lru_cache(maxsize=256)
def _keys_at(root: type[BaseModel], place: Place) -> frozenset[str]:
    """The keys that the block at a place may have."""
    model: type[BaseModel] | None = root
    for part in place:
        if model is None:
            break
        if isinstance(part, int):
            continue
        for name, field in model.model_fields.items():
            if (field.alias or name) == part:
                model = model_in(field.annotation)
                break
        # Otherwise the part is a key of the author's own, such as a judge's name in thresholds.
    return frozenset(
        field.alias or name for name, field in (model.model_fields if model else {}).items()
    )


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The block inside a field's type: itself, or what a list or a mapping holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = model_in(argument)
        if found is not None:
            return found
    return None
