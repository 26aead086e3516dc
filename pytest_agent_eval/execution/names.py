"""Text from an agent, made fit to be stored and printed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["clean_text", "plain", "printable", "to_json"]


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD; most text is returned as it is.

    JSON with a lone surrogate is refused by many readers, and no file can be written with one.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def printable(name: str) -> str:
    r"""A file name for people: control characters and undecodable bytes as ``\x1b``."""
    if name.isprintable():
        return name
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in name
    )


_DEEP = 100


def plain(value: Any, depth: int = 0) -> Any:
    """The value with JSON types only: NaN and infinities become null, unknown types text.

    What is nested deeper than 100 levels, or contains itself, is cut there with ``"..."``.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (Mapping, list, tuple, set, frozenset)) and depth >= _DEEP:
        return "..."
    if isinstance(value, Mapping):
        return {clean_text(str(key)): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    return clean_text(str(value))


def to_json(value: Any) -> str:
    """Valid JSON on one line, in ASCII, for anything."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(", ", ": "))
    except (TypeError, ValueError, RecursionError):
        pass  # not what JSON knows: worth the walk
    else:
        if "\\ud" not in text:  # no surrogate, lone or one of a pair
            return text
    return json.dumps(plain(value), allow_nan=False, separators=(", ", ": "))
