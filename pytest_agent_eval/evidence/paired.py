"""Two runs over the same cases: is the second one better, and by how much.

Every function takes what the same cases came to in both runs. A case by itself is a pair; cases of
a group are not independent, and their differences are added up before anything is tested.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from pytest_agent_eval.evidence.intervals import Interval, NoInterval, mcnemar_exact, wilson
from pytest_agent_eval.evidence.spread import spread
from pytest_agent_eval.evidence.student import t_quantile, t_tail

__all__ = [
    "EXACT_WORK",
    "fewest_discordant",
    "holm",
    "newcombe_paired",
    "sign_flip_p",
    "smallest_mean_difference",
]

EXACT_WORK = 30_000
"""Sums that are looked at to work out a p value exactly; beyond it Student's t is used."""
_LATTICE = 1e-9


def newcombe_paired(
    both: int, only_new: int, only_old: int, neither: int, confidence: float = 0.95
) -> Interval | NoInterval:
    """Interval of the difference of two pass rates over the same cases, new minus old.

    Newcombe 1998, Statistics in Medicine 17, 2635-2650, method 10: the Wilson limits of both rates,
    squared and added, less what the two have in common: ``2 phi (p1 - l1)(u2 - p2)``, phi being
    the correlation of the two outcomes, corrected for continuity where it is positive.

    Args:
        both: independent cases that pass in both runs.
        only_new: those that pass in the new one only.
        only_old: those that passed in the old one only.
        neither: those that pass in none.
        confidence: between 0 and 1.

    Raises:
        ValueError: a number is negative, or ``confidence`` not between 0 and 1.
    """
    counts = (both, only_new, only_old, neither)
    if min(counts) < 0:
        raise ValueError(f"{min(counts)} cases")
    n = sum(counts)
    new = wilson(both + only_new, n, confidence)
    old = wilson(both + only_old, n, confidence)
    if isinstance(new, NoInterval) or isinstance(old, NoInterval):
        return NoInterval("no case has a value in both runs")
    p_new, p_old = (both + only_new) / n, (both + only_old) / n
    margins = (both + only_new) * (only_old + neither) * (both + only_old) * (only_new + neither)
    phi = 0.0
    if margins:
        product = float(both * neither - only_new * only_old)
        if product > 0:
            product = max(product - n / 2, 0.0)
        phi = product / math.sqrt(margins)
    below, above = p_new - new.low, new.high - p_new
    old_below, old_above = p_old - old.low, old.high - p_old
    low = math.sqrt(max(0.0, below**2 - 2 * phi * below * old_above + old_above**2))
    high = math.sqrt(max(0.0, above**2 - 2 * phi * above * old_below + old_below**2))
    difference = (only_new - only_old) / n
    return Interval(difference - low, difference + high, confidence, "newcombe")


def sign_flip_p(totals: Sequence[float]) -> float:
    """Two-sided p value of "no cluster was more likely to go up than down by what it moved".

    Under that hypothesis each of the totals has either sign with equal chance, and p is the share
    of all 2^n choices of signs with a sum as far from 0 as the one that was seen (Fisher 1935, The
    Design of Experiments, section 21). Where all totals are of one size this is the sign test, and
    of single cases that pass or fail the exact test of McNemar (1947). With more than
    :data:`EXACT_WORK` sums, thus many clusters, p is that of Student's t over the clusters.

    Args:
        totals: for each independent cluster the sum of its cases' differences, new minus old.
            Zeros do not matter.
    """
    moved = [abs(total) for total in totals if abs(total) > _LATTICE]
    if not moved:
        return 1.0
    if max(moved) - min(moved) <= _LATTICE:
        up = sum(total > _LATTICE for total in totals)
        return mcnemar_exact(up, len(moved) - up)
    exact = _exact_p([round(total / _LATTICE) for total in moved], math.fsum(totals) / _LATTICE)
    return _t_p(totals) if exact is None else exact


def _exact_p(sizes: Sequence[int], seen: float) -> float | None:
    """The share of sums of ``+-size`` as far out or farther; None where it takes too long."""
    unit = math.gcd(*sizes)
    work = 0
    ways: Mapping[int, int] = {0: 1}
    for size in sizes:
        work += len(ways)
        if work > EXACT_WORK:
            return None
        following: Counter[int] = Counter()
        for total, number in ways.items():
            following[total + size // unit] += number
            following[total - size // unit] += number
        ways = following
    edge = (abs(seen) - len(sizes)) / unit  # each size was rounded
    far = sum(number for total, number in ways.items() if abs(total) >= edge)
    return float(far / 2 ** len(sizes))


def _t_p(totals: Sequence[float]) -> float:
    """The two-sided p value of Student's t of a mean of 0 (Student 1908)."""
    n = len(totals)
    mean = math.fsum(totals) / n
    variance = math.fsum((total - mean) ** 2 for total in totals) / (n - 1)
    return min(1.0, 2.0 * t_tail(abs(mean) / math.sqrt(variance / n), n - 1))


def holm(values: Sequence[float]) -> list[float]:
    """The p values of several comparisons, adjusted (Holm 1979, Scandinavian Journal of Statistics
    6, 65-70): one that is below alpha now is significant although there are so many of them.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    adjusted, largest = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = largest
    return adjusted


def fewest_discordant(confidence: float = 0.95) -> int:
    """As many clusters have to move, all one way, for :func:`sign_flip_p` to be at most ``1 -
    confidence``: the smallest n with ``2 / 2^n <= alpha``; 6 at 95 %.

    Raises:
        ValueError: ``confidence`` is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    n = 1
    while 2.0 ** (1 - n) > 1.0 - confidence:
        n += 1
    return n


def smallest_mean_difference(
    clusters: Sequence[tuple[float, int]], confidence: float = 0.95
) -> float | None:
    """The mean difference that would just have been shown with the spread that was seen: ``t(
    confidence, G - 1)`` standard errors. None where there is no spread, or one cluster.

    Args:
        clusters: for each cluster the sum of its cases' differences and the number of its cases.
        confidence: between 0 and 1.
    """
    if len(clusters) < 2:
        return None
    error = spread(clusters).error
    return t_quantile(confidence, len(clusters) - 1) * error if error else None
