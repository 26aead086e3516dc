"""What a judge answered -> the verdict that is stored.

An answer that is no verdict becomes a *judge error*: never a pass, never the lowest score, never
a value moved into its range.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.errors import ConditionError
from pytest_agent_eval.results import Value, Verdict

if TYPE_CHECKING:
    from pytest_agent_eval.cases.conditions import Condition

__all__ = ["MAX_RATIONALE", "error_verdict", "shorten", "to_verdict"]

MAX_RATIONALE = 20_000
"""Characters of a rationale, an error's detail or a difference that are kept."""

_RETURN = "return True, False or a number, or (value, rationale)"


class _NoVerdict(Exception):
    """The answer is no verdict; the message says why, in one sentence."""


def to_verdict(
    answer: Any,
    *,
    name: str,
    feedback_type: str | None = None,
    score_range: Sequence[float] | None = None,
    pass_if: Condition | None = None,
) -> Verdict:
    """The verdict that an answer means; never raises for a wrong answer.

    Args:
        answer: a bare value, ``(value, rationale)``, or an object with ``value`` and
            ``rationale`` (a Verdict is one; its ``skipped`` and ``error`` are kept).
        name: the judge's name.
        feedback_type: ``bool`` (1 and 0 are booleans then), ``int``, ``float``, or None: any.
        score_range: lowest and highest value; a boolean counts as 1 or 0 in it.
        pass_if: condition over ``value``: what makes a number an assertion.

    Returns:
        A verdict with a value, or one with ``skipped`` or ``error``.
    """
    rationale: Any = ""
    try:
        if isinstance(answer, tuple) and len(answer) == 2:
            given, rationale = answer
        elif isinstance(answer, tuple):
            raise _NoVerdict(f"wrong shape: a tuple of {len(answer)} values; {_RETURN}")
        elif isinstance(answer, Verdict):
            if answer.skipped or answer.error:
                return _without_value(answer, name)
            given, rationale = answer.value, answer.rationale
        elif hasattr(answer, "value") and not isinstance(answer, numbers.Number):
            if getattr(answer, "skipped", False) is True:
                return Verdict(
                    name, rationale=_text(getattr(answer, "rationale", "")), skipped=True
                )
            given, rationale = answer.value, getattr(answer, "rationale", "")
        else:
            given = answer
        value = _in_range(_typed(_plain(given), feedback_type), feedback_type, score_range)
        passed = value if isinstance(value, bool) else None
        if pass_if is not None:
            passed = bool(pass_if.evaluate({"value": value}))
    except (_NoVerdict, ConditionError) as error:
        verdict = error_verdict(name, str(error), rationale=_text(rationale))
        return replace(verdict, asked=answer.asked) if isinstance(answer, Verdict) else verdict
    detail, asked = (answer.detail, answer.asked) if isinstance(answer, Verdict) else ("", {})
    return Verdict(name, value, _text(rationale), passed, detail=shorten(detail), asked=asked)


def error_verdict(name: str, error: str, *, rationale: str = "", detail: str = "") -> Verdict:
    """A judge error: one sentence, and more text for a person."""
    return Verdict(name, rationale=rationale, error=error, detail=shorten(detail))


def shorten(text: str, limit: int = MAX_RATIONALE) -> str:
    """The text, or its beginning and how much was left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} ... ({len(text) - limit:,} more characters)"


def _without_value(answer: Verdict, name: str) -> Verdict:
    """A skipped verdict or an error; an error wins, as it does wherever one is reported."""
    if answer.error:
        return replace(answer, judge=name, value=None, passed=None, skipped=False)
    return replace(answer, judge=name, value=None, passed=None)


def _plain(given: Any) -> bool | int | float:
    """A Python bool, int or float of what was given, numpy's and other libraries' included."""
    if given is None:
        raise _NoVerdict(f"no value: the judge returned None; {_RETURN}")
    kind = type(given)
    if kind is bool:
        return bool(given)
    if kind is not int and kind is not float:
        given = _from_library(given)
    try:
        finite = math.isfinite(given)
    except OverflowError:
        finite = False
    if not finite:
        raise _NoVerdict(f"the value {_show(given)} is not finite")
    return given  # type: ignore[no-any-return]


def _from_library(given: Any) -> bool | int | float:
    # An array of no dimensions is a scalar to numpy and torch; their booleans are no `numbers`.
    if getattr(given, "shape", None) == () and callable(getattr(given, "item", None)):
        given = given.item()
    if isinstance(given, bool):
        return given
    if isinstance(given, numbers.Integral):
        return int(given)
    if isinstance(given, numbers.Number) and hasattr(given, "__float__"):
        try:
            return float(given)
        except OverflowError:
            return math.inf
        except (TypeError, ValueError):
            pass
    raise _NoVerdict(f"wrong type: {_show(given)} is of type {type(given).__name__}; {_RETURN}")


def _typed(value: bool | int | float, feedback_type: str | None) -> bool | int | float:
    """The value as the declared type, if it is one without loss."""
    if feedback_type is None:
        return value
    is_bool = isinstance(value, bool)
    if feedback_type == "bool":
        if is_bool or value in (0, 1):
            return bool(value)
    elif feedback_type == "int":
        if not is_bool and value == int(value):
            return int(value)
    elif not is_bool:
        return float(value)
    raise _NoVerdict(f"wrong type: {_show(value)} is no {feedback_type}, the judge's feedback_type")


def _in_range(
    value: bool | int | float, feedback_type: str | None, score_range: Sequence[float] | None
) -> Value:
    if score_range is None:
        return value
    if isinstance(value, bool) and feedback_type is None:
        value = int(value)  # a range says that the judge gives numbers
    low, high = score_range
    if not low <= value <= high:
        raise _NoVerdict(f"the value {_show(value)} is outside score_range [{low:g}, {high:g}]")
    return value


def _show(value: Any) -> str:
    """A short repr; some values refuse to be shown (an int of 5,000 digits)."""
    try:
        return shorten(repr(value), 80)
    except Exception:
        return f"of type {type(value).__name__}"


def _text(rationale: Any) -> str:
    if isinstance(rationale, str):
        return shorten(rationale)
    if rationale is None:
        return ""
    if isinstance(rationale, bytes):
        return shorten(rationale.decode(errors="replace"))
    try:
        return shorten(str(rationale))
    except Exception as error:
        return f"(a rationale that cannot be shown: {type(error).__name__})"
