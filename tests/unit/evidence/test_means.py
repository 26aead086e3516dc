from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.intervals import (
    Interval,
    NoInterval,
    cluster_t_interval,
    t_interval,
)
from pytest_agent_eval.evidence.means import hall_interval, mean_interval

Clusters = list[tuple[float, int]]
SCALE = (1.0, 5.0)
FLAT = [1.0, 2.0, 3.0, 4.0, 5.0]
TAIL = [5.0] * 9 + [1.0]


def interval_of(found: Interval | NoInterval) -> Interval:
    assert isinstance(found, Interval)
    return found


def single(values: list[float]) -> Clusters:
    return [(value, 1) for value in values]


@pytest.mark.parametrize(
    ("clusters", "scale", "method"),
    [
        (single(FLAT), None, "t"),
        (single(FLAT * 9), None, "t"),
        (single(FLAT * 10), None, "bca bootstrap over 50 cases"),
        (single(TAIL), None, "t for skewed values, 10 clusters"),
        ([(2 * value, 2) for value in FLAT * 2], None, "t over 10 groups"),
        ([(2 * value, 2) for value in FLAT * 10], None, "bca bootstrap over 50 clusters"),
        (single(FLAT * 4), SCALE, "wilson over the scale"),
        (single([5.0] * 20), SCALE, "wilson over the scale"),
        ([(2.0, 2), (10.0, 2)] * 6, SCALE, "wilson over the scale, 12 clusters"),
    ],
)
def test_what_is_used_when(
    clusters: Clusters, scale: tuple[float, float] | None, method: str
) -> None:
    assert interval_of(mean_interval(clusters, 0.95, scale)).method == method


@pytest.mark.parametrize(
    ("clusters", "scale", "reason"),
    [
        ([], None, "no case was scored"),
        (single([4.0]), SCALE, "one case has no spread"),
        ([(2 * value, 2) for value in FLAT], None, "fewer than 10 independent groups"),
        ([(10.0, 2)] * 9, SCALE, "fewer than 10 independent groups"),
        (single([5.0] * 20), None, "all 20 values are 5"),
        (single([5.0] * 80), None, "all 80 values are 5"),
        ([(10.0, 2)] * 12, None, "all 12 groups have the mean 5"),
    ],
)
def test_when_there_is_none(
    clusters: Clusters, scale: tuple[float, float] | None, reason: str
) -> None:
    assert mean_interval(clusters, 0.95, scale) == NoInterval(reason)


@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=60).filter(lambda v: len(set(v)) > 1),
    st.sampled_from([None, SCALE]),
    st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]),
)
def test_it_has_a_width_around_the_mean(
    values: list[int], scale: tuple[float, float] | None, c: float
) -> None:
    clusters = single([float(v) for v in values])
    found = interval_of(mean_interval(clusters, c, scale))
    assert found.low <= statistics.fmean(values) + 1e-9
    assert found.high >= statistics.fmean(values) - 1e-9
    assert found.low < found.high
    wider = interval_of(mean_interval(clusters, c + 0.005, scale))
    assert wider.low <= found.low + 1e-9
    assert wider.high >= found.high - 1e-9
    if scale:
        assert scale[0] <= found.low
        assert found.high <= scale[1]


@given(st.lists(st.integers(0, 9), min_size=3, max_size=40).filter(lambda v: len(set(v)) > 1))
def test_hall_turned_around_is_the_same(values: list[int]) -> None:
    one = interval_of(hall_interval(single([float(v) for v in values])))
    other = interval_of(hall_interval(single([-float(v) for v in values])))
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_hall_is_students_t_without_skewness_and_longer_on_the_tail_with_it() -> None:
    plain, halls = interval_of(t_interval(FLAT)), interval_of(hall_interval(single(FLAT)))
    assert (halls.low, halls.high) == pytest.approx((plain.low, plain.high))
    clusters = [(2 * value, 2) for value in TAIL]
    plain, halls = interval_of(cluster_t_interval(clusters)), interval_of(hall_interval(clusters))
    assert halls.low < plain.low
    assert halls.high > 4.6
    assert hall_interval([(1.0, 1)]) == NoInterval("one case has no spread")
    assert hall_interval([(1.0, 1)] * 3) == NoInterval("all 3 values are 1")


def test_hall_solves_its_equation() -> None:
    # U + g U^2 / 3 + g^2 U^3 / 27 + g / 6n, times sqrt(n), is the quantile of t with 9 degrees.
    n, mean, deviation = 10, 4.6, statistics.pstdev(TAIL)
    g = statistics.fmean((value - mean) ** 3 for value in TAIL) / deviation**3
    found = interval_of(hall_interval(single(TAIL)))
    for end, t in ((found.low, 2.2621571627982), (found.high, -2.2621571627982)):
        u = (mean - end) / statistics.stdev(TAIL)
        left = u + g * u**2 / 3 + g**2 * u**3 / 27 + g / (6 * n)
        assert n**0.5 * left == pytest.approx(t)
