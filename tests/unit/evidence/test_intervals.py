from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.intervals import (
    Interval,
    NoInterval,
    cluster_t_interval,
    identical_interval,
    mcnemar_exact,
    min_all_pass_n,
    min_n_at_rate,
    pass_at_k,
    pass_hat_k,
    t_interval,
    wilson,
)
from pytest_agent_eval.evidence.student import regularized_beta, t_quantile, t_tail

confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999])


def interval_of(found: Interval | NoInterval) -> Interval:
    assert isinstance(found, Interval)
    return found


@given(
    st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), confidences
)
def test_wilson_is_a_part_of_0_to_1_around_the_point(kn: tuple[int, int], c: float) -> None:
    k, n = kn
    found = interval_of(wilson(k, n, c))
    assert 0.0 <= found.low <= k / n <= found.high <= 1.0
    assert found.low < found.high


@given(st.integers(1, 300), confidences)
def test_wilson_is_symmetric_in_passes_and_failures(n: int, c: float) -> None:
    for k in range(n + 1):
        one, other = interval_of(wilson(k, n, c)), interval_of(wilson(n - k, n, c))
        assert one.low == pytest.approx(1 - other.high, abs=1e-12)


@pytest.mark.parametrize("n", [5, 10, 30, 100])
def test_wilson_covers_about_as_often_as_it_says(n: int) -> None:
    intervals = [interval_of(wilson(k, n)) for k in range(n + 1)]
    coverages = []
    for step in range(1, 100):
        p = step / 100
        coverages.append(
            sum(
                math.comb(n, k) * p**k * (1 - p) ** (n - k)
                for k, found in enumerate(intervals)
                if found.low <= p <= found.high
            )
        )
    assert 0.94 < statistics.fmean(coverages) < 0.975
    assert min(coverages) > 0.83


@given(st.integers(2, 200), st.sampled_from([0.8, 0.9, 0.95]))
def test_a_higher_confidence_gives_a_wider_interval(n: int, c: float) -> None:
    narrow, wide = interval_of(wilson(n // 2, n, c)), interval_of(wilson(n // 2, n, c + 0.04))
    assert wide.low < narrow.low
    assert wide.high > narrow.high


def test_no_cases_give_no_interval() -> None:
    assert wilson(0, 0) == NoInterval("no case was scored")
    assert t_interval([]) == NoInterval("no case was scored")


@pytest.mark.parametrize(("k", "n", "c"), [(-1, 3, 0.95), (4, 3, 0.95), (1, 3, 0.0), (1, 3, 1.0)])
def test_what_is_no_share_or_no_confidence_is_refused(k: int, n: int, c: float) -> None:
    with pytest.raises(ValueError, match=r"share|confidence"):
        wilson(k, n, c)


@pytest.mark.parametrize(
    ("confidence", "df", "t"),
    [
        (0.95, 1, 12.706204736174694),
        (0.95, 2, 4.302652729749462),
        (0.99, 5, 4.032142983557536),
        (0.95, 30, 2.0422724563012373),
        (0.95, 1000, 1.9623390808264078),
        (0.5, 1, 1.0),
    ],
)
def test_known_quantiles_of_students_t(confidence: float, df: int, t: float) -> None:
    assert t_quantile(confidence, df) == pytest.approx(t, rel=1e-11)


def test_the_ends_of_the_incomplete_beta_function() -> None:
    assert regularized_beta(0.0, 2, 3) == 0.0
    assert regularized_beta(1.0, 2, 3) == 1.0
    assert regularized_beta(0.3, 1, 1) == pytest.approx(0.3)


def test_closed_forms_of_students_t() -> None:
    for c in (0.1, 0.5, 0.9, 0.99, 0.9999):
        assert t_quantile(c, 1) == pytest.approx(math.tan(math.pi * c / 2), rel=1e-10)
        assert t_quantile(c, 2) == pytest.approx(c * math.sqrt(2 / (1 - c * c)), rel=1e-10)


@given(st.integers(1, 3000), st.floats(0.01, 0.995))
def test_the_t_quantile_is_monotone_and_inverts_the_tail(df: int, c: float) -> None:
    t = t_quantile(c, df)
    assert t_quantile(c, df + 1) < t < t_quantile(c + 0.004, df)
    assert t > statistics.NormalDist().inv_cdf(0.5 + c / 2)
    assert 2 * t_tail(t, df) == pytest.approx(1 - c, rel=1e-9)


@given(st.floats(0.01, 0.99), st.floats(0.1, 200), st.floats(0.1, 200))
def test_the_incomplete_beta_function_is_symmetric(x: float, a: float, b: float) -> None:
    value = regularized_beta(x, a, b)
    assert -1e-12 <= value <= 1 + 1e-12
    assert value + regularized_beta(1 - x, b, a) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("c", "df"), [(0.0, 3), (1.0, 3), (0.95, 0)])
def test_quantiles_that_do_not_exist(c: float, df: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        t_quantile(c, df)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=60), confidences)
def test_a_t_interval_lies_around_the_mean_and_has_a_width(values: list[int], c: float) -> None:
    found = t_interval(values, c)
    if len(set(values)) == 1:
        assert found == NoInterval(f"all {len(values)} values are {values[0]}")
    else:
        found = interval_of(found)
        assert found.low < statistics.fmean(values) < found.high


def test_one_case_has_no_spread() -> None:
    assert t_interval([3.0]) == NoInterval("one case has no spread")


def test_values_that_differ_by_rounding_are_identical() -> None:
    assert isinstance(t_interval([0.1 + 0.2, 0.3]), NoInterval)


@given(st.lists(st.integers(0, 9), min_size=5, max_size=40))
def test_clusters_of_one_case_are_plain_cases(values: list[int]) -> None:
    clustered, plain = cluster_t_interval([(v, 1) for v in values]), t_interval(values)
    if isinstance(plain, NoInterval):
        assert isinstance(clustered, NoInterval)
    else:
        clustered = interval_of(clustered)
        assert clustered.low == pytest.approx(plain.low)
        assert clustered.high == pytest.approx(plain.high)


def test_twins_that_agree_count_as_one_case() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 5.0]
    twins = interval_of(cluster_t_interval([(2 * v, 2) for v in values]))
    single = interval_of(t_interval(values))
    assert (twins.low, twins.high) == pytest.approx((single.low, single.high))


def test_too_few_and_equal_clusters_give_no_interval() -> None:
    assert cluster_t_interval([(1.0, 2)] * 4) == NoInterval("fewer than 5 independent groups")
    assert cluster_t_interval([(3.0, 2)] * 6) == NoInterval("all 6 groups have the mean 1.5")


def test_identical_values_on_a_known_scale() -> None:
    found = interval_of(identical_interval(5.0, 20, (1.0, 5.0)))
    assert found.high == 5.0
    assert found.low == pytest.approx(1 + 4 * 0.8388748419471808)
    middle = interval_of(identical_interval(3.0, 20, (1.0, 5.0)))
    assert middle.low < 3.0 < middle.high
    assert isinstance(identical_interval(3.0, 0, (1.0, 5.0)), NoInterval)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_symmetric_and_a_probability(b: int, c: int) -> None:
    p = mcnemar_exact(b, c)
    assert 0 < p <= 1
    assert p == mcnemar_exact(c, b)
    expected = sum(
        math.comb(b + c, i) for i in range(b + c + 1) if abs(2 * i - b - c) >= abs(b - c)
    )
    assert p == pytest.approx(min(1.0, expected / 2 ** (b + c)))


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_1_and_pass_hat_1_are_the_share(nc: tuple[int, int]) -> None:
    n, c = nc
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)
    assert pass_hat_k(n, c, 1) == pytest.approx(c / n)
    assert pass_at_k(n, c, n) == (1.0 if c else 0.0)
    assert pass_hat_k(n, c, n) == (1.0 if c == n else 0.0)
    assert pass_hat_k(n, c, n) <= c / n <= pass_at_k(n, c, n)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_trials_that_cannot_be(n: int, c: int, k: int) -> None:
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=r"cannot|between"):
            function(n, c, k)


@given(st.floats(0, 0.999), confidences)
def test_the_smallest_n_is_enough_and_one_less_is_not(edge: float, c: float) -> None:
    n = min_all_pass_n(edge, c)
    assert interval_of(wilson(n, n, c)).low > edge - 1e-12
    if n > 1:
        assert interval_of(wilson(n - 1, n - 1, c)).low <= edge + 1e-12


def test_no_number_of_cases_shows_certainty() -> None:
    with pytest.raises(ValueError, match="below 1"):
        min_all_pass_n(1.0)


@given(st.floats(0.01, 0.99), st.floats(0, 1), confidences)
def test_the_smallest_n_at_a_rate_is_enough_and_one_less_is_not(
    bound: float, rate: float, c: float
) -> None:
    if abs(rate - bound) < 0.01:
        return
    n = min_n_at_rate(rate, bound, c)
    assert not _holds(interval_of(wilson(rate * n, n, c)), bound, -1e-9)
    if n > 1:
        assert _holds(interval_of(wilson(rate * (n - 1), n - 1, c)), bound, 1e-9)


def _holds(found: Interval, bound: float, slack: float) -> bool:
    return found.low - slack <= bound <= found.high + slack


def test_how_many_cases_a_rate_needs() -> None:
    assert min_n_at_rate(0.95, 0.9) == 139
    assert min_n_at_rate(1.0, 0.9) == min_all_pass_n(0.9)
    assert min_n_at_rate(0.5, 0.0) == 1
    with pytest.raises(ValueError, match="no number of cases"):
        min_n_at_rate(0.9, 0.9)
