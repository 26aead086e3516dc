from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.reports.printable import (
    display_width,
    hanging,
    one_line,
    padded,
    printable,
    shortened,
    wrapped,
)

anything = st.text(st.characters(), max_size=200)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\r\nb", "a\nb"),
        ("over\rwritten", "over\\x0dwritten"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("nul\0", "nul\\x00"),
        ("\x9b1m", "\\x9b1m"),
        ("\ud800", "\\ud800"),
        ("a\u202egnp.exe", "a\\u202egnp.exe"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("line\u2028end", "line\\u2028end"),
        ("pass\u200bed", "pass\\u200bed"),
        ("\ufeffx\ufffe", "\\ufeffx\\ufffe"),
        ("\U000e0041", "\\U000e0041"),
        ("größer 日本 👍🏽 \u0645", "größer 日本 👍🏽 \u0645"),
    ],
)
def test_what_is_not_plain_text_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(anything)
def test_nothing_printable_can_control_a_terminal(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"]
    assert printable(shown) == shown
    line = one_line(text)
    assert line == " ".join(line.split())
    assert "\n" not in line


@given(anything, st.integers(10, 90))
def test_a_shortened_line_fits(text: str, width: int) -> None:
    line = one_line(text, width)
    assert display_width(line) <= width
    if display_width(one_line(text)) > width:
        assert line.endswith("...")


@given(anything, st.integers(30, 90))
def test_wrapping_keeps_every_word(text: str, width: int) -> None:
    for lines in (wrapped(text, width), hanging(text, width)):
        assert "".join("".join(lines).split()) == "".join(one_line(text).split())


@given(st.text(st.characters(max_codepoint=126), max_size=200), st.integers(30, 90))
def test_wrapped_lines_fit(text: str, width: int) -> None:
    assert all(len(line) <= width for line in wrapped(text, width))
    assert all(len(line) <= width for line in hanging(text, width))


def test_wrapped_text_is_cut_after_so_many_lines() -> None:
    text = "word " * 100
    lines = wrapped(text, 30, 2)
    assert len(lines) == 2
    assert lines[-1].endswith("...")
    assert all(len(line) <= 30 for line in lines)
    assert wrapped("short", 30, 2) == ["short"]
    assert wrapped("", 30) == [""]


def test_wide_and_combining_characters_are_counted() -> None:
    assert display_width("日本") == 4
    assert display_width("e\u0301") == 1
    assert padded("日本", 6) == "日本  "
    assert shortened("日本日本日本", 8) == "日本..."
    assert all(display_width(line) <= 40 for line in wrapped("日本 " * 60, 40))
