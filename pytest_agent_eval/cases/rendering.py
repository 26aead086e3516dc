"""How a value of a case's input is written where a text is wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, time
from typing import Any

from pytest_agent_eval.errors import TemplateError

__all__ = ["to_json", "to_text"]


def to_text(value: Any) -> str:
    """A text as it is; ``3``, ``true``, ``null``; dates in ISO 8601; the rest as JSON.

    Raises:
        TemplateError: the value is no data (a method, for instance).
    """
    if isinstance(value, str):
        return value
    return _plain(value) if isinstance(value, date | time | bytes) else to_json(value)


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON in which nothing is escaped that JSON does not ask for; dates are ISO 8601 texts.

    Raises:
        TemplateError: the value, or a part of it, is no data.
    """
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain, indent=indent)
    except TypeError:  # a key that is no text: YAML allows a date there
        return json.dumps(_with_text_keys(value), ensure_ascii=False, default=_plain, indent=indent)
    except (ValueError, RecursionError) as error:
        raise TemplateError(f"a value cannot be written as JSON: {error}") from None


def _plain(value: Any) -> Any:
    """What JSON has no form for."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    raise TemplateError(f"{type(value).__name__} is no value that can be written out")


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {to_text(key): _with_text_keys(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text_keys(item) for item in value]
    return value
