"""Wilson's interval over an effective number of cases: shares of cases that come in clusters.

Groups and trials make cases worth less, or more, than one observation each. How much is estimated
from the spread between clusters, and Wilson's formula is used with that number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_agent_eval.evidence.intervals import (
    MIN_CLUSTERS,
    Interval,
    NoInterval,
    too_few,
    wilson,
)

__all__ = ["effective_cases", "wilson_effective"]

PSEUDO = 0.25
"""Clusters added at each end of the scale while the spread is estimated. Without them the spread
is too small whenever the rare outcome happens to be missing, and coverage falls below 90 %."""


def wilson_effective(
    clusters: Sequence[tuple[float, int]],
    confidence: float = 0.95,
    *,
    observations: float = math.inf,
    scale: tuple[float, float] = (0.0, 1.0),
) -> Interval | NoInterval:
    """Score interval of a mean of values on a known scale, over clusters of cases.

    Wilson (1927) with n replaced by :func:`effective_cases`, as Korn and Graubard (1998, Survey
    Methodology 24) and Dean and Pagano (2015, Journal of Survey Statistics and Methodology 3)
    do it for surveys. It is :func:`wilson` over the cases, or over the clusters, where each cluster
    is a single case, or all of one outcome.

    Args:
        clusters: for each cluster the sum of its cases' values and the number of its cases, at
            least 1. Their order does not matter.
        confidence: between 0 and 1.
        observations: as many yes-or-no outcomes the values are made of (trials of all cases); the
            effective number of cases is no larger. Infinite for scores.
        scale: the lowest and the highest possible value.

    Raises:
        ValueError: ``confidence`` is not between 0 and 1, or a value is not on the scale.
    """
    count = len(clusters)
    cases = sum(size for _, size in clusters)
    if count == 0:
        return NoInterval("no case was scored")
    repeated = cases < observations < math.inf
    if count < MIN_CLUSTERS and (cases > count or repeated):
        return NoInterval(too_few())
    bottom, width = scale[0], scale[1] - scale[0]
    shares = [((total - bottom * size) / width, size) for total, size in clusters]
    size = min(effective_cases(shares), observations)
    mean = min(1.0, max(0.0, math.fsum(total for total, _ in shares) / cases))
    if any(not -1e-9 <= total <= size + 1e-9 for total, size in shares):
        raise ValueError(f"a value is not within {scale[0]:g} and {scale[1]:g}")
    scored = observations == math.inf
    method = "wilson over the scale" if scored else "wilson"
    if cases > count or repeated:
        method += f", {count} clusters"
    if not scored and abs(size - count) > 1e-6 * count:
        method += f" worth {size:.3g} cases"
    found = wilson(mean * size, size, confidence, method)
    if isinstance(found, NoInterval):  # pragma: no cover  (there is at least one cluster)
        return found
    return Interval(bottom + width * found.low, bottom + width * found.high, confidence, method)


def effective_cases(clusters: Sequence[tuple[float, int]]) -> float:
    """As many independent cases with two outcomes as would give the mean the spread it has.

    The mean R = sum(S) / sum(M) of S_g of M_g has the variance ``G / (G - 1) * sum((S_g - R
    M_g)^2) / sum(M)^2`` (Cochran 1977, Sampling Techniques, 6.3), and n independent cases have
    ``R (1 - R) / n``. :data:`PSEUDO` clusters of average size are added at each end for this.

    It is at least Kish's number, ``sum(M)^2 / sum(M^2)`` (Kish 1965, Survey Sampling, 8.2; the
    number of clusters, if all are of one size): what is left if the cases of a cluster are copies
    of each other. Where no outcome differs from another it is that number.

    Args:
        clusters: for each cluster the sum of its cases' shares, 0 to 1, and the number of its
            cases.
    """
    count = len(clusters)
    cases = sum(size for _, size in clusters)
    kish = cases * cases / sum(size * size for _, size in clusters)
    typical = cases / count
    passed = math.fsum(total for total, _ in clusters)
    mean = (passed + PSEUDO * typical) / (cases + 2.0 * PSEUDO * typical)
    if count == 1 or passed <= 1e-9 or passed >= cases - 1e-9:
        return kish
    squares = math.fsum(((total - mean * size) / typical) ** 2 for total, size in clusters)
    squares += PSEUDO * (mean * mean + (1.0 - mean) ** 2)
    spread = squares / (count + 2.0 * PSEUDO) * count / (count - 1)
    return max(kish, count * mean * (1.0 - mean) / spread)
