from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from pytest_agent_eval.judges.builtin.efficiency import (
    cost_budget,
    duration_budget,
    token_budget,
    turn_budget,
)

RecordFactory = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("cost", "limit", "passed"),
    [(0.0, 0, True), (1.0, 1.0, True), (1.0001, 1.0, False), (0.01, 0, False)],
)
def test_cost(record: RecordFactory, cost: float, limit: float, passed: bool) -> None:
    value, rationale = cost_budget.judge(record(cost_usd=cost), max_cost_usd=limit)
    assert value is passed
    assert ("<=" if passed else ">") in rationale
    assert "USD" in rationale


def test_cost_has_a_default(record: RecordFactory) -> None:
    assert cost_budget.judge(record(cost_usd=1.0))[0]
    assert not cost_budget.judge(record(cost_usd=1.5))[0]


@pytest.mark.parametrize("cost", [None, math.nan, math.inf, "0.1", True])
def test_unknown_cost_fails_and_says_so(record: RecordFactory, cost: Any) -> None:
    value, rationale = cost_budget.judge(record(cost_usd=cost))
    assert value is False
    assert "cost unknown" in rationale


@pytest.mark.parametrize(
    ("usage", "passed"),
    [
        ({"input": 60, "output": 40, "cache_read": 9999}, True),
        ({"input": 61, "output": 40}, False),
        ({"input": 0, "output": 0}, True),
        ({"input": 60}, False),
        ({"input": None, "output": 1}, False),
        ({}, False),
        (None, False),
    ],
)
def test_tokens(record: RecordFactory, usage: Any, passed: bool) -> None:
    assert token_budget.judge(record(token_usage=usage), max_tokens=100)[0] is passed


@pytest.mark.parametrize(("seconds", "passed"), [(2, True), (2.01, False), (None, False)])
def test_duration(record: RecordFactory, seconds: float | None, passed: bool) -> None:
    value, rationale = duration_budget.judge(record(duration_s=seconds), max_seconds=2)
    assert value is passed
    assert rationale


@pytest.mark.parametrize(("turns", "passed"), [(3, True), (4, False), (None, False)])
def test_turns(record: RecordFactory, turns: int | None, passed: bool) -> None:
    assert turn_budget.judge(record(num_turns=turns), max_turns=3)[0] is passed
