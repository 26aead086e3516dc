"""One stored trial as one line of JSON, and back.

A line is ``{"v": 1, ...}`` with the keys of ``TrialResult.to_dict``. It is JSON that every parser
accepts: no NaN, no lone surrogate, whatever an agent printed.
"""

from __future__ import annotations

import json
import math
from typing import Any

from pytest_agent_eval.results import TrialResult

__all__ = ["SCHEMA_VERSION", "TrialKey", "decode_line", "encode_line", "sanitised", "trial_key"]

SCHEMA_VERSION = 1

TrialKey = tuple[str, str, str | None, int]
"""Suite, case, variant, trial: what a trial is known by."""


def trial_key(result: TrialResult) -> TrialKey:
    """What a trial is known by; several attempts of it share the key."""
    return (result.suite, result.case, result.variant, result.trial)


def encode_line(result: TrialResult, earlier: tuple[TrialResult, ...] = ()) -> bytes:
    """The line with its newline; ``earlier`` are attempts that this one replaces.

    A value that is not finite becomes null (in a verdict: an error that says so), a lone surrogate
    its escape in text, an object that JSON does not know its ``str``.
    """
    data: dict[str, Any] = {"v": SCHEMA_VERSION, **result.to_dict()}
    if earlier:
        data["earlier"] = [attempt.to_dict() for attempt in earlier]
    try:
        return _dump(data)
    except (ValueError, TypeError):
        # UnicodeEncodeError is a ValueError. Rare, so that only such lines pay for the walk.
        return _dump(sanitised(_without_nan(data)))


def _dump(data: dict[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Valid in JSON, but some readers end a line there.
    for mark in ("\x85", "\u2028", "\u2029"):
        if mark in text:
            text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text.encode() + b"\n"


def _without_nan(data: dict[str, Any]) -> dict[str, Any]:
    for verdict in (*data["verdicts"], data["execution"]):
        value = verdict["value"] if verdict else None
        if isinstance(value, float) and not math.isfinite(value):
            verdict["value"] = None
            verdict["error"] = verdict["error"] or f"the value {value} is not finite"
    return data


def sanitised(value: Any) -> Any:
    """A copy in JSON types that can be written as UTF-8 and read by every JSON parser."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {sanitised(str(key)): sanitised(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [sanitised(item) for item in value]
    return sanitised(str(value))


def decode_line(line: bytes) -> tuple[TrialResult, tuple[TrialResult, ...], int]:
    """The trial, the attempts it replaced and the version of the line.

    Raises:
        ValueError: the line is not a stored trial; the message says why in a few words.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if not isinstance(data, dict) or not isinstance(data.get("v"), int):
        raise ValueError("not a stored trial")
    try:
        earlier = tuple(TrialResult.from_dict(item) for item in data.get("earlier", ()))
        return TrialResult.from_dict(data), earlier, data["v"]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError("a stored trial without all it needs") from None
