"""What a model or an agent answered, as a value: one answer, and the one of several samples."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Answer", "Sampled", "read_verdict", "sampled"]

Answer = tuple[bool | int | float, str]
"""A value and its rationale."""


def read_verdict(found: Mapping[str, Any], kind: str) -> Answer:
    """The value and the rationale of an object that a model submitted.

    Args:
        found: the object.
        kind: ``bool``, ``int`` or ``float``; an ``int`` is rounded to the nearest.

    Raises:
        ValueError: it holds no value of this kind.
    """
    key = "passed" if kind == "bool" else "score"
    if key not in found:
        raise ValueError(f"there is no {key} in it")
    given = found[key]
    value: bool | int | float = _bool(given) if kind == "bool" else _number(given)
    if kind == "int":
        value = math.floor(value + 0.5)
    rationale = found.get("rationale", "")
    return value, rationale if isinstance(rationale, str) else json.dumps(rationale)


def _bool(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    text = str(given).strip().lower()
    if text in ("true", "yes", "1"):
        return True
    if text in ("false", "no", "0"):
        return False
    raise ValueError(f"passed is neither true nor false: {given!r:.80}")


def _number(given: Any) -> int | float:
    if isinstance(given, str):
        try:
            given = float(given)
        except ValueError:
            raise ValueError(f"score is no number: {given!r:.80}") from None
        given = int(given) if math.isfinite(given) and given == int(given) else given
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError(f"score is no number: {given!r:.80}")
    if not math.isfinite(given):
        raise ValueError("score is not finite")
    return given


class Sampled(NamedTuple):
    """What several answers come to.

    Attributes:
        value: the majority, where a tie fails, or the median.
        rationale: of an answer that said so, or was nearest.
        spread: ``values`` with ``agreement``, or with ``lowest`` and ``highest``; empty for one.
    """

    value: bool | int | float
    rationale: str
    spread: Mapping[str, Any]


def sampled(answers: Sequence[Answer]) -> Sampled:
    """What the answers to one question come to; there is at least one."""
    values = [value for value, _ in answers]
    value: bool | int | float
    spread: dict[str, Any]
    if isinstance(values[0], bool):
        yes = sum(values)
        value = yes * 2 > len(values)
        spread = {"agreement": max(yes, len(values) - yes) / len(values)}
    else:
        # Between two whole numbers there is none: the lower one counts.
        whole = all(isinstance(value, int) for value in values)
        value = statistics.median_low(values) if whole else statistics.median(values)
        spread = {"lowest": min(values), "highest": max(values)}
    nearest = min(answers, key=lambda answer: abs(answer[0] - value))
    return Sampled(value, nearest[1], {"values": values, **spread} if len(values) > 1 else {})
