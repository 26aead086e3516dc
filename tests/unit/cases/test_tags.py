from __future__ import annotations

from typing import Any

import pytest

from pytest_agent_eval.cases import read_category, read_tags
from pytest_agent_eval.documents import parse_yaml
from pytest_agent_eval.errors import DocumentError


def test_the_two_forms_give_the_same_thing() -> None:
    listed = read_tags({"tags": ["dedup", "high-overlap", "dedup"]})
    mapped = read_tags({"tags": {"dedup": "yes", "high-overlap": "yes"}})
    assert listed.mapping == mapped.mapping
    assert listed.flat == ("dedup", "high-overlap")
    assert mapped.flat == ()


@pytest.mark.parametrize("annotations", [{}, {"tags": None}, {"tags": []}, {"tags": {}}])
def test_no_tags(annotations: dict[str, Any]) -> None:
    assert (dict(read_tags(annotations).mapping), read_tags(annotations).flat) == ({}, ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tags: [no]", r'tags\[0\]: .*boolean; quote it: tags: \["no"\]'),
        ("tags: [a, on]", r'tags\[1\]: .*boolean; quote it: tags: \["yes"\]'),
        ("tags: [1.0]", r'tags\[0\]: .*number; quote it: tags: \["1\.0"\]'),
        ("tags: [2024-01-02]", r'tags\[0\]: .*quote it: tags: \["2024-01-02"\]'),
        ("tags: {length: 3}", r'tags\.length: .*quote it: tags: \{length: "3"\}'),
        ("tags: {'a{b': yes}", r'tags\.a\{b: .*quote it: tags: \{a\{b: "yes"\}'),
        ("tags: {length: }", r'tags\.length: .*tags: \{length: "yes"\}'),
        ("tags: {yes: a}", r'tags\.True: .*quote it: tags: \{"yes": "\.\.\."\}'),
        ("tags: {'': a}", "key of a tag must not be empty"),
        ("tags: ['']", r"tags\[0\]: a tag must not be empty"),
        ("tags: [[a]]", r"tags\[0\]: must be a text, not a list"),
        ("tags: [{a: b}]", r"tags\[0\]: must be a text, not a mapping"),
        ("tags: dedup", r"write tags: \[dedup\]"),
        ("tags: 3", r"must be a list or a mapping"),
    ],
)
def test_what_is_no_tag_says_how_to_write_it(text: str, says: str) -> None:
    with pytest.raises(DocumentError, match=says):
        read_tags(parse_yaml(text).data)


def test_every_wrong_entry_is_reported() -> None:
    with pytest.raises(DocumentError) as caught:
        read_tags(parse_yaml("tags: [no, on, 1.0, fine]").data)
    assert [problem.path for problem in caught.value.problems] == ["tags[0]", "tags[1]", "tags[2]"]


@pytest.mark.parametrize(("value", "category"), [("nav", "nav"), (None, None), ("", None)])
def test_category(value: str | None, category: str | None) -> None:
    assert read_category({"category": value}) == category
    assert read_category({}) is None


@pytest.mark.parametrize("value", [True, 3, ["nav"]])
def test_a_category_is_a_text(value: Any) -> None:
    with pytest.raises(DocumentError, match=r"annotations\.yaml: category: must be a text"):
        read_category({"category": value})
