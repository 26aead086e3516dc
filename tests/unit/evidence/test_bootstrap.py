from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agent_eval.evidence.bootstrap import (
    _binomial,
    _percentile,
    _rates_by_kind,
    _rates_one_by_one,
    cluster_bootstrap,
)
from pytest_agent_eval.evidence.intervals import Interval, NoInterval, wilson


def interval_of(found: Interval | NoInterval) -> Interval:
    assert isinstance(found, Interval)
    return found


def test_four_clusters_are_too_few() -> None:
    assert cluster_bootstrap([(1, 2)] * 4) == NoInterval("fewer than 5 independent groups")


@pytest.mark.parametrize("passed", [0, 2])
def test_where_all_pass_or_fail_it_is_wilson_over_the_clusters(passed: int) -> None:
    found = interval_of(cluster_bootstrap([(passed, 2)] * 10))
    expected = interval_of(wilson(5 * passed, 10))
    assert (found.low, found.high) == (expected.low, expected.high)
    assert found.method == "wilson over 10 clusters"


def test_no_interval_has_zero_width_even_where_resampling_gives_one() -> None:
    # Every cluster has the rate 1/2 whatever is drawn.
    found = interval_of(cluster_bootstrap([(1, 2), (2, 4)] * 5))
    assert found.low < 0.5 < found.high
    # One failure in 2,000 clusters is drawn in most resamples, but with one only it may be rare.
    rare = interval_of(cluster_bootstrap([(0, 1), *[(2, 2)] * 5], confidence=0.01))
    assert rare.low < rare.high


@settings(max_examples=25)
@given(
    st.lists(
        st.integers(1, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
        min_size=5,
        max_size=30,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_clusters_does_not_matter(
    clusters: list[tuple[int, int]], random: Random
) -> None:
    shuffled = list(clusters)
    random.shuffle(shuffled)
    one = interval_of(cluster_bootstrap(clusters, resamples=400))
    assert one == cluster_bootstrap(shuffled, resamples=400)
    assert 0 <= one.low < one.high <= 1


def test_twins_that_agree_give_the_width_of_half_the_cases() -> None:
    pairs = interval_of(cluster_bootstrap([(2, 2)] * 60 + [(0, 2)] * 40))
    plain = interval_of(wilson(60, 100))
    assert pairs.high - pairs.low == pytest.approx(plain.high - plain.low, abs=0.02)


@pytest.mark.parametrize("quantile", [0.025, 0.5, 0.975])
def test_both_ways_of_drawing_have_one_distribution(quantile: float) -> None:
    rng = Random(5)
    clusters = [(float(rng.randint(0, size)), size) for size in [1, 2, 3] * 40]
    kinds = sorted(Counter(clusters).items())
    by_kind = sorted(_rates_by_kind(kinds, len(clusters), Random(1), 8000))
    one_by_one = sorted(_rates_one_by_one(clusters, Random(2), 8000))
    assert _percentile(by_kind, quantile) == pytest.approx(
        _percentile(one_by_one, quantile), abs=0.008
    )


def test_many_different_clusters_are_drawn_one_by_one() -> None:
    clusters = [(index / 20, 1 + index % 7) for index in range(20)]
    rate = sum(total for total, _ in clusters) / sum(size for _, size in clusters)
    found = interval_of(cluster_bootstrap(clusters, resamples=1000))
    assert found.low < rate < found.high
    assert found.method == "bootstrap over 20 clusters"


@given(st.integers(0, 300), st.floats(0.001, 0.999))
def test_the_table_of_a_binomial_distribution(n: int, p: float) -> None:
    start, cumulative = _binomial(n, p)
    assert start >= 0
    assert start + len(cumulative) - 1 <= n
    before = 0.0
    for value, weight in enumerate(cumulative, start=start):
        exact = math.exp(
            math.lgamma(n + 1)
            - math.lgamma(value + 1)
            - math.lgamma(n - value + 1)
            + value * math.log(p)
            + (n - value) * math.log1p(-p)
        )
        assert (weight - before) / cumulative[-1] == pytest.approx(exact, abs=1e-9)
        before = weight


def test_the_percentile_of_one_value() -> None:
    assert _percentile([0.25], 0.975) == 0.25
    assert _percentile([0.0, 1.0], 0.25) == 0.25
