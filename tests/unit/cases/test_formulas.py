from __future__ import annotations

import pytest

from pytest_agent_eval.cases.formulas import compile_formula
from pytest_agent_eval.errors import ConditionError

NAMES = ("tone", "right-answer")


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("right-answer", "'right-answer' is no name that a formula can hold: rename that judge"),
        ("ton + 1", "did you mean tone?"),
        ("abc", "there are right-answer, tone"),
        ("-1000001", "too large"),
        ("1e999", "numbers and names only"),
        ("'a' * 3", "numbers and names only"),
        ("None", "numbers and names only"),
        ("", "must end in an expression"),
        ("tone\x00", "is no expression"),
        ("tone = 1; del tone; 1", "Delete is not allowed"),
        ("[x for x in [tone]]", "not allowed"),
        ("(tone := 3)", "NamedExpr is not allowed"),
        ("tone + " * 3000 + "1", "is longer than 10,000"),
    ],
)
def test_what_is_no_formula(source: str, word: str) -> None:
    with pytest.raises(ConditionError, match=r".") as caught:
        compile_formula(source, NAMES)
    assert word in str(caught.value)


def test_work_is_bounded() -> None:
    doubling = "x = [tone]\n" + "".join("x = x + x\n" for _ in range(18)) + "len(x)"
    with pytest.raises(ConditionError, match=r"longer than|too much work"):
        compile_formula(doubling, NAMES).value({"tone": 1.0})
