"""Conditions: what is true, what raises, what is refused at load, and what must not run away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.cases import JUDGE_NAMES, compile_condition
from pytest_agent_eval.errors import ConditionError

DATA = json.loads(Path(__file__).with_name("conditions.json").read_text(encoding="utf-8"))
SCOPE: dict[str, Any] = {
    "annotations": {"category": "navigation", "tags": ["dedup", "high-overlap"], "tier": 2},
    "input": {"prompt": "Find it"},
    "name": "case-001",
    "split": "dev",
    "tags": {"dedup": "yes", "high-overlap": "yes"},
    "outputs": {"cost_usd": 0.4, "files": {"a.md": "hello"}},
}


@pytest.mark.parametrize("source", DATA["true"])
def test_true(source: str) -> None:
    assert compile_condition(source, JUDGE_NAMES).evaluate(SCOPE) is True


@pytest.mark.parametrize("source", DATA["false"])
def test_false(source: str) -> None:
    assert compile_condition(source, JUDGE_NAMES).evaluate(SCOPE) is False


@pytest.mark.parametrize("source", DATA["raises_for_this_case"])
def test_raises_for_this_case(source: str) -> None:
    condition = compile_condition(source, JUDGE_NAMES)
    with pytest.raises(ConditionError) as caught:
        condition.evaluate(SCOPE)
    assert str(caught.value).startswith(f"{source} raised ")


@pytest.mark.parametrize("source", DATA["rejected_when_loaded"])
def test_rejected_when_loaded(source: str) -> None:
    with pytest.raises(ConditionError):
        compile_condition(source, JUDGE_NAMES)


@pytest.mark.parametrize("source", DATA["must_end_within_a_second_with_an_error"])
def test_ends_with_an_error(source: str) -> None:
    # Without a bound each of these takes minutes or all memory, so that it ends is the test.
    with pytest.raises(ConditionError):
        compile_condition(source, JUDGE_NAMES).evaluate(SCOPE)
