"""Paired statistics, against published numbers, other libraries, and their own definitions."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agent_eval.evidence.intervals import Interval, NoInterval, mcnemar_exact
from pytest_agent_eval.evidence.paired import (
    EXACT_WORK,
    fewest_discordant,
    holm,
    newcombe_paired,
    sign_flip_p,
    smallest_mean_difference,
)

VECTORS = json.loads(
    (Path(__file__).parents[2] / "acceptance" / "stats_vectors.json").read_text(encoding="utf-8")
)
COUNTS = st.integers(min_value=0, max_value=40)


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [  # Newcombe 1998, table III, method 10
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((54, 0, 0, 0), -0.0664, 0.0664),
    ],
)
def test_newcombe(table: tuple[int, int, int, int], low: float, high: float) -> None:
    found = newcombe_paired(*table)
    assert isinstance(found, Interval)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.sampled_from([0.8, 0.95, 0.99]))
def test_newcombe_holds_the_difference(a: int, b: int, c: int, d: int, confidence: float) -> None:
    found = newcombe_paired(a, b, c, d, confidence)
    if a + b + c + d == 0:
        assert isinstance(found, NoInterval)
        return
    assert isinstance(found, Interval)
    assert -1 - 1e-9 <= found.low <= (b - c) / (a + b + c + d) <= found.high <= 1 + 1e-9
    assert found.low < found.high
    swapped = newcombe_paired(a, c, b, d, confidence)
    assert isinstance(swapped, Interval)
    assert (swapped.low, swapped.high) == pytest.approx((-found.high, -found.low))


def test_newcombe_refuses_negative_numbers() -> None:
    with pytest.raises(ValueError, match="-1 cases"):
        newcombe_paired(1, -1, 0, 0)


@pytest.mark.parametrize("row", VECTORS["mcnemar_exact_p"])
def test_single_cases_get_the_exact_test_of_mcnemar(row: dict[str, float]) -> None:
    up, down = int(row["only_new_passes"]), int(row["only_old_passes"])
    totals = [1.0] * up + [-1.0] * down + [0.0] * 7
    assert sign_flip_p(totals) == pytest.approx(row["p"], abs=1e-15)
    assert mcnemar_exact(up, down) == pytest.approx(row["p"], abs=1e-15)


def test_mcnemar_agrees_with_statsmodels() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    for up, down in ((3, 9), (0, 4), (700, 640)):
        expected = mcnemar([[50, up], [down, 50]], exact=True).pvalue
        assert sign_flip_p([1.0] * up + [-1.0] * down) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.integers(min_value=-4, max_value=4), max_size=9), st.sampled_from([1, 3, 7]))
def test_flipping_signs_is_what_it_says(moves: list[int], trials: int) -> None:
    totals = [move / trials for move in moves]
    seen = abs(sum(moves))
    sums = [
        abs(sum(sign * move for sign, move in zip(signs, moves, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(moves))
    ]
    expected = sum(total >= seen for total in sums) / len(sums)
    assert sign_flip_p(totals) == pytest.approx(expected, abs=1e-12)


def test_flipping_signs_agrees_with_scipy() -> None:
    import numpy as np
    from scipy.stats import permutation_test, ttest_1samp

    totals = [0.4, -0.2, 0.6, 1.2, 3.0, -0.7, 0.1, 0.9]
    expected = permutation_test(
        (np.array(totals), np.zeros(len(totals))),
        lambda x, y: np.mean(x - y),
        permutation_type="samples",
        n_resamples=np.inf,
    )
    assert sign_flip_p(totals) == pytest.approx(expected.pvalue)
    many = [math.sin(n * n) + 0.1 for n in range(400)]  # too many different sums for it
    assert sign_flip_p(many) == pytest.approx(ttest_1samp(many, 0).pvalue)
    assert 2 ** len(many) > EXACT_WORK


def test_many_clusters_are_still_exact_where_their_sums_coincide() -> None:
    totals = [1.0, 2.0, -1.0, -2.0, 1.0] * 40
    assert 0.0 < sign_flip_p(totals) < 1.0
    assert sign_flip_p(totals) == sign_flip_p([-total for total in reversed(totals)])


@settings(max_examples=20)
@given(st.lists(st.floats(min_value=0, max_value=1), max_size=12))
def test_holm_agrees_with_statsmodels(values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    found = holm(values)
    assert all(value <= one <= 1.0 for value, one in zip(values, found, strict=True))
    if values:
        assert found == pytest.approx([*multipletests(values, method="holm")[1]])


@pytest.mark.parametrize(("confidence", "n"), [(0.95, 6), (0.9, 5), (0.99, 8), (0.5, 2)])
def test_fewest_discordant(confidence: float, n: int) -> None:
    assert fewest_discordant(confidence) == n
    assert mcnemar_exact(n, 0) <= 1 - confidence < mcnemar_exact(n - 1, 0)


def test_smallest_mean_difference_is_what_the_interval_would_just_exclude() -> None:
    clusters = [(total, 1) for total in (0.5, -1.0, 0.0, 2.0, 1.0, -0.5)]
    smallest = smallest_mean_difference(clusters)
    assert smallest == pytest.approx(2.570582 * math.sqrt(1.166667 / 6), rel=1e-6)
    assert smallest_mean_difference([(0.0, 1)] * 6) is None
    assert smallest_mean_difference([(1.0, 1)]) is None
