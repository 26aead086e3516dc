from __future__ import annotations

import datetime
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.cases import Split, position
from pytest_agent_eval.errors import DocumentError, SelectionError

names = st.text(min_size=1)
shares = st.floats(0, 1)


@given(names, st.text(), shares, shares)
def test_more_holdout_only_moves_cases_from_dev_to_holdout(
    name: str, salt: str, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    before, after = Split(low, salt=salt).half(name), Split(high, salt=salt).half(name)
    assert (before, after) != ("holdout", "dev")


@given(names)
def test_the_ends_of_the_range(name: str) -> None:
    assert Split(0.0).half(name) == "dev"
    assert 0 <= position(name) <= 1


@given(st.lists(names, unique=True), st.randoms())
def test_neither_order_nor_other_cases_matter(all_names: list[str], random: Any) -> None:
    split = Split(0.4)
    halves = {name: split.half(name) for name in all_names}
    random.shuffle(all_names)
    assert {name: split.half(name) for name in all_names[::2]}.items() <= halves.items()


@given(names, st.text())
def test_forms_of_one_text_are_one_unit(name: str, salt: str) -> None:
    decomposed = unicodedata.normalize("NFD", name)
    composed = unicodedata.normalize("NFC", name)
    split = Split(0.5, "annotations.pair", salt)
    assert position(decomposed, salt) == position(composed, salt)
    assert split.unit("x", {"pair": decomposed}) == split.unit("x", {"pair": composed})


def test_halves_come_out_near_the_share_asked_for() -> None:
    split = Split(0.3)
    holdout = sum(split.half(f"case-{number}") == "holdout" for number in range(2000))
    assert 500 < holdout < 700


def test_a_group_shares_its_half_and_is_hashed_by_its_value_alone() -> None:
    split = Split(0.5, "annotations.pair", "v2:")
    unit, group = split.unit("case-1", {"pair": "pair-3"})
    assert (unit, group) == ("pair-3", "pair-3")
    assert split.half(unit) == Split(0.5, salt="v2:").half("pair-3")


@pytest.mark.parametrize(
    ("value", "group"),
    [("a", "a"), (3, "3"), (True, "True"), (datetime.date(2024, 1, 2), "2024-01-02"), (0, "0")],
)
def test_values_that_name_a_group(value: Any, group: str) -> None:
    assert Split(by="annotations.a.b").unit("case-1", {"a": {"b": value}}) == (group, group)


@pytest.mark.parametrize(
    "annotations", [{}, {"a": None}, {"a": {}}, {"a": {"b": None}}, {"a": {"b": ""}}, {"a": "text"}]
)
def test_a_case_without_the_annotation_stands_alone(annotations: dict[str, Any]) -> None:
    assert Split(by="annotations.a.b").unit("case-1", annotations) == ("case-1", None)


def test_by_name_there_is_no_group() -> None:
    assert Split().unit("case-1", {"name": "x"}) == ("case-1", None)


@pytest.mark.parametrize("value", [["a"], {"b": 1}])
def test_a_collection_names_no_group(value: Any) -> None:
    with pytest.raises(DocumentError, match=r"annotations\.yaml: pair: a (list|mapping) cannot"):
        Split(by="annotations.pair").unit("case-1", {"pair": value})


@pytest.mark.parametrize(
    "by", ["", "pair", "annotations", "annotations.", "annotations.a..b", "x.y"]
)
def test_by_must_be_name_or_an_annotation(by: str) -> None:
    with pytest.raises(SelectionError, match=r"split\.by"):
        Split(by=by)


def test_a_bare_key_is_explained() -> None:
    with pytest.raises(SelectionError, match=r"did you mean annotations\.pair\?"):
        Split(by="pair")
