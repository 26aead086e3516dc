"""The bootstrap of a mean, without drawing: its distribution by the saddlepoint method.

Ten thousand resamples of a thousand clusters take seconds, differ with the seed, and say no more
than this does in a millisecond.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist

from pytest_agent_eval.evidence.intervals import (
    Interval,
    NoInterval,
    check_confidence,
)
from pytest_agent_eval.evidence.spread import spread

__all__ = ["bca"]

_FAR = 500.0
"""Beyond this the resampled mean is at the end of what was observed."""


def bca(clusters: Sequence[tuple[float, int]], confidence: float = 0.95) -> Interval | NoInterval:
    """Bias-corrected and accelerated bootstrap interval of a mean over clusters (Efron 1987,
    Journal of the American Statistical Association 82).

    Clusters are drawn, not cases. The distribution of the resampled mean is the saddlepoint
    approximation (Davison and Hinkley 1988, Biometrika 75; formula of Barndorff-Nielsen) of that
    of infinitely many resamples; of clusters of several sizes the linearised ratio is drawn. For a
    mean both constants of the method are ``skewness / (6 sqrt(G))``.

    Args:
        clusters: for each cluster the sum of its cases' values and the number of its cases. Their
            order does not matter.
        confidence: between 0 and 1.

    Raises:
        ValueError: ``confidence`` is not between 0 and 1.
    """
    check_confidence(confidence)
    found = spread(clusters)
    count = len(clusters)
    if found.error == 0.0:
        return NoInterval(f"all {count} values are {found.mean:g}")
    deviation = found.error * math.sqrt(count - 1)
    kinds = [
        (value / deviation, times) for value, times in sorted(Counter(found.residuals).items())
    ]
    constant = found.skewness / (6.0 * math.sqrt(count))
    ends = []
    for share in (0.5 * (1.0 - confidence), 0.5 * (1.0 + confidence)):
        shifted = constant + NormalDist().inv_cdf(share)
        bent = 1.0 - constant * shifted
        target = constant + shifted / bent if bent > 0.0 else math.copysign(_FAR, shifted)
        ends.append(found.mean + deviation * _quantile(kinds, count, target))
    method = f"bca bootstrap over {count} " + ("cases" if _single(clusters) else "clusters")
    return Interval(ends[0], ends[1], confidence, method)


def _single(clusters: Sequence[tuple[float, int]]) -> bool:
    return all(size == 1 for _, size in clusters)


def _quantile(kinds: Sequence[tuple[float, int]], count: int, target: float) -> float:
    """The mean of ``count`` draws that is not exceeded with the chance Phi(``target``).

    Args:
        kinds: values with mean 0 and variance 1, ascending, and how often each is there.
        count: how many there are.
        target: a quantile of the standard normal distribution.

    Looked for is the tilt t at which Barndorff-Nielsen's r*(t) reaches the target; r* grows with t
    until the resampled mean is next to the largest (or smallest) value, which is the answer then.
    """
    sign = 1.0 if target > 0.0 else -1.0
    edge = kinds[-1][0] if target > 0.0 else kinds[0][0]
    wanted = abs(target)
    step = max(0.01, wanted) / math.sqrt(count)
    near, below, far, above = 0.0, 0.0, step, 0.0
    while True:
        place, mean = _tilted(kinds, count, sign * far)
        above = sign * place
        if above >= wanted:
            break
        if above < below or far > _FAR:
            return edge
        near, below = far, above
        far += step
        step *= 1.5
    # Regula falsi (Illinois): r* is close to a straight line.
    below, above = below - wanted, above - wanted
    for _ in range(60):
        if far - near <= 1e-9 * far or above - below == 0.0:
            break
        middle = (near * above - far * below) / (above - below)
        place, mean = _tilted(kinds, count, sign * middle)
        found = sign * place - wanted
        if abs(found) < 1e-10:
            break
        if found < 0.0:
            near, below, above = middle, found, above / 2.0
        else:
            far, above, below = middle, found, below / 2.0
    return mean


def _tilted(kinds: Sequence[tuple[float, int]], count: int, tilt: float) -> tuple[float, float]:
    """r* at a tilt that is not 0, and the mean of the tilted values."""
    top = max(tilt * kinds[0][0], tilt * kinds[-1][0])
    weights = [times * math.exp(tilt * value - top) for value, times in kinds]
    whole = sum(weights)
    first = sum(weight * value for weight, (value, _) in zip(weights, kinds, strict=True)) / whole
    second = sum(
        weight * (value - first) ** 2 for weight, (value, _) in zip(weights, kinds, strict=True)
    )
    cumulant = math.log(whole / count) + top
    w = math.copysign(math.sqrt(max(0.0, 2.0 * count * (tilt * first - cumulant))), tilt)
    u = tilt * math.sqrt(count * second / whole)
    if w == 0.0 or u == 0.0:
        return math.copysign(math.inf, -tilt) if u == 0.0 else 0.0, first
    return w + math.log(u / w) / w, first
