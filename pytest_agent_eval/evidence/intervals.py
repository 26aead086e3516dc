"""Confidence intervals and small exact formulas, from the standard library alone.

A function that cannot give an interval returns :class:`NoInterval` with the reason: an interval
of zero width would claim a certainty that no sample gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from pytest_agent_eval.evidence.spread import spread
from pytest_agent_eval.evidence.student import t_quantile

__all__ = [
    "MIN_CLUSTERS",
    "Interval",
    "NoInterval",
    "all_equal",
    "check_confidence",
    "cluster_t_interval",
    "identical_interval",
    "mcnemar_exact",
    "min_all_pass_n",
    "min_n_at_rate",
    "pass_at_k",
    "pass_hat_k",
    "t_interval",
    "too_few",
    "wilson",
]

MIN_CLUSTERS = 5
"""Fewer clusters than this give no interval: their spread says next to nothing."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval.

    Attributes:
        low, high: the ends, in the unit of the estimate.
        confidence: between 0 and 1.
        method: how it was made, in words.
    """

    low: float
    high: float
    confidence: float
    method: str

    def to_dict(self) -> dict[str, float | str]:
        """A mapping of JSON types."""
        return {
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "method": self.method,
        }


@dataclass(frozen=True, slots=True)
class NoInterval:
    """Why there is no interval, in a few words."""

    reason: str


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless it is between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")


@lru_cache(maxsize=64)
def _normal_quantile(confidence: float) -> float:
    check_confidence(confidence)
    return NormalDist().inv_cdf(0.5 + 0.5 * confidence)


def wilson(
    k: float, n: float, confidence: float = 0.95, method: str = "wilson"
) -> Interval | NoInterval:
    """Score interval of a share: ``k`` of ``n`` independent units passed (Wilson 1927).

    ``(p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)`` with ``p = k/n``. ``k`` may be a
    sum of shares; the interval is conservative then, as such units vary less than p(1-p). ``n`` may
    be an effective number.

    Raises:
        ValueError: ``k`` is not within 0 and ``n``, or ``confidence`` not between 0 and 1.
    """
    z = _normal_quantile(confidence)
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
    if n == 0:
        return NoInterval("no case was scored")
    p = k / n
    square = z * z / n
    middle = (p + 0.5 * square) / (1.0 + square)
    half = z * math.sqrt(p * (1.0 - p) / n + 0.25 * square / n) / (1.0 + square)
    low = 0.0 if k == 0 else max(0.0, min(p, middle - half))
    high = 1.0 if k == n else min(1.0, max(p, middle + half))
    return Interval(low, high, confidence, method)


def all_equal(values: Sequence[float]) -> bool:
    """Whether values (at least one) differ by no more than rounding."""
    low, high = min(values), max(values)
    return high - low <= 1e-12 * max(abs(low), abs(high))


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | NoInterval:
    """Student's interval of a mean of independent values (Student 1908).

    ``mean +- t(confidence, n - 1) * s / sqrt(n)``.
    """
    check_confidence(confidence)
    n = len(values)
    if n == 0:
        return NoInterval("no case was scored")
    if n == 1:
        return NoInterval("one case has no spread")
    if all_equal(values):
        return NoInterval(f"all {n} values are {values[0]:g}")
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return _around(mean, math.sqrt(variance / n), n - 1, confidence, "t")


def cluster_t_interval(
    clusters: Sequence[tuple[float, int]], confidence: float = 0.95
) -> Interval | NoInterval:
    """Student's interval of a mean over cases that come in clusters.

    Args:
        clusters: for each cluster the sum of its cases' values and the number of its cases.
        confidence: between 0 and 1.

    The mean is the ratio R = sum(S) / sum(M); its variance is ``G/(G-1) * sum((S_g - R M_g)^2) /
    sum(M)^2`` over G clusters (Cochran 1977, Sampling Techniques, 6.3), with G - 1 degrees of
    freedom. It equals :func:`t_interval` where every cluster holds one case.
    """
    check_confidence(confidence)
    count = len(clusters)
    if count < MIN_CLUSTERS:
        return NoInterval(too_few())
    found = spread(clusters)
    if found.error == 0.0:
        return NoInterval(f"all {count} groups have the mean {found.mean:g}")
    return _around(found.mean, found.error, count - 1, confidence, f"t over {count} groups")


def _around(mean: float, error: float, df: int, confidence: float, method: str) -> Interval:
    half = t_quantile(confidence, df) * error
    return Interval(mean - half, mean + half, confidence, method)


def too_few(least: int = MIN_CLUSTERS) -> str:
    """Why there is no interval where fewer clusters than ``least`` were scored."""
    return f"fewer than {least} independent groups"


def identical_interval(
    value: float, n: int, bounds: tuple[float, float], confidence: float = 0.95
) -> Interval | NoInterval:
    """Bounds of a mean when all ``n`` units have one value on a scale that is known.

    The share of units with that value is at least w, the lower Wilson end of n of n; the others
    lie, at worst, all at one end of the scale: ``w * value + (1 - w) * bounds``. Conservative.
    """
    share = wilson(n, n, confidence)
    if isinstance(share, NoInterval):
        return share
    low, high = (share.low * value + (1.0 - share.low) * bound for bound in bounds)
    method = "wilson over the scale"
    return Interval(min(low, value), max(high, value), confidence, method)


def mcnemar_exact(only_new_passes: int, only_old_passes: int) -> float:
    """Two-sided p value of the exact McNemar test: a sign test on the discordant cases.

    ``min(1, 2 * P(X <= min(b, c)))`` with X ~ Binomial(b + c, 1/2) (McNemar 1947, exact form).

    Args:
        only_new_passes: cases that pass now and did not before.
        only_old_passes: cases that passed before and do not now.
    """
    n = only_new_passes + only_old_passes
    tail, ways = 0, 1
    for i in range(min(only_new_passes, only_old_passes) + 1):
        tail += ways
        ways = ways * (n - i) // (i + 1)
    return 1.0 if 2 * tail >= 2**n else 2 * tail / 2**n


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of ``k`` trials passes, ``c`` of ``n`` having passed.

    ``1 - C(n-c, k) / C(n, k)`` (Chen et al. 2021, Evaluating large language models trained on
    code).

    Raises:
        ValueError: not 0 <= c <= n, or not 1 <= k <= n.
    """
    _check_trials(n, c, k)
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that all of ``k`` trials pass, ``c`` of ``n`` having passed: ``C(c, k) / C(n, k)``.

    From Yao et al. 2024 (tau-bench), where it is written pass^k.

    Raises:
        ValueError: not 0 <= c <= n, or not 1 <= k <= n.
    """
    _check_trials(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def _check_trials(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"{c} of {n} trials cannot have passed")
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and {n}, not {k}")


def min_all_pass_n(edge: float, confidence: float = 0.95) -> int:
    """The smallest n for which "n of n passed" puts the lower Wilson end above ``edge``.

    That end is ``n / (n + z^2)``, so n must exceed ``z^2 * edge / (1 - edge)``.

    Raises:
        ValueError: ``edge`` is not within 0 <= edge < 1; no n is enough for 1.
    """
    if not 0.0 <= edge < 1.0:
        raise ValueError(f"edge must be at least 0 and below 1, not {edge}")
    z = _normal_quantile(confidence)
    n = max(1, math.floor(z * z * edge / (1.0 - edge)))
    while n / (n + z * z) <= edge:
        n += 1
    return n


def min_n_at_rate(rate: float, bound: float, confidence: float = 0.95) -> int:
    """The smallest n for which Wilson's interval around an observed ``rate`` leaves ``bound`` out.

    Wilson's interval holds the bounds b with ``(p - b)^2 <= z^2 b (1 - b) / n``, so n must exceed
    ``z^2 b (1 - b) / (p - b)^2``. With a rate of 1 it is :func:`min_all_pass_n`. The rate is that
    which is observed: if the true one is the same, half of the samples of this size show less.

    Raises:
        ValueError: a share is not within 0 and 1, or both are equal: no n tells them apart.
    """
    if not (0.0 <= rate <= 1.0 and 0.0 <= bound <= 1.0) or rate == bound:
        raise ValueError(f"no number of cases tells {rate} from {bound}")
    z = _normal_quantile(confidence)
    needed = z * z * bound * (1.0 - bound) / (rate - bound) ** 2
    return max(1, math.floor(needed) + 1)
