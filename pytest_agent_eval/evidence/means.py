"""Which interval a mean of scores gets, by what is known about the scale and the sample."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_agent_eval.evidence.bootstrap import bca
from pytest_agent_eval.evidence.effective import wilson_effective
from pytest_agent_eval.evidence.intervals import (
    Interval,
    NoInterval,
    check_confidence,
    cluster_t_interval,
    identical_interval,
    t_interval,
    too_few,
)
from pytest_agent_eval.evidence.spread import spread
from pytest_agent_eval.evidence.student import t_quantile

__all__ = ["BOOTSTRAP_FROM", "MIN_GROUPS_OF_SCORES", "SKEWED", "hall_interval", "mean_interval"]

BOOTSTRAP_FROM = 50
"""From as many clusters on, a mean on an unknown scale gets a bootstrap interval."""
MIN_GROUPS_OF_SCORES = 10
"""Fewer groups than this give a mean of scores no interval: between 5 and 10 groups those that are
safe are so wide that they hold the mean in 98 of 100 runs, and the others in less than 90."""
SKEWED = 1.5
"""Beyond this skewness Student's t covers less than 90 %, and Hall's form of it is used."""


def mean_interval(
    clusters: Sequence[tuple[float, int]],
    confidence: float = 0.95,
    scale: tuple[float, float] | None = None,
) -> Interval | NoInterval:
    """Interval of a mean over clusters of cases.

    On a known scale Wilson's over an effective number of cases; on an unknown one Student's t,
    Hall's form of it where the values are skewed, and the bootstrap from
    :data:`BOOTSTRAP_FROM` clusters on. docs/statistics.md has the coverage of each.

    Args:
        clusters: for each cluster the sum of its cases' values and the number of its cases.
        confidence: between 0 and 1.
        scale: the lowest and the highest possible value; None where they are not known.

    Raises:
        ValueError: ``confidence`` is not between 0 and 1, or a value is not on the scale.
    """
    check_confidence(confidence)
    count = len(clusters)
    if count < 2:
        return NoInterval("one case has no spread" if count else "no case was scored")
    grouped = any(size > 1 for _, size in clusters)
    found = spread(clusters)
    if grouped and count < MIN_GROUPS_OF_SCORES:
        return NoInterval(too_few(MIN_GROUPS_OF_SCORES))
    if scale is not None:
        if found.error == 0.0:
            return identical_interval(found.mean, count, scale, confidence)
        return wilson_effective(clusters, confidence, scale=scale)
    if count >= BOOTSTRAP_FROM:
        return bca(clusters, confidence)
    if abs(found.skewness) > SKEWED:
        return hall_interval(clusters, confidence)
    if grouped:
        return cluster_t_interval(clusters, confidence)
    return t_interval([total for total, _ in clusters], confidence)


def hall_interval(
    clusters: Sequence[tuple[float, int]], confidence: float = 0.95
) -> Interval | NoInterval:
    """Student's interval of a mean, corrected for skewness (Hall 1992, Journal of the Royal
    Statistical Society B 54, 221-228: the cubic transformation).

    With U = (R - mu) / (s sqrt(n)) and skewness g, ``n^0.5 (U + g U^2 / 3 + g^2 U^3 / 27 + g /
    6n)`` is closer to Student's distribution than ``n^0.5 U``, and grows with U, so that it can be
    solved for the ends. It is :func:`cluster_t_interval` where g is 0.

    Args:
        clusters: for each cluster the sum of its cases' values and the number of its cases.
        confidence: between 0 and 1.
    """
    check_confidence(confidence)
    count = len(clusters)
    if count < 2:
        return NoInterval("one case has no spread")
    found = spread(clusters)
    if found.error == 0.0:
        return NoInterval(f"all {count} values are {found.mean:g}")
    t = t_quantile(confidence, count - 1)
    high = found.mean - found.error * _untransformed(-t, found.skewness, count)
    low = found.mean - found.error * _untransformed(t, found.skewness, count)
    # The correction shifts both ends; at a low confidence that could leave out the mean itself.
    ends = min(low, found.mean), max(high, found.mean)
    return Interval(*ends, confidence, f"t for skewed values, {count} clusters")


def _untransformed(t: float, skewness: float, count: int) -> float:
    if abs(skewness) < 1e-8:
        return t
    cube = 1.0 + skewness * (t / math.sqrt(count) - skewness / (6.0 * count))
    root = math.copysign(abs(cube) ** (1.0 / 3.0), cube)
    return 3.0 * math.sqrt(count) * (root - 1.0) / skewness
