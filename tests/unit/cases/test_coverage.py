from __future__ import annotations

import pytest

from pytest_agent_eval.cases import JUDGE_NAMES, BrokenCase, Case, compile_condition, decided
from pytest_agent_eval.cases.coverage import holds, is_early
from pytest_agent_eval.errors import CaseError

from .test_selection import make

CASES: list[Case | BrokenCase] = [
    make("case-1", kind="a", size=1),
    make("case-2", kind="b", size=2),
    make("case-3", "holdout", kind="b"),
    BrokenCase("case-4", "/data/case-4", CaseError("case-4", "no input.yaml")),
]


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("annotations.get('kind') == 'b'", (2, 1)),
        ("True", (3, 0)),
        ("annotations.get('nowhere')", (0, 3)),
        ("annotations['size'] > 1", (1, 1)),
        ("split == 'holdout' or name == 'case-1'", (2, 1)),
        ("group is None and not tags", (3, 0)),
    ],
)
def test_how_often_each_branch_is_tried(source: str, counts: tuple[int, int]) -> None:
    condition = compile_condition(source, JUDGE_NAMES)
    assert is_early(condition)
    assert decided(condition, CASES) == counts


@pytest.mark.parametrize("source", ["input['x']", "outputs", "trial == 1", "variant or case"])
def test_what_is_not_known_at_collection(source: str) -> None:
    condition = compile_condition(source, JUDGE_NAMES)
    assert not is_early(condition)
    with pytest.raises(ValueError, match="not known at collection"):
        decided(condition, CASES)


def test_one_case() -> None:
    condition = compile_condition("annotations['size'] > 1", JUDGE_NAMES)
    answers = [holds(condition, make("x", size=2)), holds(condition, make("x", size=1))]
    assert answers == [True, False]
    assert holds(condition, make("x")) is None
