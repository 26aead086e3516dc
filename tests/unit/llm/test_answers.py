from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.llm.answers import objects_in

PROSE = st.text(st.characters(exclude_characters="{}"))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


@given(st.lists(st.tuples(PROSE, OBJECTS), max_size=4), PROSE)
def test_objects_are_found_in_any_prose(parts: list[tuple[str, dict[str, Any]]], end: str) -> None:
    text = "".join(f"{prose}{json.dumps(value)}" for prose, value in parts) + end
    assert objects_in(text) == [value for _, value in parts]


@given(st.text('{}[]",:1 a\n'))
def test_no_text_is_too_broken(text: str) -> None:
    for found in objects_in(text):
        assert isinstance(found, dict)


def test_superfluous_commas_do_no_harm() -> None:
    text = 'So: {"score": 3, "why": ["a", "b, }",], "more": {"x": 1,},\n} and {"score": 4 , }'
    assert objects_in(text) == [
        {"score": 3, "why": ["a", "b, }"], "more": {"x": 1}},
        {"score": 4},
    ]
    assert objects_in('{"a": ,}') == []
    assert objects_in("{,}") == [{}]


def test_line_breaks_in_strings_do_no_harm() -> None:
    text = '{ "rationale": "first\n\tsecond","score":1}\n{"rationale": "a\nb", }'
    assert objects_in(text) == [
        {"rationale": "first\n\tsecond", "score": 1},
        {"rationale": "a\nb"},
    ]


def test_deep_and_long_texts_end() -> None:
    assert objects_in("{" * 100_000 + '{"a": 1}') == [{"a": 1}]
    assert objects_in('{"a":' * 50_000) == []
    assert objects_in('{"count": 1} then {"count": 2}') == [{"count": 1}, {"count": 2}]
