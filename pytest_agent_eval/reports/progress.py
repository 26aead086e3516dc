"""The status line of a running session as text: what a person wants to see at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_agent_eval.reports.numbers import count, money
from pytest_agent_eval.reports.printable import display_width, one_line

__all__ = ["Part", "Snapshot", "duration", "progress_line", "time_left"]

Markup = Literal["", "bold", "green", "red", "yellow", "light"]

_SPINNER = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")
_FRAMES_PER_SECOND = 10
_BAR_CELLS = 12
_SHORTEST_NAME = 8
_LONGEST_NAME = 40
_SLOW_S = 3.0
"""A trial that runs for less is not worth naming."""
_INDENTED = 60
"""Columns from which on the line is indented."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a session stands.

    Attributes:
        total, done, failed, errors, tolerated: numbers of the same thing, trials or cases; the
            last three are part of ``done``.
        running: name and start of each that runs; seconds of ``time.monotonic``.
        cost_usd: of all that are done; None if nothing is known of it.
        finished_seconds: how many were carried out and how long these took in all, in seconds.
            What was only skipped or taken over from a stored run is no part of it.
        parallelism: how many run at once.
    """

    total: int
    done: int
    failed: int = 0
    errors: int = 0
    tolerated: int = 0
    running: tuple[tuple[str, float], ...] = ()
    cost_usd: float | None = None
    finished_seconds: tuple[int, float] = (0, 0.0)
    parallelism: int = 1


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the line, and how it is to be marked up."""

    text: str
    markup: Markup = ""


def progress_line(
    snapshot: Snapshot, width: int, *, now: float, unicode: bool = True
) -> tuple[Part, ...]:
    """The line, at most ``width`` columns wide; empty where not even the count has room.

    What matters least goes first when there is no room: the bar, the name of the slowest, cost,
    how many run, time left, tolerated, errors, failed.

    Args:
        snapshot: of the session.
        width: columns.
        now: seconds of ``time.monotonic``.
        unicode: whether the terminal can show more than ASCII.
    """
    spinner = _SPINNER[0] if unicode else _SPINNER[1]
    frame = spinner[int(now * _FRAMES_PER_SECOND) % len(spinner)]
    head = [Part(("  " if width >= _INDENTED else "") + frame + " ")]
    separator = Part(" · ", "light") if unicode else Part(", ")
    done = f"{snapshot.done:,}/{snapshot.total:,}"
    fields: dict[str, list[Part]] = {
        "bar": _bar(snapshot, unicode),
        "done": [Part(done, "bold")],
        "failed": _counted(snapshot.failed, "failed", "red"),
        "errors": [Part(count(snapshot.errors, "error"), "red")] if snapshot.errors else [],
        "tolerated": _counted(snapshot.tolerated, "tolerated", "yellow"),
        # The only one that runs is named instead.
        "running": _counted(len(snapshot.running), "running") if len(snapshot.running) > 1 else [],
        "cost": [Part(money(snapshot.cost_usd))] if snapshot.cost_usd else [],
        "left": _left(snapshot, now),
    }
    slowest = _slowest(snapshot, now, unicode)

    def line(name: str) -> list[Part]:
        shown = [parts for parts in fields.values() if parts]
        if slowest is not None and name:
            shown.append([Part(slowest.label), Part(name, "bold"), Part(slowest.duration)])
        joined = head + shown[0]
        for parts in shown[1:]:
            joined += [separator, *parts]
        return joined

    name = "" if slowest is None else slowest.name
    shortest = _cut(name, _SHORTEST_NAME, unicode)
    if _width(line(shortest)) > width:
        fields["bar"] = []
    if _width(line(shortest)) > width:
        name = shortest = ""
    for least in ("cost", "running", "left", "tolerated", "errors", "failed"):
        if _width(line(shortest)) > width:
            fields[least] = []
    room = width - _width(line(shortest)) + display_width(shortest)
    found = line(_cut(name, min(room, _LONGEST_NAME), unicode))
    return tuple(found) if _width(found) <= width else ()


def time_left(snapshot: Snapshot, now: float) -> float | None:
    """Seconds until all are done, if those to come take as long as those that are finished did.

    One that runs for longer than the mean is expected to need as long again: where nothing is
    known of the end, that is the median of what may come. Without this a single hanging trial
    would be "about to end" for ever.

    Returns:
        None before the first is finished, and when there is nothing left.
    """
    finished, total_s = snapshot.finished_seconds
    remaining = snapshot.total - snapshot.done
    if finished < 1 or remaining < 1:
        return None
    mean = total_s / finished
    ages = [max(now - started, 0.0) for _, started in snapshot.running]
    waiting = max(remaining - len(ages), 0)
    work = mean * waiting + sum(max(mean - age, 0.0) for age in ages)
    slots = max(min(snapshot.parallelism, remaining), 1)
    longest = max((age if age > mean else mean - age for age in ages), default=0.0)
    return max(work / slots, longest)


def duration(seconds: float) -> str:
    """``48s``, ``3m 05s``, ``2h 05m``, ``1d 04h``: short, and of the same width while it counts."""
    whole = int(max(seconds, 0))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def _rounded(seconds: float) -> str:
    """A duration that is only estimated, without digits that mean nothing and would flicker."""
    step = 5 if seconds <= 60 else 10 if seconds <= 600 else 60 if seconds <= 3600 else 300
    text = duration(max(math.ceil(seconds / step), 1) * step)
    return text.removesuffix(" 00s").removesuffix(" 00m")


def _left(snapshot: Snapshot, now: float) -> list[Part]:
    left = time_left(snapshot, now)
    return [] if left is None else [Part(f"~{_rounded(left)} left")]


def _counted(number: int, what: str, markup: Markup = "") -> list[Part]:
    return [Part(f"{number:,} {what}", markup)] if number else []


def _bar(snapshot: Snapshot, unicode: bool) -> list[Part]:
    """How much is done, and how much of that failed; the last cell is filled by the last trial."""
    if snapshot.total < 1:
        return []
    full, empty = ("━", "─") if unicode else ("#", ".")
    done = min(snapshot.done * _BAR_CELLS // snapshot.total, _BAR_CELLS)
    bad = snapshot.failed + snapshot.errors
    failed = min(math.ceil(bad * _BAR_CELLS / snapshot.total), done)
    cells = [
        Part(full * (done - failed), "green"),
        Part(full * failed, "red"),
        Part(empty * (_BAR_CELLS - done), "light"),
    ]
    return [part for part in cells if part.text]


@dataclass(frozen=True, slots=True)
class _Slowest:
    label: str
    name: str
    duration: str


def _slowest(snapshot: Snapshot, now: float, unicode: bool) -> _Slowest | None:
    if not snapshot.running:
        return None
    name, started = min(snapshot.running, key=lambda pair: pair[1])
    alone = len(snapshot.running) == 1
    age = now - started
    if age < _SLOW_S and not alone:
        return None
    shown = one_line(name)
    if not unicode:
        shown = shown.encode("ascii", "backslashreplace").decode("ascii")
    label = "running " if alone else "slowest "
    return _Slowest(label, shown or "?", f" {duration(age)}")


def _cut(text: str, width: int, unicode: bool) -> str:
    """The start of a name, with a mark where something was cut."""
    if display_width(text) <= width:
        return text
    mark = "…" if unicode else "..."
    kept = text
    while kept and display_width(kept) > width - len(mark):
        kept = kept[:-1]
    return kept.rstrip() + mark


def _width(parts: Sequence[Part]) -> int:
    return sum(display_width(part.text) for part in parts)
