"""Quantiles of Student's t distribution, from the standard library alone."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

__all__ = ["regularized_beta", "t_quantile", "t_tail"]

_TINY = 1e-300
_PRECISION = 1e-16


def regularized_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b) for 0 <= x <= 1 and a, b > 0.

    Continued fraction by the modified Lentz method (NIST Digital Library of Mathematical
    Functions, 8.17.22), used on the side of its mean where it converges fast.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - regularized_beta(1.0 - x, b, a)
    log_factor = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(log_factor) * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    c = 1.0
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            value *= c * d
        if abs(c * d - 1.0) < _PRECISION * 4:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def t_tail(t: float, df: float) -> float:
    """P(T > t) for t >= 0 with ``df`` degrees of freedom: I_{df/(df+t^2)}(df/2, 1/2) / 2."""
    return 0.5 * regularized_beta(df / (df + t * t), 0.5 * df, 0.5)


@lru_cache(maxsize=256)
def t_quantile(confidence: float, df: int) -> float:
    """The t that a Student variable stays within (two-sided) with probability ``confidence``.

    Newton steps on the tail probability, held inside a bracket that is halved where a step would
    leave it.

    Raises:
        ValueError: ``confidence`` is not between 0 and 1, or ``df`` is below 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    if df < 1:
        raise ValueError(f"degrees of freedom must be at least 1, not {df}")
    tail = 0.5 * (1.0 - confidence)
    low, high = 0.0, max(1.0, NormalDist().inv_cdf(0.5 + 0.5 * confidence))
    while t_tail(high, df) > tail:
        low, high = high, 2.0 * high
    t = 0.5 * (low + high)
    log_scale = math.lgamma(0.5 * (df + 1)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)
    for _ in range(200):
        excess = t_tail(t, df) - tail
        if excess > 0:
            low = t
        else:
            high = t
        density = math.exp(log_scale - 0.5 * (df + 1) * math.log1p(t * t / df))
        step = t + excess / density if density > 0 else low
        following = step if low < step < high else 0.5 * (low + high)
        if abs(following - t) <= 1e-15 * t:
            return following
        t = following
    return t
