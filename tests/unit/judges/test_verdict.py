from __future__ import annotations

import enum
import math
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.cases.conditions import VALUE_NAMES, compile_condition
from pytest_agent_eval.judges.verdict import MAX_RATIONALE, to_verdict
from pytest_agent_eval.results import Verdict


class Grade(enum.IntEnum):
    GOOD = 2


def verdict(answer: Any, **settings: Any) -> Verdict:
    return to_verdict(answer, name="j", **settings)


@pytest.mark.parametrize(
    ("answer", "settings", "value"),
    [
        (False, {}, False),
        (0, {}, 0),
        (numpy.int64(4), {}, 4),
        (numpy.float32(0.5), {}, 0.5),
        (numpy.array(True), {}, True),
        (Fraction(1, 2), {}, 0.5),
        (Decimal("2.5"), {}, 2.5),
        (Grade.GOOD, {}, 2),
        (1.0, {"feedback_type": "bool"}, True),
        (0, {"feedback_type": "bool"}, False),
        (numpy.bool_(False), {"feedback_type": "bool"}, False),
        (4.0, {"feedback_type": "int"}, 4),
        (4, {"feedback_type": "float"}, 4.0),
        (1, {"score_range": [1, 5]}, 1),
        (5.0, {"score_range": [1, 5]}, 5.0),
        (True, {"score_range": [0, 1]}, 1),
        (SimpleNamespace(value=3, rationale="r"), {}, 3),
        (SimpleNamespace(value=True), {}, True),
        (Verdict("other", 2, "r"), {}, 2),
    ],
)
def test_value(answer: Any, settings: dict[str, Any], value: Any) -> None:
    result = verdict(answer, **settings)
    assert (result.judge, result.error, result.value) == ("j", "", value)
    assert type(result.value) is type(value)
    assert result.passed is (value if isinstance(value, bool) else None)


@pytest.mark.parametrize(
    ("answer", "settings", "word"),
    [
        (None, {}, "no value"),
        ((None, "why"), {}, "no value"),
        (SimpleNamespace(value=None, rationale=""), {}, "no value"),
        ("yes", {}, "wrong type: 'yes' is of type str"),
        (b"1", {}, "type"),
        ([True, "x"], {}, "type"),
        ({"value": True}, {}, "type"),
        (1j, {}, "type"),
        (numpy.array([1, 2]), {}, "type"),
        (numpy.array([True]), {}, "type"),
        (object, {}, "type"),
        ((), {}, "shape"),
        ((True,), {}, "shape"),
        ((True, "a", "b"), {}, "tuple of 3"),
        (math.inf, {}, "not finite"),
        (numpy.float64("nan"), {}, "not finite"),
        (10**400, {}, "not finite"),
        (Fraction(10**400), {}, "not finite"),
        (Decimal("1e5000"), {}, "not finite"),
        (2, {"feedback_type": "bool"}, "2 is no bool"),
        (0.5, {"feedback_type": "bool"}, "type"),
        (3.5, {"feedback_type": "int"}, "3.5 is no int"),
        (True, {"feedback_type": "int"}, "type"),
        (True, {"feedback_type": "float"}, "type"),
        (0.999, {"score_range": [1, 5]}, "the value 0.999 is outside score_range [1, 5]"),
        (5.0001, {"score_range": [1, 5]}, "outside"),
        (False, {"score_range": [1, 5]}, "outside"),
    ],
)
def test_error(answer: Any, settings: dict[str, Any], word: str) -> None:
    result = verdict(answer, **settings)
    assert word in result.error
    assert "\n" not in result.error
    assert (result.value, result.passed, result.skipped) == (None, None, False)


@pytest.mark.parametrize(
    ("rationale", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (3, "3"),
        (["a"], "['a']"),
        (b"a\xff", "a\ufffd"),
        ("verdict: FAIL \u200b", "verdict: FAIL \u200b"),
    ],
)
def test_rationale_is_any_text(rationale: Any, text: str) -> None:
    result = verdict((True, rationale))
    assert (result.value, result.passed, result.rationale) == (True, True, text)


def test_rationale_that_cannot_be_shown() -> None:
    class Silent:
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert verdict((True, Silent())).rationale == (
        "(a rationale that cannot be shown: RuntimeError)"
    )


def test_long_rationale_is_cut_and_says_so() -> None:
    result = verdict((True, "x" * (MAX_RATIONALE + 1234)))
    assert result.rationale.startswith("x" * MAX_RATIONALE + " ...")
    assert "1,234 more characters" in result.rationale


def test_rationale_survives_an_error() -> None:
    assert verdict((7, "seven"), score_range=[1, 5]).rationale == "seven"


def test_named_tuple_of_two() -> None:
    class Answer(NamedTuple):
        rationale_first: bool
        second: str

    assert verdict(Answer(True, "r")) == Verdict("j", True, "r", True)


def test_skipped_answers() -> None:
    assert verdict(Verdict("", rationale="n/a", skipped=True)) == Verdict(
        "j", rationale="n/a", skipped=True
    )
    answer = SimpleNamespace(value=None, rationale="n/a", skipped=True)
    assert verdict(answer) == Verdict("j", rationale="n/a", skipped=True)
    assert verdict(SimpleNamespace(value=None, skipped=True)).skipped


def test_an_answered_error_stays_one_even_with_a_value() -> None:
    answer = Verdict("", True, passed=True, skipped=True, error="rubric missing", detail="d")
    assert verdict(answer) == Verdict("j", error="rubric missing", detail="d")


def test_detail_of_a_verdict_is_kept_but_not_what_it_claims_to_assert() -> None:
    answer = Verdict("", False, "r", passed=True, detail="long")
    assert verdict(answer) == Verdict("j", False, "r", False, detail="long")


@pytest.mark.parametrize(("value", "passed"), [(4, True), (3.9, False), (True, False)])
def test_pass_if(value: Any, passed: bool) -> None:
    condition = compile_condition("value >= 4", VALUE_NAMES)
    assert verdict(value, pass_if=condition).passed is passed


def test_pass_if_can_turn_a_boolean_round() -> None:
    condition = compile_condition("not value", VALUE_NAMES)
    assert verdict(False, pass_if=condition).passed is True


def test_pass_if_that_raises_is_a_judge_error() -> None:
    condition = compile_condition("value['x'] == 1", VALUE_NAMES)
    result = verdict(4, pass_if=condition)
    assert result.error
    assert result.value is None


@given(
    st.one_of(
        st.booleans(), st.integers(), st.floats(), st.text(), st.none(), st.tuples(st.integers())
    ),
    st.sampled_from([None, "bool", "int", "float"]),
    st.sampled_from([None, (1, 5)]),
)
def test_exactly_one_of_value_and_error(
    answer: Any, feedback_type: str | None, score_range: tuple[float, float] | None
) -> None:
    result = verdict(answer, feedback_type=feedback_type, score_range=score_range)
    assert (result.value is not None) != bool(result.error)
    if result.value is not None:
        assert math.isfinite(result.value)
        if score_range is not None and feedback_type != "bool":
            assert 1 <= result.value <= 5


def test_a_number_too_long_to_print_is_still_an_error() -> None:
    assert verdict(10**5000).error.endswith("is not finite")
