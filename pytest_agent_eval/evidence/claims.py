"""What a sample can and cannot show, in one sentence a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_agent_eval.evidence.aggregate import Aggregate
from pytest_agent_eval.evidence.intervals import Interval, min_all_pass_n, min_n_at_rate

__all__ = ["claims"]

_EDGES = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Rates that people ask for, where no gate names one."""


def claims(
    aggregates: Iterable[Aggregate], thresholds: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    """Sentences such as ``schema: 20 of 20 passed: the rate is above 0.84 at 95 %; a gate of 0.90
    needs 35``, for the judges whose cases all passed or whose interval contains their bound. Judges
    of which the same can be said share a sentence.
    """
    found: dict[str, list[str]] = {}
    for total in aggregates:
        bounds = thresholds.get(total.judge, {})
        if total.split != (bounds.get("split") or "all") or total.interval is None:
            continue
        keys = ("min_pass_rate", "min_mean", "min_win_rate")
        bound = next((bounds[key] for key in keys if bounds.get(key) is not None), None)
        sentence = (
            _all_passed(total, total.interval, bound)
            if total.kind == "rate" and total.value == 1.0
            else _undecided(total, total.interval, bound)
        )
        if sentence:
            mark = " (unvalidated)" if total.unvalidated else ""
            found.setdefault(sentence, []).append(total.judge + mark)
    return tuple(f"{', '.join(judges)}: {sentence}" for sentence, judges in found.items())


def _all_passed(total: Aggregate, interval: Interval, bound: float | None) -> str:
    wanted = (
        bound
        if bound is not None and bound < 1.0
        else next((edge for edge in _EDGES if edge > interval.low), None)
    )
    unit = "" if total.clusters == total.scored else " independent groups"
    sentence = (
        f"{total.scored} of {total.scored} passed: "
        f"the rate is above {interval.low:.2f} at {100 * interval.confidence:g} %"
    )
    if wanted is not None and interval.low <= wanted:
        needed = min_all_pass_n(wanted, interval.confidence)
        sentence += f"; a gate of {wanted:.2f} needs {needed}{unit}"
    return sentence


def _undecided(total: Aggregate, interval: Interval, bound: float | None) -> str:
    if bound is None or not interval.low < bound <= interval.high:
        return ""
    what = {"rate": "rate", "wins": "win rate"}.get(total.kind, "mean")
    cases = "1 case" if total.scored == 1 else f"{total.scored} cases"
    sentence = (
        f"{cases} cannot tell on which side of {bound:g} the {what} is: "
        f"{interval.low:.2f} to {interval.high:.2f} at {100 * interval.confidence:g} %"
    )
    # Groups and trials make cases worth less or more than one each: no number of cases is known.
    independent = total.clusters == total.scored and total.trials == 1
    if total.kind == "rate" and independent and total.value is not None and total.value > bound:
        needed = min_n_at_rate(total.value, bound, interval.confidence)
        sentence += f"; at {total.value:.2f}, {needed} cases could"
    return sentence
