from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.intervals import Interval, wilson
from pytest_agent_eval.reports.numbers import count, estimate, money, score, seconds, tokens


def test_estimates() -> None:
    assert estimate(3.721, Interval(3.409, 4.02, 0.95, "t")) == "3.72 [3.41, 4.02]"
    assert estimate(3.721, None) == "3.72"
    assert estimate(1.0, Interval(0.9992, 1.0, 0.95, "wilson")) == "1.000 [0.999, 1.000]"


@given(st.integers(1, 100_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_zero_width_interval_is_never_printed(kn: tuple[int, int]) -> None:
    interval = wilson(*kn)
    assert isinstance(interval, Interval)
    low, high = estimate(kn[0] / kn[1], interval).split(" ", 1)[1].strip("[]").split(", ")
    assert low != high


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (4, "4"), (3.14159, "3.142"), (None, "")]
)
def test_scores(value: bool | float | None, text: str) -> None:
    assert score(value) == text


def test_counts_money_time_tokens() -> None:
    assert [count(n, "case") for n in (0, 1, 1200)] == ["0 cases", "1 case", "1,200 cases"]
    assert [money(usd) for usd in (0, 0.0123, 0.5, 1234.5)] == [
        "$0.00",
        "$0.0123",
        "$0.50",
        "$1,234.50",
    ]
    assert [seconds(s) for s in (0.04, 12.4, 59.7, 200, 7500)] == [
        "0.0 s",
        "12 s",
        "1 min 00 s",
        "3 min 20 s",
        "2 h 05 min",
    ]
    assert [tokens(n) for n in (950, 12_340, 999_950, 4_600_000)] == [
        "950",
        "12.3k",
        "1.0M",
        "4.6M",
    ]
