from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agent_eval.evidence.effective import effective_cases, wilson_effective
from pytest_agent_eval.evidence.intervals import Interval, NoInterval, wilson

Clusters = list[tuple[float, int]]

clusters = st.lists(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n).map(float), st.just(n))),
    min_size=5,
    max_size=30,
)
confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


def interval_of(found: Interval | NoInterval) -> Interval:
    assert isinstance(found, Interval)
    return found


def cases_of(found: Clusters) -> int:
    return sum(size for _, size in found)


@settings(max_examples=40)
@given(clusters, confidences)
def test_it_lies_around_the_rate_and_has_a_width(found: Clusters, c: float) -> None:
    rate = sum(total for total, _ in found) / cases_of(found)
    interval = interval_of(wilson_effective(found, c, observations=cases_of(found)))
    assert 0.0 <= interval.low <= rate <= interval.high <= 1.0
    assert interval.low < interval.high
    wider = interval_of(wilson_effective(found, c + 0.005, observations=cases_of(found)))
    assert wider.low <= interval.low
    assert wider.high >= interval.high


@settings(max_examples=40)
@given(clusters, st.randoms(use_true_random=False))
def test_passes_and_failures_are_alike_and_order_is_nothing(
    found: Clusters, rng: random.Random
) -> None:
    one = interval_of(wilson_effective(found))
    turned = [(size - total, size) for total, size in found]
    rng.shuffle(turned)
    other = interval_of(wilson_effective(turned))
    assert one.low == pytest.approx(1.0 - other.high, abs=1e-9)
    assert one.high == pytest.approx(1.0 - other.low, abs=1e-9)


@settings(max_examples=40)
@given(clusters, st.floats(-3, 3), st.floats(0.5, 10))
def test_a_scale_is_only_a_unit(found: Clusters, bottom: float, width: float) -> None:
    share = interval_of(wilson_effective(found))
    moved = [(bottom * size + width * total, size) for total, size in found]
    interval = interval_of(wilson_effective(moved, scale=(bottom, bottom + width)))
    assert interval.low == pytest.approx(bottom + width * share.low, abs=1e-7)
    assert interval.high == pytest.approx(bottom + width * share.high, abs=1e-7)


@given(st.integers(0, 40), st.integers(5, 40), st.integers(1, 5))
def test_copies_of_a_case_are_one_case(k: int, n: int, size: int) -> None:
    k = min(k, n)
    copied = [(float(size), size)] * k + [(0.0, size)] * (n - k)
    found = interval_of(wilson_effective(copied, observations=n * size))
    plain = interval_of(wilson(k, n))
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    assert found.method == ("wilson" if size == 1 else f"wilson, {n} clusters")


def test_clusters_that_tell_more_than_a_case_count_for_more() -> None:
    mixed: Clusters = [(1.0, 2), (1.0, 2), (2.0, 2), (0.0, 2)] * 10
    # Passes fall on the clusters as chance has it: the 80 cases are 80, or nearly.
    assert 75 < effective_cases(mixed) <= 80
    found = interval_of(wilson_effective(mixed, observations=80))
    assert found.method.startswith("wilson, 40 clusters worth 7")


def test_a_group_that_holds_most_cases_counts_for_no_more_than_it_is() -> None:
    lopsided: Clusters = [(30.0, 30), *[(1.0, 1)] * 10]
    assert effective_cases(lopsided) == pytest.approx(40**2 / (30**2 + 10))
    found = interval_of(wilson_effective(lopsided))
    assert found.low < 0.5


def test_yes_or_no_outcomes_bound_what_trials_can_tell() -> None:
    agreeing: Clusters = [(0.6, 1)] * 8
    found = interval_of(wilson_effective(agreeing, observations=40))
    expected = interval_of(wilson(24, 40))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.method == "wilson, 8 clusters worth 40 cases"


def test_too_few_clusters_and_values_beside_the_scale() -> None:
    assert wilson_effective([]) == NoInterval("no case was scored")
    few = NoInterval("fewer than 5 independent groups")
    assert wilson_effective([(1.0, 2)] * 4) == few
    assert wilson_effective([(0.5, 1)] * 4, observations=8) == few
    assert isinstance(wilson_effective([(1.0, 1)] * 4, observations=4), Interval)
    with pytest.raises(ValueError, match="not within 1 and 5"):
        wilson_effective([(3.0, 1)] * 9 + [(6.0, 1)], scale=(1.0, 5.0))
    with pytest.raises(ValueError, match="confidence"):
        wilson_effective([(1.0, 2)] * 6, 1.0)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_twenty_five_correlated_twins_cover_about_as_often_as_is_said(rate: float) -> None:
    rng = random.Random(7)
    held = 0
    weight = (1 - 0.3) / 0.3
    for _ in range(1500):
        chances = [rng.betavariate(rate * weight, (1 - rate) * weight) for _ in range(25)]
        found: Clusters = [(float((rng.random() < p) + (rng.random() < p)), 2) for p in chances]
        interval = interval_of(wilson_effective(found, observations=50))
        held += interval.low <= rate <= interval.high
    assert 0.935 < held / 1500 < 0.98


def test_one_cluster_is_one_observation() -> None:
    assert effective_cases([(1.0, 4)]) == 1.0
    assert math.isclose(interval_of(wilson_effective([(0.5, 1)])).low, wilson(0.5, 1).low)  # type: ignore[union-attr]
