"""One run against an earlier one, judge by judge, over the cases that both have.

The unit is the case, its trials averaged first; the cluster is the group, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pytest_agent_eval.evidence.aggregate import (
    SPLITS,
    CaseScore,
    JudgeInfo,
    clusters_of,
    scores_by_case,
)
from pytest_agent_eval.evidence.intervals import Interval, NoInterval
from pytest_agent_eval.evidence.means import mean_interval
from pytest_agent_eval.evidence.paired import (
    fewest_discordant,
    holm,
    newcombe_paired,
    sign_flip_p,
    smallest_mean_difference,
)
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.suite.known import PAIRWISE

__all__ = ["ALPHA", "Comparison", "Outcome", "adjusted", "compare", "compare_scores"]

Outcome = Literal["better", "worse", "no difference shown", "not compared"]
Kind = Literal["rate", "mean", "none"]
ALPHA = 0.05
"""A difference is shown if its p value, adjusted for all that were looked at, is at most this."""
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one judge said in this run against what it said in the baseline.

    Attributes:
        judge: its name.
        split: ``dev``, ``holdout`` or ``all``.
        kind: ``rate`` (booleans), ``mean`` (numbers), ``none``.
        outcome: ``better`` or ``worse`` where ``p_adjusted`` is at most :data:`ALPHA`; ``not
            compared`` where no case has a value in both runs, or values of two kinds.
        pairs: cases with a value in both runs.
        new, old: pass rate or mean over the pairs, of this run and of the baseline.
        difference: new minus old.
        interval: of the difference; None when there is none.
        no_interval: why there is none; empty otherwise.
        p: two-sided p value of no difference; None where nothing was compared.
        p_adjusted: the same, adjusted for the judges and variants that were compared (Holm).
        smallest: the smallest difference that this many pairs could have shown; None if none.
        improved, regressed: cases whose value is higher, or lower, in their order.
        only_new, only_old: cases with a value in one of the runs only.
        unvalidated: the judge agrees with its human labels no better than chance.
    """

    judge: str
    split: str
    kind: Kind = "none"
    outcome: Outcome = "not compared"
    pairs: int = 0
    new: float | None = None
    old: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    no_interval: str = ""
    p: float | None = None
    p_adjusted: float | None = None
    smallest: float | None = None
    improved: tuple[str, ...] = ()
    regressed: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()
    only_old: tuple[str, ...] = ()
    unvalidated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types: what summary.yaml shows of it."""
        data: dict[str, Any] = {
            "outcome": self.outcome,
            "pairs": self.pairs,
            "new": self.new,
            "old": self.old,
            "difference": self.difference,
            "interval": self.interval.to_dict() if self.interval else None,
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "smallest": self.smallest,
        }
        for name in ("improved", "regressed", "only_new", "only_old"):
            if cases := getattr(self, name):
                data[name] = list(cases)
        if self.no_interval:
            data["no_interval"] = self.no_interval
        if self.unvalidated:
            data["unvalidated"] = True
        return data


def compare(
    new: Iterable[TrialResult],
    old: Iterable[TrialResult],
    judges: Sequence[JudgeInfo],
    *,
    confidence: float = 0.95,
    unvalidated: Iterable[str] = (),
) -> tuple[Comparison, ...]:
    """Compare two runs of one suite, or of one variant of it, or two variants.

    Args:
        new: results of this run, each trial once, in any order.
        old: those of the baseline; they are paired by the case's name.
        judges: those to compare, in their order; ``pairwise`` compares by itself and is left out.
        confidence: of the intervals.
        unvalidated: names of judges without better agreement with people than chance.

    Returns:
        For each judge one comparison a split that has a case, and one of ``all``. ``p_adjusted``
        is that within the judges; :func:`adjusted` takes more of them together.
    """
    compared = [judge for judge in judges if judge.kind != PAIRWISE]
    new_scores, old_scores = scores_by_case(new, compared), scores_by_case(old, compared)
    doubtful = frozenset(unvalidated)
    found = [
        replace(one, unvalidated=judge.name in doubtful)
        for judge in compared
        for one in _of_judge(judge, new_scores[judge.name], old_scores[judge.name], confidence)
    ]
    return adjusted([found])[0]


def adjusted(several: Sequence[Sequence[Comparison]]) -> list[tuple[Comparison, ...]]:
    """The comparisons with what they show, their p values adjusted for each other split by split:
    of all judges, and of all variants whose comparisons are given.
    """
    changed: dict[tuple[int, int], Comparison] = {}
    for split in SPLITS:
        places = [
            (part, place)
            for part, comparisons in enumerate(several)
            for place, one in enumerate(comparisons)
            if one.split == split and one.p is not None
        ]
        values = holm([several[part][place].p or 0.0 for part, place in places])
        for (part, place), value in zip(places, values, strict=True):
            one = several[part][place]
            changed[part, place] = replace(one, p_adjusted=value, outcome=_outcome(one, value))
    return [
        tuple(changed.get((part, place), one) for place, one in enumerate(comparisons))
        for part, comparisons in enumerate(several)
    ]


def _outcome(one: Comparison, p: float) -> Outcome:
    if p > ALPHA or not one.difference:
        return "no difference shown"
    return "better" if one.difference > 0 else "worse"


_Scores = Mapping[str, CaseScore]


def _of_judge(judge: JudgeInfo, new: _Scores, old: _Scores, confidence: float) -> list[Comparison]:
    splits = {case: score.split for case, score in (*old.items(), *new.items()) if score.scored}
    present = [split for split in ("dev", "holdout") if split in splits.values()]
    return [
        compare_scores(
            judge,
            split,
            {c: s for c, s in new.items() if split in ("all", splits.get(c))},
            {c: s for c, s in old.items() if split in ("all", splits.get(c))},
            confidence,
        )
        for split in (*present, "all")
    ]


def compare_scores(
    judge: JudgeInfo, split: str, new: _Scores, old: _Scores, confidence: float = 0.95
) -> Comparison:
    """Compare the given scores of one judge, by case; ``split`` is only a label. ``outcome`` is
    that of this comparison alone.
    """
    with_new = [case for case, score in new.items() if score.scored]
    with_old = [case for case, score in old.items() if score.scored]
    common = [case for case in with_new if case in old and old[case].scored]
    kept = frozenset(common)
    base = Comparison(
        judge.name,
        split,
        pairs=len(common),
        only_new=tuple(case for case in with_new if case not in kept),
        only_old=tuple(case for case in with_old if case not in kept),
    )
    if not common:
        return replace(base, no_interval="no case has a value in both runs")
    pairs = [(new[case], old[case]) for case in common]
    every = [score for pair in pairs for score in pair]
    booleans = any(score.booleans for score in every)
    if booleans and any(score.numbers for score in every):
        return replace(base, no_interval="booleans and numbers are mixed")
    values = [(_value(one), _value(other)) for one, other in pairs]
    if not all(math.isfinite(value) for pair in values for value in pair):
        return replace(base, kind="mean", no_interval="a value is too large to average")
    differences = [one - other for one, other in values]
    clusters = clusters_of([pair[0] for pair in pairs], differences)
    interval, smallest = (
        _of_booleans(pairs, clusters, confidence)
        if booleans
        else _of_numbers(judge, clusters, confidence)
    )
    p = sign_flip_p([total for total, _ in clusters])
    found = replace(
        base,
        kind="rate" if booleans else "mean",
        new=math.fsum(one for one, _ in values) / len(values),
        old=math.fsum(other for _, other in values) / len(values),
        difference=math.fsum(differences) / len(differences),
        interval=interval if isinstance(interval, Interval) else None,
        no_interval=interval.reason if isinstance(interval, NoInterval) else "",
        p=p,
        p_adjusted=p,
        smallest=smallest,
        improved=_moved(common, differences, 1),
        regressed=_moved(common, differences, -1),
    )
    return replace(found, outcome=_outcome(found, p))


def _value(score: CaseScore) -> float:
    if score.booleans:
        return score.passes / score.booleans
    return score.total / score.numbers


def _moved(cases: Sequence[str], differences: Sequence[float], sign: int) -> tuple[str, ...]:
    return tuple(
        case for case, moved in zip(cases, differences, strict=True) if sign * moved > _SAME
    )


_Pairs = Sequence[tuple[CaseScore, CaseScore]]
_Found = tuple[Interval | NoInterval, float | None]


def _of_booleans(pairs: _Pairs, clusters: Sequence[tuple[float, int]], confidence: float) -> _Found:
    """The interval, and the least difference: as many clusters as it takes move by one trial."""
    trials = max(score.booleans for pair in pairs for score in pair)
    fewest = fewest_discordant(confidence)
    smallest = fewest / trials / len(pairs) if len(clusters) >= fewest else None
    if trials > 1 or len(clusters) < len(pairs):
        return mean_interval(clusters, confidence, (-1.0, 1.0)), smallest
    counts = {(one, other): 0 for one in (False, True) for other in (False, True)}
    for one, other in pairs:
        counts[bool(one.passes), bool(other.passes)] += 1
    table = (counts[True, True], counts[True, False], counts[False, True], counts[False, False])
    return newcombe_paired(*table, confidence), smallest


def _of_numbers(
    judge: JudgeInfo, clusters: Sequence[tuple[float, int]], confidence: float
) -> _Found:
    width = judge.score_range[1] - judge.score_range[0] if judge.score_range else math.inf
    inside = all(abs(total) <= width * size for total, size in clusters)
    scale = (-width, width) if math.isfinite(width) and inside else None
    return (
        mean_interval(clusters, confidence, scale),
        smallest_mean_difference(clusters, confidence),
    )
