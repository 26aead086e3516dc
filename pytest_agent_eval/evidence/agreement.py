"""How well two raters agree beyond chance: pure formulas, from the standard library alone.

Raters give one value a case. Whatever cannot be estimated is None with a reason, never a NaN, and
no interval has a width of zero.

Intervals take ``units``, the number of independent observations among the n cases: cases of one
group may be copies of each other, and then the sample says no more than that many cases would.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from pytest_agent_eval.evidence.intervals import Interval, NoInterval, wilson

__all__ = [
    "MIN_UNITS",
    "Estimate",
    "chance_agreement",
    "cohen_kappa",
    "effective_size",
    "observed_agreement",
    "quadratic_kappa",
    "ranks",
    "spearman",
]

MIN_UNITS = 8
"""Fewer independent labels than this give no interval. A judge that deals out the right number of
trues at random is right everywhere in one of C(n, k) draws: with 7 labels at best in one of 35,
which is more often than 2.5 %, with 8 in one of 70. Below 8 no result excludes chance at 95 %."""

_FLAT = "the human labels are all alike"
_CONSTANT = "the judge gave the same value everywhere"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, or why one of them is missing.

    Attributes:
        value: None when it is not defined.
        interval: None when there is none.
        reason: why there is no value, or no interval; empty otherwise.
    """

    value: float | None = None
    interval: Interval | None = None
    reason: str = ""

    @property
    def above_zero(self) -> bool:
        """There is an interval, and all of it is above 0."""
        return self.interval is not None and self.interval.low > 0.0

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types."""
        data: dict[str, Any] = {
            "value": self.value,
            "interval": self.interval.to_dict() if self.interval else None,
        }
        if self.reason:
            data["reason"] = self.reason
        return data


def effective_size(groups: Iterable[object]) -> int:
    """How many independent cases so many cases of groups are worth at worst: ``n^2 / sum(m_g^2)``,
    rounded down, with ``m_g`` the size of a group.

    That is n over the design effect of cluster samples (Kish 1965, Survey Sampling, 5.4 and 8.2)
    where all cases of a group are alike. It is the number of groups where these are equally large,
    and n where every case stands for itself.
    """
    sizes = Counter(groups).values()
    return sum(sizes) ** 2 // sum(size * size for size in sizes) if sizes else 0


def observed_agreement(
    human: Sequence[float], judge: Sequence[float], units: int, confidence: float = 0.95
) -> Estimate:
    """Share of cases with equal values, with Wilson's interval (1927) over ``units``."""
    n = len(human)
    if n == 0:
        return Estimate(reason="no case has a label and a verdict")
    share = sum(map(_same, human, judge)) / n
    if units < MIN_UNITS:
        return Estimate(share, reason=_too_few(units))
    method = "wilson" if units == n else f"wilson over {units} independent cases"
    return _estimate(share, wilson(share * units, units, confidence, method))


def chance_agreement(human: Sequence[float], judge: Sequence[float]) -> float:
    """How often two raters with these values would agree if they were independent:
    ``sum_v p_human(v) * p_judge(v)`` (Cohen 1960). At least one case.
    """
    n = len(human)
    others = Counter(judge)
    return math.fsum(count * others[value] for value, count in Counter(human).items()) / (n * n)


def cohen_kappa(
    human: Sequence[float], judge: Sequence[float], units: int, confidence: float = 0.95
) -> Estimate:
    """Cohen's kappa (1960) of booleans: ``(p_o - p_e) / (1 - p_e)``, observed and chance agreement.

    Interval: ``kappa +- z * SE``, SE the large-sample one of Fleiss, Cohen and Everitt (1969), but
    nowhere narrower than Wilson's interval of p_o put through the formula with p_e held fixed. SE
    alone is far too small for few labels: with ten, it takes up to one in eight judges that answer
    at random for better than chance, and it is 0 where all agree. With Wilson's it is at most one
    in thirty or so. Not defined where both raters say the same of every case.
    """
    refused = _refused(human, judge)
    if refused:
        return Estimate(reason=refused)
    n = len(human)
    true_human, true_judge = sum(human) / n, sum(judge) / n
    by_chance = [
        (true_judge if not one else 1.0 - true_judge)
        + (true_human if not other else 1.0 - true_human)
        for one, other in zip(human, judge, strict=True)
    ]
    differ = [float(one != other) for one, other in zip(human, judge, strict=True)]
    value, error = _kappa(differ, by_chance, 1.0 - chance_agreement(human, judge))
    if units < MIN_UNITS:
        return Estimate(value, reason=_too_few(units))
    agreed = 1.0 - math.fsum(differ) / n
    share = wilson(agreed * units, units, confidence)
    if isinstance(share, NoInterval):
        return Estimate(value, reason=share.reason)
    chance = chance_agreement(human, judge)
    low, high = ((end - chance) / (1.0 - chance) for end in (share.low, share.high))
    half = _z(confidence) * error * math.sqrt(n / units)
    return Estimate(
        value,
        Interval(
            max(-1.0, min(low, value - half)),
            min(1.0, max(high, value + half)),
            confidence,
            _over("Fleiss-Cohen-Everitt, at least wilson", n, units),
        ),
    )


def quadratic_kappa(
    human: Sequence[float], judge: Sequence[float], units: int, confidence: float = 0.95
) -> Estimate:
    """Weighted kappa with quadratic weights (Cohen 1968): ``1 - D_o / D_e``.

    D_o is the mean squared difference of the two values of a case, D_e that of every value of the
    one rater with every value of the other. The weights are the squared distances of the values
    themselves, so that half points count as half; on a scale of whole numbers these are the usual
    ones (it is then Lin's concordance coefficient too: Fleiss and Cohen 1973). Interval: as for
    weighted kappa in Fleiss, Cohen and Everitt (1969); none where the two never differ, because
    nothing is known about how far they may.
    """
    refused = _refused(human, judge)
    if refused:
        return Estimate(reason=refused)
    n = len(human)
    middle, scale = _scale([*human, *judge])
    human = [(value - middle) / scale for value in human]
    judge = [(value - middle) / scale for value in judge]
    squares = [(one - other) ** 2 for one, other in zip(human, judge, strict=True)]
    of_human, of_judge = _distance_to(human), _distance_to(judge)
    by_chance = [of_judge(one) + of_human(other) for one, other in zip(human, judge, strict=True)]
    expected = 0.5 * math.fsum(by_chance) / n
    value, error = _kappa(squares, by_chance, expected)
    if units < MIN_UNITS:
        return Estimate(value, reason=_too_few(units))
    if error <= 1e-12:
        return Estimate(value, reason="the two never differ, which leaves no spread to estimate")
    half = _z(confidence) * error * math.sqrt(n / units)
    low, high = max(-1.0, value - half), min(1.0, value + half)
    method = _over("Fleiss-Cohen-Everitt", n, units)
    return Estimate(value, Interval(low, high, confidence, method))


def spearman(
    human: Sequence[float], judge: Sequence[float], units: int, confidence: float = 0.95
) -> Estimate:
    """Spearman's rank correlation (1904): Pearson's of the ranks, ties at the middle of theirs.

    Interval: ``tanh(atanh(r) +- z * sqrt((1 + r^2 / 2) / (units - 3)))`` (Fisher 1921; standard
    error of Bonett and Wright 2000). A perfect order has no finite ``atanh``: its inner end is
    reckoned as if two neighbours had changed places, the smallest fault there can be, which is
    ``1 - 12 / (n (n^2 - 1))``.

    No interval where one value makes up so much of the sample that dealing out the same values at
    random repeats this very result in more than half of ``1 - confidence`` of the draws. The chance
    of it is ``prod r_i! prod c_j! / (n! prod n_ij!)``, the probability of a table with these
    margins (Fisher 1935), with all counts scaled down to ``units``.
    """
    refused = _refused(human, judge)
    if refused:
        return Estimate(reason=refused)
    n = len(human)
    value = _pearson(ranks(human), ranks(judge))
    if units < MIN_UNITS:
        return Estimate(value, reason=_too_few(units))
    if math.exp(_log_chance(human, judge, units)) > 0.5 * (1.0 - confidence):
        return Estimate(value, reason="too many values are the same: random ones fit as well")
    bound = 1.0 - 12.0 / (units * (units * units - 1.0))
    inside = max(-bound, min(bound, value))
    half = _z(confidence) * math.sqrt((1.0 + 0.5 * inside * inside) / (units - 3))
    low = -1.0 if value <= -bound else math.tanh(math.atanh(inside) - half)
    high = 1.0 if value >= bound else math.tanh(math.atanh(inside) + half)
    method = _over("Fisher z, Bonett-Wright", n, units)
    return Estimate(value, Interval(low, high, confidence, method))


def ranks(values: Sequence[float]) -> list[float]:
    """1-based ranks in the order of the values; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            found[index] = 0.5 * (start + 1 + end)
        start = end
    return found


# -- inside ---------------------------------------------------------------------------------------


def _kappa(
    differences: Sequence[float], by_chance: Sequence[float], expected: float
) -> tuple[float, float]:
    """``1 - D_o / D_e`` and its large-sample standard error over n independent cases.

    The error is that of Fleiss, Cohen and Everitt (1969), written as the mean square of each case's
    influence: ``((d_i - D_o) / D_e - D_o (e_i - 2 D_e) / D_e^2)^2``, with ``e_i`` the mean
    difference of each of the case's two values to all values of the other rater, added.
    """
    n = len(differences)
    observed = math.fsum(differences) / n
    influence = (
        (own - observed) / expected - observed * (chance - 2.0 * expected) / expected**2
        for own, chance in zip(differences, by_chance, strict=True)
    )
    return 1.0 - observed / expected, math.sqrt(math.fsum(i * i for i in influence)) / n


def _refused(human: Sequence[float], judge: Sequence[float]) -> str:
    """Why no coefficient is defined: a rater who always says the same orders nothing."""
    if not human:
        return "no case has a label and a verdict"
    if len(set(human)) == 1:
        return _FLAT
    return _CONSTANT if len(set(judge)) == 1 else ""


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """Middle and half width: neither kappa nor ranks depend on them, squares of huge values do."""
    low, high = min(values), max(values)
    return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low


def _distance_to(values: Sequence[float]) -> Callable[[float], float]:
    """The mean squared distance of a value to all of these: ``(x - mean)^2 + variance``."""
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return lambda value: (value - mean) ** 2 + variance


def _pearson(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Of two sequences that are not constant; within -1 and 1."""
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    dx, dy = [x - mean_x for x in xs], [y - mean_y for y in ys]
    covered = math.fsum(a * b for a, b in zip(dx, dy, strict=True))
    size = math.sqrt(math.fsum(a * a for a in dx) * math.fsum(b * b for b in dy))
    return max(-1.0, min(1.0, covered / size))


def _log_chance(human: Sequence[float], judge: Sequence[float], units: int) -> float:
    scale = units / len(human)
    margins = [*Counter(human).values(), *Counter(judge).values()]
    cells = Counter(zip(human, judge, strict=True)).values()
    ways = math.fsum(math.lgamma(count * scale + 1) for count in margins)
    within = math.fsum(math.lgamma(count * scale + 1) for count in cells)
    return ways - math.lgamma(units + 1) - within


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + 0.5 * confidence)


def _over(method: str, n: int, units: int) -> str:
    return method if units == n else f"{method}, over {units} independent cases"


def _too_few(units: int) -> str:
    return f"fewer than {MIN_UNITS} independent labels ({units}) exclude nothing"


def _estimate(value: float, interval: Interval | NoInterval) -> Estimate:
    if isinstance(interval, NoInterval):
        return Estimate(value, reason=interval.reason)
    return Estimate(value, interval)
