"""Gates: bounds on aggregates (``thresholds:``), decided once after the last case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_agent_eval.evidence.aggregate import Aggregate, CaseScore, JudgeInfo, combine
from pytest_agent_eval.evidence.comparison import compare_scores
from pytest_agent_eval.evidence.intervals import Interval, NoInterval, wilson
from pytest_agent_eval.suite.known import PAIRWISE

__all__ = ["GATE_KEYS", "Coverage", "Gate", "GateMode", "Outcome", "decide_gates"]

GateKey = Literal[
    "min_mean", "min_pass_rate", "min_win_rate", "max_error_rate", "max_drop", "min_cases"
]
GATE_KEYS: tuple[GateKey, ...] = (
    "min_mean",
    "min_pass_rate",
    "min_win_rate",
    "max_error_rate",
    "max_drop",
    "min_cases",
)
GateMode = Literal["complete", "always", "never"]
"""``complete``: decide only where every case has a result. ``always``: decide with what there is.
``never``: decide nothing."""
Outcome = Literal["passed", "missed", "not decided"]

TOLERANCE = 1e-12
"""Equality passes; a mean of shares such as 1/3 must not miss its bound by a rounding error."""

NO_BASELINE = "no --agent-eval-baseline RUN"

Scores = Mapping[str, Mapping[str, CaseScore]]
"""Judge -> case -> what the judge said, from
:func:`~pytest_agent_eval.evidence.aggregate.scores_by_case`."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a suite, or of one variant of it, ran, by split (``dev``, ``holdout``), in cases.

    Attributes:
        total: cases of the dataset, after the suite's own filters.
        selected: those that the user's selection left.
        finished: those with a result.
        half: the split that was asked for, which is then all that a gate without a split is
            about; None when none was.
        left_out: of those without a result the ones that lack it, or that of one of their trials,
            because the session's budget was spent.
    """

    total: Mapping[str, int]
    selected: Mapping[str, int]
    finished: Mapping[str, int]
    half: str | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def gap(self, split: str | None) -> str:
        """What is missing for a gate on ``split`` (None: on all cases), or empty.

        Asking for one split is not a partial selection: a gate that names no split is then
        decided on that half.
        """
        half = split or self.half
        halves = list(self.total) if half is None else [half]
        what = "cases" if half is None else f"{half} cases"
        total, selected, finished = (
            sum(counts.get(half, 0) for half in halves)
            for counts in (self.total, self.selected, self.finished)
        )
        if selected < total:
            return f"{selected} of {total} {what} selected"
        if finished < selected:
            reason = f"{finished} of {selected} {what} have a result"
            if any(self.left_out.get(half, 0) for half in halves):
                return f"incomplete: {reason}, the session's budget is spent"
            return reason
        return ""


@dataclass(frozen=True, slots=True)
class Gate:
    """One bound and whether it holds.

    Attributes:
        suite: the suite's key.
        judge, key, bound: what is bounded, e.g. ``answer``, ``min_mean``, 3.5.
        value: the metric; None when it is missing or was not looked at.
        interval: of the metric, at ``confidence`` if that is set, else at 95 %; None if none.
        cases: how many the metric is over.
        outcome: ``passed``, ``missed`` or ``not decided``.
        reason: why it was missed without a value, missed by its interval, or not decided.
        split: ``dev``, ``holdout``, or None for all cases.
        confidence: that the interval must clear the bound at, or None for the point estimate.
        variant: of the suite, or None where it has none.
        unvalidated: the judge agrees with its human labels no better than chance.
        part: ``category=billing`` where the judge has a gate for each category or tag value.
    """

    suite: str
    judge: str
    key: GateKey
    bound: float
    value: float | None
    interval: Interval | None
    cases: int
    outcome: Outcome
    reason: str = ""
    split: str | None = None
    confidence: float | None = None
    variant: str | None = None
    unvalidated: bool = False
    part: str = ""

    @property
    def name(self) -> str:
        """The judge, with ``[category=billing]`` where it is one gate of several, and with
        ``[variant]`` where the suite has variants.
        """
        name = f"{self.judge}[{self.part}]" if self.part else self.judge
        return f"{name} [{self.variant}]" if self.variant else name

    @property
    def operator(self) -> str:
        """``>=`` or ``<=``."""
        return "<=" if self.key.startswith("max_") else ">="

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types: what summary.yaml shows of it."""
        data: dict[str, Any] = {
            "judge": self.judge,
            "key": self.key,
            "bound": self.bound,
            "outcome": self.outcome,
            "value": self.value,
            "interval": self.interval.to_dict() if self.interval else None,
            "cases": self.cases,
        }
        if self.variant:
            data["variant"] = self.variant
        if self.part:
            data["part"] = self.part
        if self.split:
            data["split"] = self.split
        if self.confidence is not None:
            data["confidence"] = self.confidence
        if self.reason:
            data["reason"] = self.reason
        if self.unvalidated:
            data["unvalidated"] = True
        return data


def decide_gates(
    suite: str,
    thresholds: Mapping[str, Mapping[str, Any]],
    judges: Sequence[JudgeInfo],
    scores: Scores,
    coverage: Coverage,
    *,
    mode: GateMode = "complete",
    baseline: str = "",
    old: Scores | None = None,
    parts: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Gate, ...]:
    """Decide all gates of one suite, in the order of ``thresholds`` and of :data:`GATE_KEYS`.

    Args:
        suite: the suite's key.
        thresholds: judge name -> keys of :data:`GATE_KEYS` and the modifiers ``split``,
            ``confidence`` and ``by``; null values and other keys are left out.
        judges: of the suite.
        scores: of this run.
        coverage: how much of the suite ran.
        mode: whether a partial run decides gates.
        baseline: the run that this one is compared with; without it no gate of ``pairwise`` and no
            ``max_drop`` is decided, whatever the mode.
        old: scores of the baseline.
        parts: ``category`` or a tag's key -> case -> its value, for ``by``.
    """
    known = {judge.name: judge for judge in judges}
    gates = []
    for name, keys in thresholds.items():
        split = keys.get("split")
        gap = {"always": "", "never": "gates are switched off"}.get(mode, coverage.gap(split))
        chosen = {
            case: score
            for case, score in scores.get(name, {}).items()
            if split is None or score.split == split
        }
        judge = known.get(name, JudgeInfo(name))
        for part, members in _parts(chosen, keys.get("by"), parts or {}):
            asked = _Asked(suite, judge, keys, members, part, (old or {}).get(name, {}))
            for key in GATE_KEYS:
                if keys.get(key) is None:
                    continue
                needs = (name == PAIRWISE or key == "max_drop") and mode != "never"
                reason = NO_BASELINE if needs and not baseline else gap
                gates.append(asked.undecided(key, reason) if reason else asked.decide(key))
    return tuple(gates)


def _parts(
    scores: Mapping[str, CaseScore], by: str | None, parts: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, Mapping[str, CaseScore]]]:
    """Name and cases of each part, values in their order; all cases without ``by``. Cases that lack
    the category or tag are a part of their own, so that none is dropped in silence.
    """
    if by is None:
        return [("", scores)]
    values = parts.get(by, {})
    found: dict[str, dict[str, CaseScore]] = {}
    for case, score in scores.items():
        found.setdefault(values.get(case, ""), {})[case] = score
    return [
        (f"{by}={value}" if value else f"no {by}", found[value])
        for value in sorted(found, key=lambda value: (not value, value))
    ] or [("", scores)]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One judge, or one part of its cases, whose bounds are looked at."""

    suite: str
    judge: JudgeInfo
    keys: Mapping[str, Any]
    scores: Mapping[str, CaseScore]
    part: str
    old: Mapping[str, CaseScore]

    def undecided(self, key: GateKey, reason: str) -> Gate:
        return self._gate(key, None, None, 0, "not decided", reason)

    def decide(self, key: GateKey) -> Gate:
        confidence = self.keys.get("confidence")
        split = self.keys.get("split") or "all"
        if key == "max_drop":
            value, interval, cases, missing = self._drop(split, confidence or 0.95)
        else:
            found = combine(self.judge, split, [*self.scores.values()], confidence or 0.95)
            value, interval, cases, missing = _metric(key, found, confidence or 0.95)
        if value is None:
            return self._gate(key, None, interval, cases, "missed", missing)
        outcome, reason = _compare(key, self.keys[key], value, interval, missing, confidence)
        return self._gate(key, value, interval, cases, outcome, reason)

    def _drop(
        self, split: str, confidence: float
    ) -> tuple[float | None, Interval | None, int, str]:
        """How much lower the judge's rate or mean is than in the baseline, over the same cases."""
        found = compare_scores(self.judge, split, self.scores, self.old, confidence)
        if found.difference is None:
            return None, None, found.pairs, found.no_interval
        rise = found.interval
        drop = replace(rise, low=-rise.high, high=-rise.low) if rise is not None else None
        return -found.difference, drop, found.pairs, found.no_interval

    def _gate(
        self,
        key: GateKey,
        value: float | None,
        interval: Interval | None,
        cases: int,
        outcome: Outcome,
        reason: str,
    ) -> Gate:
        return Gate(
            self.suite,
            self.judge.name,
            key,
            self.keys[key],
            value,
            interval,
            cases,
            outcome,
            reason,
            self.keys.get("split"),
            self.keys.get("confidence"),
            part=self.part,
        )


def _metric(
    key: GateKey, found: Aggregate, confidence: float
) -> tuple[float | None, Interval | None, int, str]:
    """Value, interval, number of cases and the reason why the value, or the interval, is None."""
    if key == "min_cases":
        return float(found.scored), None, found.scored, ""
    if key == "max_error_rate":
        judged = found.cases - found.skipped
        if found.error_rate is None:
            return None, None, 0, _nothing(found)
        interval = wilson(min(judged, found.error_rate * judged), judged, confidence)
        return found.error_rate, _or_none(interval), judged, ""
    if found.kind == "mixed":
        return None, None, found.scored, "the judge gave booleans and numbers"
    if found.value is None:
        return None, None, 0, _nothing(found)
    if key == "min_win_rate" and found.kind != "wins":
        return None, None, found.scored, f"only {PAIRWISE} has a win rate"
    if key == "min_pass_rate" and found.kind != "rate":
        return None, None, found.scored, "the judge gave numbers, which have no pass rate"
    return found.value, found.interval, found.scored, found.no_interval


def _or_none(interval: Interval | NoInterval) -> Interval | None:
    return interval if isinstance(interval, Interval) else None


def _nothing(found: Aggregate) -> str:
    if found.scored:
        return found.no_interval
    if not found.cases:
        return "no case has a verdict of this judge"
    parts = [
        f"{count} {word}"
        for count, word in (
            (found.errored, "judge error" if found.errored == 1 else "judge errors"),
            (found.skipped, "skipped"),
        )
        if count
    ]
    return f"no case was scored ({', '.join(parts)})"


def _compare(
    key: GateKey,
    bound: float,
    value: float,
    interval: Interval | None,
    no_interval: str,
    confidence: float | None,
) -> tuple[Outcome, str]:
    upper = key.startswith("max_")
    if confidence is None or key == "min_cases":
        return ("passed" if _holds(value, bound, upper) else "missed"), ""
    if interval is None:
        return "missed", f"no interval: {no_interval}"
    edge = interval.high if upper else interval.low
    if _holds(edge, bound, upper):
        return "passed", ""
    end = "upper" if upper else "lower"
    return "missed", f"the {end} end at {100 * confidence:g} % does not clear it"


def _holds(value: float, bound: float, upper: bool) -> bool:
    return value <= bound + TOLERANCE if upper else value >= bound - TOLERANCE
