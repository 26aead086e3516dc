"""``output/metrics.json``: what the agent says its execution cost."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from pytest_agent_eval.execution.names import clean_text, plain
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.results import Usage

__all__ = ["merge_usage", "read_metrics"]

_NAME = "metrics.json"

_TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_create": "cache_create_tokens",
}


def read_metrics(data: bytes, secrets: Secrets = NO_SECRETS) -> tuple[Usage, tuple[str, ...]]:
    """The usage that a metrics file states, and a note for each thing in it that is unusable.

    Every key is optional; keys that are not known are left alone. Secrets are replaced.
    """
    try:
        raw = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Usage(), (f"{_NAME} is not UTF-8 and was ignored",)
    except json.JSONDecodeError as error:
        said = f"{_NAME} is no valid JSON and was ignored: line {error.lineno}: {error.msg}"
        return Usage(), (said,)
    except (ValueError, RecursionError):
        return Usage(), (f"{_NAME} is no usable JSON and was ignored",)
    if not isinstance(raw, dict):
        return Usage(), (f"{_NAME} is no JSON object and was ignored",)
    notes: list[str] = []
    found: dict[str, Any] = {}
    for key, check, what in _FIELDS:
        _take(found, key, secrets.value(raw.get(key)), check, what, notes)
    tokens = raw.get("token_usage")
    if isinstance(tokens, dict):
        for key, name in _TOKENS.items():
            value = secrets.value(tokens.get(key))
            _take(found, name, value, _count, "a count", notes, label=f"token_usage.{key}")
    elif tokens is not None:
        notes.append(f"{_NAME}: token_usage is no mapping and was ignored")
    return Usage(**found), tuple(notes)


def _take(
    found: dict[str, Any],
    name: str,
    value: Any,
    check: Callable[[Any], Any],
    what: str,
    notes: list[str],
    *,
    label: str = "",
) -> None:
    if value is None:
        return
    checked = check(value)
    if checked is None:
        shown = json.dumps(plain(value))[:60] if value == value else "NaN"
        notes.append(f"{_NAME}: {label or name} is {shown}, expected {what}; ignored")
    else:
        found[name] = checked


def _amount(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _count(value: Any) -> int | None:
    """A whole number; 12.0 is one as well, since some languages write every number so."""
    amount = _amount(value)
    if amount is None or amount != int(amount) or amount >= 2**63:
        return None
    return int(value)


def _text(value: Any) -> str | None:
    return clean_text(value) if isinstance(value, str) and value else None


def _texts(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return tuple(clean_text(item) for item in value)


def _per_model(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, dict) or not all(isinstance(item, dict) for item in value.values()):
        return None
    numbers = (number for item in value.values() for number in item.values())
    if any(number is not None and _amount(number) is None for number in numbers):
        return None
    result: Mapping[str, Any] = plain(value)
    return result


def _turns(value: Any) -> Mapping[str, int] | None:
    if not isinstance(value, dict):
        return None
    counts = {clean_text(model): _count(turns) for model, turns in value.items()}
    if any(turns is None for turns in counts.values()):
        return None
    return {model: turns for model, turns in counts.items() if turns is not None}


_FIELDS: tuple[tuple[str, Callable[[Any], Any], str], ...] = (
    ("cost_usd", _amount, "a number of dollars"),
    ("num_turns", _count, "a count"),
    ("model", _text, "a model name"),
    ("models_used", _texts, "a list of model names"),
    ("per_model_usage", _per_model, "a mapping of model names to mappings of numbers"),
    ("per_model_turns", _turns, "a mapping of model names to counts"),
)


def merge_usage(first: Usage, second: Usage) -> Usage:
    """What the first knows, completed by the second."""
    values = {}
    for field in fields(Usage):
        value = getattr(first, field.name)
        unknown = value is None or value == () or value == {}
        values[field.name] = getattr(second, field.name) if unknown else value
    return Usage(**values)
