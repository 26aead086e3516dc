from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agent_eval.evidence.bootstrap import bca
from pytest_agent_eval.evidence.intervals import Interval, NoInterval

Clusters = list[tuple[float, int]]


def interval_of(found: Interval | NoInterval) -> Interval:
    assert isinstance(found, Interval)
    return found


def single(values: list[float]) -> Clusters:
    return [(value, 1) for value in values]


@settings(max_examples=40)
@given(
    st.lists(st.integers(-20, 20), min_size=10, max_size=80).filter(lambda v: len(set(v)) > 1),
    st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999]),
)
def test_it_has_a_width_within_what_was_observed(values: list[int], c: float) -> None:
    found = interval_of(bca(single([float(v) for v in values]), c))
    slack = 1e-9 * 20
    assert min(values) - slack <= found.low < found.high <= max(values) + slack
    wider = interval_of(bca(single([float(v) for v in values]), 0.9995))
    assert wider.low <= found.low + slack
    assert wider.high >= found.high - slack


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 9), min_size=50, max_size=80).filter(lambda v: len(set(v)) > 2),
    st.randoms(use_true_random=False),
)
def test_turned_around_and_shuffled_it_is_the_same(values: list[int], rng: random.Random) -> None:
    one = interval_of(bca(single([float(v) for v in values])))
    assert one.low <= statistics.fmean(values) <= one.high
    turned = [-float(v) for v in values]
    rng.shuffle(turned)
    other = interval_of(bca(single(turned)))
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-6)


def test_the_longer_side_is_that_of_the_tail() -> None:
    values = [5.0] * 50 + [4.0] * 6 + [1.0] * 4
    found = interval_of(bca(single(values)))
    mean = statistics.fmean(values)
    assert mean - found.low > 1.3 * (found.high - mean)
    assert found.method == "bca bootstrap over 60 cases"


def test_twins_that_agree_count_as_one_case() -> None:
    values = [float(value % 7) for value in range(60)]
    twins = interval_of(bca([(2 * value, 2) for value in values]))
    alone = interval_of(bca(single(values)))
    assert (twins.low, twins.high) == pytest.approx((alone.low, alone.high))
    assert twins.method == "bca bootstrap over 60 clusters"


def test_one_value_that_differs_ends_at_the_others() -> None:
    found = interval_of(bca(single([5.0] * 59 + [1.0])))
    assert found.high == pytest.approx(5.0)
    assert found.low < 4.8


def test_no_spread_gives_no_interval() -> None:
    assert bca(single([3.0] * 60)) == NoInterval("all 60 values are 3")
    with pytest.raises(ValueError, match="confidence"):
        bca(single([1.0, 2.0]), 0.0)
