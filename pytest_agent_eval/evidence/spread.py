"""How far clusters of cases lie from their common mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Spread", "spread"]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean of cases in clusters, and how the clusters lie around it.

    Attributes:
        mean: the ratio R = sum(S) / sum(M) of the sums S_g and sizes M_g of G clusters.
        residuals: for each cluster ``(S_g - R M_g) / (sum(M) / G)``; their sum is 0.
        error: standard error of R, ``sqrt(G / (G - 1) * sum((S_g - R M_g)^2)) / sum(M)`` (Cochran
            1977, Sampling Techniques, 6.3); 0 where the residuals are rounding, or G is 1.
        skewness: of the residuals, ``m3 / m2^1.5``; 0 where the error is.
    """

    mean: float
    residuals: tuple[float, ...]
    error: float
    skewness: float


def spread(clusters: Sequence[tuple[float, int]]) -> Spread:
    """The spread of at least one cluster.

    Args:
        clusters: for each cluster the sum of its cases' values and the number of its cases.
    """
    count = len(clusters)
    cases = sum(size for _, size in clusters)
    mean = math.fsum(total for total, _ in clusters) / cases
    typical = cases / count
    residuals = tuple((total - mean * size) / typical for total, size in clusters)
    squares = math.fsum(value * value for value in residuals)
    largest = max(abs(total) / size for total, size in clusters)
    error = math.sqrt(squares / (count - 1) / count) if count > 1 else 0.0
    if error <= 1e-12 * largest:
        return Spread(mean, residuals, 0.0, 0.0)
    cubes = math.fsum(value**3 for value in residuals)
    return Spread(mean, residuals, error, cubes / count / (squares / count) ** 1.5)
