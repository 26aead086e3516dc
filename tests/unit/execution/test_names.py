from __future__ import annotations

import datetime
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.execution.names import clean_text, plain, printable, to_json


@given(st.text(st.characters()))
def test_sound_text_is_unchanged(text: str) -> None:
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        text.encode("utf-16", "surrogatepass")
        clean_text(text).encode()
    else:
        assert clean_text(text) is text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a\ud800b", "a�b"),
        ("\udcff", "�"),
        ("\x00\x1b[31m", "\x00\x1b[31m"),
        ("\ud83d\ude00", "\U0001f600"),
    ],
)
def test_lone_surrogates_are_replaced(text: str, clean: str) -> None:
    assert clean_text(text) == clean


def test_names_for_people() -> None:
    assert printable("ä b.txt") == "ä b.txt"
    assert printable("a\nb\x1b\udcff") == "a\\nb\\x1b\\udcff"


def test_everything_becomes_valid_json() -> None:
    value = {
        1: math.nan,
        "t": (1, {2}),
        "d": datetime.date(2024, 1, 1),
        "\ud800": "\ud800",
        "n": None,
        "b": True,
        "f": 1.5,
    }
    text = to_json(value)
    assert json.loads(text) == {
        "1": None,
        "t": [1, [2]],
        "d": "2024-01-01",
        "�": "�",
        "n": None,
        "b": True,
        "f": 1.5,
    }
    assert text.isascii()
    assert "\n" not in text
    assert plain(-math.inf) is None


def test_what_contains_itself_is_cut() -> None:
    value: list[object] = []
    value.append(value)
    assert to_json(value).count("[") == 100
