from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.reports.printable import display_width
from pytest_agent_eval.reports.progress import (
    Part,
    Snapshot,
    duration,
    progress_line,
    time_left,
)

NOW = 1000.0
BUSY = Snapshot(
    total=200,
    done=41,
    failed=2,
    running=(("refund-policy", NOW - 48), *((f"case-{n}", NOW - n) for n in range(11))),
    cost_usd=1.37,
    finished_seconds=(41, 41 * 14.0),
    parallelism=12,
)


def text(snapshot: Snapshot, width: int = 200, *, unicode: bool = True) -> str:
    return "".join(part.text for part in progress_line(snapshot, width, now=NOW, unicode=unicode))


def test_what_a_wide_terminal_shows() -> None:
    assert text(BUSY) == (
        "  ⠋ ━━────────── · 41/200 · 2 failed · 12 running · $1.37 · ~3m left · "
        "slowest refund-policy 48s"
    )
    assert text(BUSY, unicode=False) == (
        "  | ##.........., 41/200, 2 failed, 12 running, $1.37, ~3m left, slowest refund-policy 48s"
    )


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (99, "  ⠋ ━━────────── · 41/200 · 2 failed · 12 running · $1.37 · ~3m left · slowest refund-policy 48s"),
        (79, "  ⠋ 41/200 · 2 failed · 12 running · $1.37 · ~3m left · slowest refund-pol… 48s"),
        (70, "  ⠋ 41/200 · 2 failed · 12 running · $1.37 · ~3m left"),
        (39, "⠋ 41/200 · 2 failed · ~3m left"),
        (25, "⠋ 41/200 · 2 failed"),
        (18, "⠋ 41/200"),
        (7, ""),
    ],
)  # fmt: skip
def test_what_matters_most_stays_longest(width: int, shown: str) -> None:
    assert text(BUSY, width) == shown


def test_the_only_one_that_runs_is_named() -> None:
    one = Snapshot(total=3, done=0, running=(("tone-de", NOW - 0.5),))
    assert text(one, 60) == "  ⠋ ──────────── · 0/3 · running tone-de 0s"


def test_nothing_is_said_that_is_not_known() -> None:
    start = Snapshot(total=40, done=0, running=(("a", NOW), ("b", NOW)), parallelism=2)
    assert text(start, 50) == "⠋ ──────────── · 0/40 · 2 running"
    assert "$" not in text(replace(BUSY, cost_usd=None))
    assert "left" not in text(replace(BUSY, finished_seconds=(0, 0.0)))
    assert "failed" not in text(replace(BUSY, failed=0))


def test_failures_are_red_and_seen_in_the_bar() -> None:
    parts = progress_line(BUSY, 200, now=NOW)
    assert Part("2 failed", "red") in parts
    assert Part("━", "red") in parts
    done = progress_line(Snapshot(total=4, done=4, failed=1, tolerated=1), 200, now=NOW)
    assert Part("━━━━━━━━━", "green") in done
    assert Part("━━━", "red") in done
    assert Part("1 tolerated", "yellow") in done
    errors = progress_line(Snapshot(total=4, done=4, failed=1, errors=1), 200, now=NOW)
    assert Part("1 error", "red") in errors
    assert Part("━━━━━━", "red") in errors
    nearly = progress_line(Snapshot(total=10_000, done=9_999), 200, now=NOW)
    assert Part("─", "light") in nearly


def test_names_cannot_paint_the_terminal() -> None:
    hostile = Snapshot(total=2, done=0, running=(("a\x1b[2J\nb\u202ec\x07", NOW),))
    assert "\\x1b[2J b\\u202ec\\x07" in text(hostile)
    assert text(replace(hostile, running=(("größe", NOW),)), unicode=False).isascii()


names = st.text(max_size=60)
snapshots = st.builds(
    Snapshot,
    total=st.integers(0, 20_000),
    done=st.integers(0, 20_000),
    failed=st.integers(0, 20_000),
    errors=st.integers(0, 20),
    tolerated=st.integers(0, 20),
    running=st.lists(st.tuples(names, st.floats(0, 2000)), max_size=9).map(tuple),
    cost_usd=st.none() | st.floats(0, 1e7),
    finished_seconds=st.tuples(st.integers(0, 9), st.floats(0, 1e7)),
    parallelism=st.integers(1, 500),
)


@given(snapshots, st.integers(0, 250), st.booleans())
def test_the_line_is_one_line_and_never_too_wide(
    snapshot: Snapshot, width: int, unicode: bool
) -> None:
    line = text(snapshot, width, unicode=unicode)
    assert display_width(line) <= width
    assert not any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in line)
    assert unicode or line.isascii()
    if width >= 30:
        assert f"{snapshot.done:,}/{snapshot.total:,}" in line


def test_time_left_is_the_mean_of_those_still_to_come() -> None:
    waiting = Snapshot(total=21, done=1, finished_seconds=(1, 10.0), parallelism=4)
    assert time_left(waiting, NOW) == 50
    halfway = replace(waiting, running=tuple((str(n), NOW - 5) for n in range(4)))
    assert time_left(halfway, NOW) == (16 * 10 + 4 * 5) / 4
    assert time_left(replace(waiting, total=3), NOW) == 10, "two left use two of the four places"


def test_time_left_is_never_less_than_a_straggler_has_needed() -> None:
    last = Snapshot(
        total=10, done=9, running=(("slow", NOW - 48),), finished_seconds=(9, 90.0), parallelism=4
    )
    assert time_left(last, NOW) == 48
    fresh = replace(last, running=(("new", NOW - 1),))
    assert time_left(fresh, NOW) == 9


def test_no_time_left_without_a_finished_one_or_at_the_end() -> None:
    assert time_left(Snapshot(total=5, done=2), NOW) is None, "all were taken over"
    assert time_left(Snapshot(total=5, done=5, finished_seconds=(5, 9.0)), NOW) is None


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (59.9, "59s"), (60, "1m 00s"), (185, "3m 05s"), (7500, "2h 05m"), (100_800, "1d 04h")],
)  # fmt: skip
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.2, "~5s"), (51, "~55s"), (59, "~1m"), (61, "~1m 10s"), (185, "~3m 10s"), (700, "~12m"), (3700, "~1h 05m"), (7000, "~2h")],
)  # fmt: skip
def test_an_estimate_has_no_digits_that_mean_nothing(seconds: float, shown: str) -> None:
    one = Snapshot(total=2, done=1, finished_seconds=(1, seconds))
    assert f"{shown} left" in text(one)
