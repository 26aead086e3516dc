"""Cluster bootstrap of a pass rate: groups are drawn, not cases.

Clusters with the same content are interchangeable, so a resample is told by how often each
content was drawn: a multinomial count, drawn as a chain of binomial ones. That is the same
distribution as drawing clusters one by one, at a cost that does not grow with their number.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from random import Random

from pytest_agent_eval.evidence.intervals import MIN_CLUSTERS, Interval, NoInterval, wilson

__all__ = ["RESAMPLES", "SEED", "cluster_bootstrap"]

RESAMPLES = 10_000
SEED = 1927
"""Fixed, so that the same verdicts always give the same interval."""

_Cluster = tuple[float, int]


def cluster_bootstrap(
    clusters: Sequence[_Cluster],
    confidence: float = 0.95,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | NoInterval:
    """Percentile interval of a pass rate over clusters of cases (Efron 1979; Davison and Hinkley
    1997, section 3.8).

    Args:
        clusters: for each cluster the sum of its cases' pass shares and the number of its cases.
            Their order does not matter.
        confidence: between 0 and 1.
        resamples: how many.
        seed: of the random numbers.

    When every resample gives the same rate (all passed, or all failed), the interval is Wilson's
    over the number of clusters, which is conservative; ``method`` says which it is.

    Raises:
        ValueError: ``confidence`` is not between 0 and 1.
    """
    count = len(clusters)
    if count < MIN_CLUSTERS:
        return NoInterval(f"fewer than {MIN_CLUSTERS} independent groups")
    fallback = _over_clusters(clusters, confidence)
    kinds = sorted(Counter((round(total, 9), size) for total, size in clusters).items())
    rng = Random(seed)
    if len({total / size for (total, size), _ in kinds}) == 1:
        return fallback
    if 2 * len(kinds) <= count:
        rates = _rates_by_kind(kinds, count, rng, resamples)
    else:
        rates = _rates_one_by_one(sorted(clusters), rng, resamples)
    rates.sort()
    low = _percentile(rates, 0.5 * (1.0 - confidence))
    high = _percentile(rates, 0.5 * (1.0 + confidence))
    if low == high:
        return fallback
    return Interval(low, high, confidence, f"bootstrap over {count} clusters")


def _over_clusters(clusters: Sequence[_Cluster], confidence: float) -> Interval | NoInterval:
    cases = sum(size for _, size in clusters)
    rate = math.fsum(total for total, _ in clusters) / cases
    count = len(clusters)
    return wilson(rate * count, count, confidence, f"wilson over {count} clusters")


def _rates_one_by_one(clusters: Sequence[_Cluster], rng: Random, resamples: int) -> list[float]:
    count = len(clusters)
    total_of = [total for total, _ in clusters].__getitem__
    size_of = [size for _, size in clusters].__getitem__
    rates = []
    for _ in range(resamples):
        drawn = rng.choices(range(count), k=count)
        rates.append(sum(map(total_of, drawn)) / sum(map(size_of, drawn)))
    return rates


def _rates_by_kind(
    kinds: Sequence[tuple[_Cluster, int]], count: int, rng: Random, resamples: int
) -> list[float]:
    passed = [0.0] * resamples
    cases = [0] * resamples
    left = [count] * resamples
    weight_left = count
    random = rng.random
    for (total, size), weight in kinds:
        if weight == weight_left:
            drawn = left
        else:
            tables = {n: _binomial(n, weight / weight_left) for n in set(left)}
            drawn = []
            for n in left:
                start, cumulative = tables[n]
                drawn.append(start + bisect_left(cumulative, random() * cumulative[-1]))
        passed = [have + total * times for have, times in zip(passed, drawn, strict=True)]
        cases = [have + size * times for have, times in zip(cases, drawn, strict=True)]
        left = [have - times for have, times in zip(left, drawn, strict=True)]
        weight_left -= weight
    return [total / size for total, size in zip(passed, cases, strict=True)]


def _binomial(n: int, p: float) -> tuple[int, list[float]]:
    """First value and cumulative weights of Binomial(n, p), without the tails below 1e-18.

    Built outwards from the mode by the ratio of neighbouring probabilities.
    """
    mode = min(n, int((n + 1) * p))
    odds = p / (1.0 - p)
    below: list[float] = []
    value, weight = mode, 1.0
    while value > 0 and weight > 1e-18:
        weight *= value / ((n - value + 1) * odds)
        value -= 1
        below.append(weight)
    above = [1.0]
    value, weight = mode, 1.0
    while value < n and weight > 1e-18:
        weight *= (n - value) * odds / (value + 1)
        value += 1
        above.append(weight)
    cumulative = []
    running = 0.0
    for weight in (*reversed(below), *above):
        running += weight
        cumulative.append(running)
    return mode - len(below), cumulative


def _percentile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    index = int(place)
    if index + 1 >= len(ordered):
        return ordered[-1]
    return ordered[index] + (place - index) * (ordered[index + 1] - ordered[index])
