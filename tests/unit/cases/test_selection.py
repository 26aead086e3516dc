from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.cases import BrokenCase, Case, Selected, Selection, dataset_cases, select
from pytest_agent_eval.cases.split import Half
from pytest_agent_eval.errors import CaseError, ConditionError, SelectionError

from .conftest import Dataset


def make(name: str, split: Half = "dev", path: str = "", **annotations: object) -> Case:
    tags = annotations.get("tags", {})
    assert isinstance(tags, dict)
    return Case(
        name, path or f"/data/{name}", "input.yaml", annotations, split, None, tags, (), None
    )


def broken(name: str) -> BrokenCase:
    return BrokenCase(name, f"/data/{name}", CaseError(name, "no input.yaml"))


CASES = [
    make("case-1", "dev", tags={"length": "short"}, tier=1),
    make("case-2", "holdout", tags={"length": "long", "dedup": "yes"}, tier=2),
    make("case-3", "dev", tags={"dedup": "yes"}, tier=3),
    make("case-4", "dev", tier=4),
    make("case-5", "holdout", tier=5),
]


def names(selected: Selected) -> list[str]:
    return [case.name for case in selected.kept]


@pytest.mark.parametrize(
    ("selection", "kept"),
    [
        (Selection(), "12345"),
        (Selection(split="all"), "12345"),
        (Selection(split="dev"), "134"),
        (Selection(split="holdout"), "25"),
        (Selection(tags=["length"]), "12"),
        (Selection(tags=["length=long"]), "2"),
        (Selection(tags=["dedup", "length"]), "2"),
        (Selection(tags=[" dedup "]), "23"),
        (Selection(condition="annotations['tier'] > 3"), "45"),
        (Selection(dataset_condition="annotations['tier'] < 3", split="dev"), "1"),
        (Selection(limit=1), "12"),
        (Selection(limit=2), "1235"),
        (Selection(split="dev", limit=2), "13"),
        (Selection(condition="annotations['tier'] > 1", limit=1), "23"),
        (Selection(rules=[("include", "case-[1-3]")]), "123"),
        (Selection(rules=[("exclude", "case-[1-3]")]), "45"),
        (Selection(rules=[("exclude", "*"), ("include", "case-4")]), "4"),
        (Selection(rules=[("include", "*"), ("exclude", "*-2"), ("include", "case-2")]), "12345"),
        (Selection(rules=[("include", "case-[1-3]"), ("exclude", "*-2")]), "13"),
        (Selection(rules=[("include", "CASE-1"), ("include", "case-1")]), "1"),
    ],
)
def test_what_is_kept(selection: Selection, kept: str) -> None:
    selected = select(CASES, selection)
    assert names(selected) == [f"case-{number}" for number in kept]
    assert sorted([*names(selected), *[case.name for case in selected.dropped]]) == [
        case.name for case in CASES
    ]
    assert selected.emptied_by == ""


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (
            Selection(tags=["lenth"]),
            "--agent-eval-tag lenth: 5 cases before it, with the tags "
            "dedup, length; did you mean length?",
        ),
        (Selection(tags=["length=huge"]), "5 cases before it, where length is long, short"),
        (Selection(rules=[("include", "case-[45]")], tags=["x"]), "none of them with a tag"),
        (
            Selection(split="holdout", condition="split == 'dev'"),
            "--agent-eval-if \"split == 'dev'\": false for all of 2 cases",
        ),
        (Selection(condition="name == 'case-1'", split="holdout"), "--agent-eval-if"),
        (
            Selection(rules=[("include", "case-1")], split="holdout"),
            "--agent-eval-split holdout: 1 case before it, all of them in the dev half",
        ),
        (Selection(rules=[("include", "case-2")], split="dev"), "in the holdout half"),
        (Selection(rules=[("include", "x*")]), "dataset.cases: include x* leaves none of 5 cases"),
        (Selection(dataset_condition="False", tags=["x"]), "dataset.if 'False'"),
    ],
)
def test_it_says_which_filter_emptied_it(selection: Selection, says: str) -> None:
    selected = select(CASES, selection)
    assert (selected.kept, len(selected.dropped)) == ((), 5)
    assert says in selected.emptied_by


def test_of_no_case_nothing_is_left() -> None:
    assert select([], Selection()) == Selected((), (), "no case was collected")


def test_broken_cases_stay_where_what_a_filter_asks_is_unknown() -> None:
    cases: list[Case | BrokenCase] = [*CASES, broken("case-6")]
    for selection in (
        Selection(split="dev"),
        Selection(tags=["nowhere"]),
        Selection(condition="False"),
        Selection(dataset_condition="False"),
        Selection(limit=1),
    ):
        assert names(select(cases, selection))[-1] == "case-6"
    selected = select(cases, Selection(rules=[("exclude", "case-6")]))
    assert [case.name for case in selected.dropped] == ["case-6"]


def test_a_condition_that_raises_breaks_that_case() -> None:
    cases = [make("case-1"), make("case-2", tier=2)]
    one, two = select(cases, Selection(condition="annotations['tier'] == 2")).kept
    assert two is cases[1]
    assert isinstance(one, BrokenCase)
    assert str(one.error).startswith(
        "case-1: --agent-eval-if: annotations['tier'] == 2 raised KeyError: 'tier'"
    )


def test_a_condition_may_read_the_input(dataset: Dataset) -> None:
    dataset.case("case-1", input="prompt: a\n")
    dataset.case("case-2", input="prompt: b\n")
    dataset.case("case-3", input="- no mapping\n")
    kept = dataset_cases(dataset.read(), (), "input['prompt'] == 'b'")
    assert [case.name for case in kept] == ["case-2", "case-3"]
    assert isinstance(kept[1], BrokenCase)
    assert "must be a mapping" in str(kept[1].error)


def test_the_dataset_of_a_suite() -> None:
    rules = [("exclude", "case-1")]
    kept = dataset_cases(CASES, rules, "annotations['tier'] < 4")
    assert [case.name for case in kept] == ["case-2", "case-3"]
    assert dataset_cases(CASES, (), "") == tuple(CASES)
    with pytest.raises(SelectionError, match=r"dataset\.cases: exclude \* leaves none"):
        dataset_cases(CASES, [("exclude", "*")], None)


def test_globs_match_names_in_any_unicode_form() -> None:
    cases = [make("na\u00efve")]
    assert names(select(cases, Selection(rules=[("include", "nai\u0308*")]))) == ["na\u00efve"]


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection(split="test"), "must be dev, holdout or all"),
        (Selection(tags=["=x"]), "needs KEY or KEY=VALUE"),
        (Selection(tags=[""]), "needs KEY or KEY=VALUE"),
        (Selection(limit=0), "at least 1"),
        (Selection(rules=[("only", "x")]), "neither include nor exclude"),
    ],
)
def test_what_cannot_be_understood(selection: Selection, says: str) -> None:
    for cases in (CASES, []):
        with pytest.raises(SelectionError, match=says):
            select(cases, selection)


def test_a_condition_that_cannot_be_compiled() -> None:
    with pytest.raises(
        ConditionError, match=r"^--agent-eval-if: nme: unknown name; did you mean name\?"
    ):
        select(CASES, Selection(condition="nme == 'x'"))
    with pytest.raises(ConditionError, match=r"^dataset\.if: outputs: unknown name"):
        select(CASES, Selection(dataset_condition="outputs"))


@given(st.lists(st.sampled_from(["dev", "holdout"])), st.integers(1, 5))
def test_a_limit_takes_the_first_of_each_half(halves: list[Half], limit: int) -> None:
    cases = [make(f"case-{index}", half) for index, half in enumerate(halves)]
    kept = select(cases, Selection(limit=limit)).kept
    for half in ("dev", "holdout"):
        of_half = [case for case in cases if case.split == half]
        assert [case for case in kept if isinstance(case, Case) and case.split == half] == of_half[
            :limit
        ]


def test_nothing_is_read_without_need(tmp_path: Path) -> None:
    cases = [make("case-1", path=str(tmp_path / "nowhere"), tier=1)]
    assert names(select(cases, Selection(condition="annotations['tier'] == 1"))) == ["case-1"]
