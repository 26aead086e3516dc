"""Agreement of two raters: against other packages, by hand, and by their properties."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.agreement import (
    MIN_UNITS,
    Estimate,
    chance_agreement,
    cohen_kappa,
    effective_size,
    observed_agreement,
    quadratic_kappa,
    ranks,
    spearman,
)
from pytest_agent_eval.evidence.intervals import Interval

from .agreement_vectors import BOOLEANS, NUMBERS

Z = 1.959963984540054
Coefficient = Callable[[Any, Any, int], Estimate]
COEFFICIENTS: tuple[Coefficient, ...] = (cohen_kappa, quadratic_kappa, spearman)


def interval(found: Estimate) -> Interval:
    assert found.interval is not None, found.reason
    return found.interval


# -- against other packages -----------------------------------------------------------------------


@pytest.mark.parametrize("known", BOOLEANS)
def test_booleans_as_other_packages_have_them(known: dict[str, Any]) -> None:
    human, judge = known["human"], known["judge"]
    n = len(human)
    share = observed_agreement(human, judge, n)
    kappa = cohen_kappa(human, judge, n)
    assert chance_agreement(human, judge) == pytest.approx(known["chance"], abs=1e-12)
    assert [interval(share).low, interval(share).high] == pytest.approx(known["wilson"], abs=1e-9)
    assert kappa.value == pytest.approx(known["kappa"], abs=1e-12)
    # The wider of the two intervals it is made of, each end for itself.
    chance = known["chance"]
    for end, sign, wider in ((interval(kappa).low, -1, min), (interval(kappa).high, 1, max)):
        wilson = (known["wilson"][max(0, sign)] - chance) / (1.0 - chance)
        error = known["kappa"] + sign * Z * known["error"]
        assert end == pytest.approx(max(-1.0, min(1.0, wider(wilson, error))), abs=1e-9)


@pytest.mark.parametrize("known", NUMBERS)
def test_numbers_as_other_packages_have_them(known: dict[str, Any]) -> None:
    human, judge = known["human"], known["judge"]
    n = len(human)
    kappa, order = quadratic_kappa(human, judge, n), spearman(human, judge, n)
    assert kappa.value == pytest.approx(known["kappa"], abs=1e-12)
    assert interval(kappa).low == pytest.approx(known["kappa"] - Z * known["error"], abs=1e-9)
    assert order.value == pytest.approx(known["spearman"], abs=1e-12)
    assert ranks(human) == known["ranks"]
    half = Z * math.sqrt((1 + known["spearman"] ** 2 / 2) / (n - 3))
    assert interval(order).low == pytest.approx(math.tanh(math.atanh(known["spearman"]) - half))
    assert interval(order).high == pytest.approx(math.tanh(math.atanh(known["spearman"]) + half))


@pytest.mark.parametrize("known", BOOLEANS)
def test_kappa_is_the_weighted_one_of_zeros_and_ones(known: dict[str, Any]) -> None:
    found = quadratic_kappa(known["human"], known["judge"], len(known["human"]))
    assert found.value == pytest.approx(known["kappa"], abs=1e-12)
    assert interval(found).low == pytest.approx(
        max(-1.0, known["kappa"] - Z * known["error"]), abs=1e-9
    )


def test_the_example_of_cohen() -> None:
    """By hand: 20 + 15 agree of 50; chance 0.5 * 0.6 + 0.5 * 0.4."""
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10
    pairs += [(False, False)] * 15
    human, judge = zip(*pairs, strict=True)
    assert chance_agreement(human, judge) == pytest.approx(0.5)
    assert cohen_kappa(human, judge, 50).value == pytest.approx(0.4)


# -- what has no answer ---------------------------------------------------------------------------


@pytest.mark.parametrize("coefficient", COEFFICIENTS)
@pytest.mark.parametrize(
    ("human", "judge", "reason"),
    [
        ([], [], "no case has a label and a verdict"),
        ([True] * 20, [True] * 20, "the human labels are all alike"),
        ([True] * 20, [True, False] * 10, "the human labels are all alike"),
        ([True, False] * 10, [False] * 20, "the judge gave the same value everywhere"),
    ],
)
def test_no_coefficient_of_a_constant_rater(
    coefficient: Coefficient, human: list[bool], judge: list[bool], reason: str
) -> None:
    found = coefficient(human, judge, len(human))
    assert (found.value, found.interval, found.reason) == (None, None, reason)
    assert not found.above_zero


@pytest.mark.parametrize("coefficient", [*COEFFICIENTS, observed_agreement])
def test_too_few_labels_give_a_value_and_no_interval(coefficient: Coefficient) -> None:
    human = [True, True, True, True, False, False, False]
    few = coefficient(human, human, len(human))
    assert (few.value, few.interval) == (1.0, None)
    assert few.reason == "fewer than 8 independent labels (7) exclude nothing"
    assert MIN_UNITS == 8
    assert math.comb(7, 3) < 40 <= math.comb(8, 4)  # the reason for this number


def test_nothing_to_compare_has_no_agreement() -> None:
    assert observed_agreement([], [], 0).reason == "no case has a label and a verdict"


# -- perfect agreement ----------------------------------------------------------------------------


def test_perfect_agreement_is_no_certainty() -> None:
    human = [True, False] * 10
    found = cohen_kappa(human, human, 20)
    # Wilson's lower end of 20 of 20 is 20 / (20 + z^2); chance is one half.
    low = 20 / (20 + Z * Z)
    assert found.value == 1.0
    assert interval(found).low == pytest.approx((low - 0.5) / 0.5)
    assert interval(found).high == 1.0
    assert found.above_zero


def test_perfect_agreement_over_one_failure_shows_nothing() -> None:
    """One of twenty who says no at random hits the right case as often as this."""
    human = [True] * 19 + [False]
    assert cohen_kappa(human, human, 20).value == 1.0
    assert not cohen_kappa(human, human, 20).above_zero


def test_a_perfect_order_has_an_interval() -> None:
    found = spearman(range(10), range(0, 100, 10), 10)
    bound = 1 - 12 / (10 * 99)
    half = Z * math.sqrt((1 + bound**2 / 2) / 7)
    assert found.value == pytest.approx(1.0)
    assert interval(found).low == pytest.approx(math.tanh(math.atanh(bound) - half))
    assert interval(found).high == 1.0
    turned = spearman(range(10), range(100, 0, -10), 10)
    assert interval(turned).low == -1.0
    assert interval(turned).high == pytest.approx(-interval(found).low)


def test_equal_scores_everywhere_leave_weighted_kappa_without_an_interval() -> None:
    found = quadratic_kappa([1, 2, 3, 4, 5] * 4, [1, 2, 3, 4, 5] * 4, 20)
    assert (found.value, found.interval) == (1.0, None)
    assert "never differ" in found.reason


def test_an_order_of_two_values_of_which_one_is_rare_shows_nothing() -> None:
    scores = [5] * 19 + [1]
    found = spearman(scores, scores, 20)
    assert found.value == pytest.approx(1.0)
    assert found.interval is None
    assert found.reason == "too many values are the same: random ones fit as well"
    # With three of them in twenty, random ones fit once in 1140 draws.
    rarer = [5] * 17 + [1] * 3
    assert spearman(rarer, rarer, 20).above_zero


def test_huge_and_tiny_scores() -> None:
    human = [1e308, -1e308, 0.0, 5e307, 1e308, -3e307, 2e307, 7e307, -9e307, 1.0]
    assert quadratic_kappa(human, human[::-1], 10).value == pytest.approx(
        quadratic_kappa([x / 1e308 for x in human], [x / 1e308 for x in human[::-1]], 10).value
    )
    tiny = [x / 1e308 * 1e-200 for x in human]
    assert quadratic_kappa(tiny, tiny, 10).value == 1.0


# -- cases that are not independent ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "size"),
    [("", 0), ("abcdef", 6), ("aabbcc", 3), ("aaaa", 1), ("aaaab", 1), ("aabcd", 3)],
)
def test_effective_size(groups: str, size: int) -> None:
    assert effective_size(groups) == size


@pytest.mark.parametrize("coefficient", [*COEFFICIENTS, observed_agreement])
def test_copies_of_cases_show_no_more_than_the_cases(coefficient: Coefficient) -> None:
    human = [True, False, True, True, False, True, False, False, True, False, True, True]
    judge = [True, False, True, False, False, True, False, False, True, False, True, True]
    alone, twice = coefficient(human, judge, 12), coefficient(human * 2, judge * 2, 12)
    assert twice.value == pytest.approx(alone.value)
    assert interval(twice).low == pytest.approx(interval(alone).low)
    assert interval(twice).high == pytest.approx(interval(alone).high)
    assert "12 independent" in interval(twice).method


def test_twins_of_a_rare_label_are_one_hit() -> None:
    """Both twins of one pair among eight: as often by chance as one case among eight."""
    scores = [1, 1] + [5] * 14
    assert spearman(scores, scores, 8).interval is None


# -- properties -----------------------------------------------------------------------------------

_boolean_pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
_number = st.one_of(
    st.integers(1, 5), st.floats(-1e300, 1e300, allow_nan=False, allow_infinity=False)
)
_number_pairs = st.lists(st.tuples(_number, _number), min_size=1, max_size=40)


def _check_bounds(found: Estimate) -> None:
    if found.value is None:
        assert found.interval is None
        assert found.reason
        return
    assert -1.0 - 1e-9 <= found.value <= 1.0 + 1e-9
    if found.interval is None:
        assert found.reason
    else:
        ends = found.interval
        assert -1.0 <= ends.low <= found.value + 1e-9
        assert found.value - 1e-9 <= ends.high <= 1.0
        assert ends.low < ends.high


@given(_boolean_pairs)
def test_booleans_within_bounds(pairs: list[tuple[bool, bool]]) -> None:
    human, judge = zip(*pairs, strict=True)
    for coefficient in (*COEFFICIENTS, observed_agreement):
        _check_bounds(coefficient(human, judge, len(pairs)))


@given(_number_pairs)
def test_numbers_within_bounds(pairs: list[tuple[float, float]]) -> None:
    human, judge = zip(*pairs, strict=True)
    for coefficient in (quadratic_kappa, spearman, observed_agreement):
        _check_bounds(coefficient(human, judge, len(pairs)))


@given(_boolean_pairs)
def test_raters_may_be_swapped_and_booleans_turned_around(pairs: list[tuple[bool, bool]]) -> None:
    human, judge = zip(*pairs, strict=True)
    n = len(pairs)
    found = cohen_kappa(human, judge, n)
    swapped = cohen_kappa(judge, human, n)
    turned = cohen_kappa([not one for one in human], [not one for one in judge], n)
    for other in (swapped, turned):
        assert other.value == pytest.approx(found.value)
        assert (other.interval is None) == (found.interval is None)
        if found.interval is not None:
            assert interval(other).low == pytest.approx(found.interval.low)
            assert interval(other).high == pytest.approx(found.interval.high)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=8, max_size=40),
    st.randoms(use_true_random=False),
)
def test_numbers_do_not_depend_on_order_side_or_scale(
    pairs: list[tuple[int, int]], random: Any
) -> None:
    human, judge = zip(*pairs, strict=True)
    n = len(pairs)
    mixed = list(pairs)
    random.shuffle(mixed)
    others = (
        (judge, human),
        tuple(zip(*mixed, strict=True)),
        ([10 - 2 * one for one in human], [10 - 2 * one for one in judge]),
    )
    for coefficient in (quadratic_kappa, spearman):
        found = coefficient(human, judge, n)
        for one, other in others:
            again = coefficient(one, other, n)
            assert again.value == pytest.approx(found.value, abs=1e-9)
            assert (again.interval is None) == (found.interval is None)


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_ranks_add_up(values: list[int]) -> None:
    found = ranks(values)
    assert sum(found) == pytest.approx(len(values) * (len(values) + 1) / 2)
    for one, first in zip(values, found, strict=True):
        for other, second in zip(values, found, strict=True):
            assert (one < other) == (first < second)


# -- how often chance is taken for more -----------------------------------------------------------


@pytest.mark.parametrize("n", [8, 10, 15, 20, 50])
@pytest.mark.parametrize(("human", "judge"), [(0.5, 0.5), (0.7, 0.7), (0.9, 0.6), (0.8, 0.95)])
def test_few_judges_that_guess_are_taken_for_better(n: int, human: float, judge: float) -> None:
    random = Random(n)
    draws = 2000
    passed = sum(
        cohen_kappa(
            [random.random() < human for _ in range(n)],
            [random.random() < judge for _ in range(n)],
            n,
        ).above_zero
        for _ in range(draws)
    )
    assert passed / draws < 0.035


@pytest.mark.parametrize("n", [8, 10, 15, 20, 50])
@pytest.mark.parametrize("weights", [(1, 1, 1, 1, 1), (1, 1, 2, 6, 10), (1, 0, 0, 0, 9)])
def test_few_scores_at_random_are_taken_for_an_order(n: int, weights: tuple[int, ...]) -> None:
    random = Random(n)
    draws = 1000
    passed = sum(
        spearman(
            random.choices(range(1, 6), weights, k=n), random.choices(range(1, 6), weights, k=n), n
        ).above_zero
        for _ in range(draws)
    )
    assert passed / draws < 0.04
