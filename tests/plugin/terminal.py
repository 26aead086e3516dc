"""A pytest session on a terminal of its own, and what a person sees there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyte

from pytest_agent_eval.reports.printable import display_width

from .conftest import PLAIN, Project

LONG = 120.0
"""Seconds after which a session hangs: only a failing test waits."""

_DRAWN = re.compile(rb"\x1bD\x1b\[A\x1b7.*?\x1b8", re.DOTALL)
_ERASED = re.compile(rb"\x1b\[J")
_CI = ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
_FROM_OUTSIDE = (*_CI, "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PY_COLORS")


class Screen(pyte.HistoryScreen):
    """As strict as xterm: a cursor that waits at the right edge forgets it when it is moved."""

    def __init__(self, lines: int, columns: int) -> None:
        super().__init__(columns, lines, history=100_000)

    def draw(self, data: str) -> None:
        """A wide character that has one column left goes to the next line."""
        for character in data:
            if self.cursor.x == self.columns - 1 and display_width(character) == 2:
                self.cursor.x = self.columns
            super().draw(character)

    def index(self) -> None:
        self._forget()
        super().index()

    def cursor_up(self, count: int | None = None) -> None:
        self._forget()
        super().cursor_up(count)

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        self._forget()
        super().erase_in_display(how, *args, **kwargs)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Keep the cursor in its line: pyte cuts the first lines off, terminals the last ones."""
        lines = lines or self.lines
        row, column = self.cursor.y, self.cursor.x
        while row >= lines:
            self.cursor.y = self.lines - 1
            super().index()
            row -= 1
        for below in range(lines, self.lines):
            self.buffer.pop(below, None)
        self.lines = min(self.lines, lines)
        super().resize(lines, columns)
        self.cursor.y, self.cursor.x = row, min(column, self.columns - 1)

    def _forget(self) -> None:
        self.cursor.x = min(self.cursor.x, self.columns - 1)

    @property
    def text(self) -> list[str]:
        """All lines, also those that were scrolled away, without empty ones at the end."""
        scrolled = [
            "".join(line[column].data for column in range(self.columns))
            for line in self.history.top
        ]
        lines = [line.rstrip() for line in (*scrolled, *self.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def row(self) -> int:
        """The cursor's line in :attr:`text`."""
        return len(self.history.top) + self.cursor.y


@dataclass(frozen=True)
class Session:
    """What a session wrote.

    Attributes:
        written: all bytes.
        sizes: lines and columns of the terminal, from which byte on.
        exit_status: of pytest.
    """

    written: bytes
    sizes: tuple[tuple[int, int, int], ...]
    exit_status: int

    @property
    def plain(self) -> bytes:
        """What was written without the status line."""
        return _ERASED.sub(b"", _DRAWN.sub(b"", self.written))

    @property
    def drawn(self) -> int:
        """How often the status line was drawn."""
        return len(_DRAWN.findall(self.written))

    def statuses(self) -> list[str]:
        """Each status line as it was seen, checking every time that it garbles nothing.

        A second terminal gets the same without the status. On the first one there must be the
        same lines, then the status in the line below the cursor, and nothing else.
        """
        seen, at = [], 0
        _, lines, columns = self.sizes[0]
        screen, other = Screen(lines, columns), Screen(lines, columns)
        stream, plain = pyte.ByteStream(screen), pyte.ByteStream(other)
        sizes = list(self.sizes[1:])
        for drawn in [*_DRAWN.finditer(self.written), None]:
            end = len(self.written) if drawn is None else drawn.end()
            while sizes and sizes[0][0] <= at:
                _, lines, columns = sizes.pop(0)
                screen.resize(lines, columns)
                other.resize(lines, columns)
            stream.feed(self.written[at:end])
            plain.feed(_ERASED.sub(b"", _DRAWN.sub(b"", self.written[at:end])))
            at = end
            if drawn is None:
                assert screen.text == other.text
                assert screen.row == other.row
                assert screen.cursor.x == other.cursor.x
                continue
            assert (screen.row, screen.cursor.x) == (other.row, other.cursor.x)
            above = [*other.text, *[""] * (other.row + 1)][: other.row + 1]
            assert screen.text[: screen.row + 1] == above, "pytest's own lines"
            assert len(screen.text) == screen.row + 2, "one line below the cursor"
            assert len(screen.text[-1]) < columns
            seen.append(screen.text[-1])
        return seen

    def screen(self) -> list[str]:
        """What is there at the end, and where the cursor is, with all times made the same."""
        _, lines, columns = self.sizes[-1]
        screen = Screen(lines, columns)
        pyte.ByteStream(screen).feed(self.written)
        text = [re.sub(r"\d+\.\d\ds", "0.00s", line) for line in screen.text]
        return [*(line.strip("= ") for line in text), f"{screen.row}:{screen.cursor.x}"]


def on_terminal(
    project: Project,
    *arguments: str,
    size: tuple[int, int] = (24, 80),
    environment: Mapping[str, str] | None = None,
    then: Callable[[bytes], tuple[int, int] | signal.Signals | None] = lambda _: None,
) -> Session:
    """Run pytest on a terminal.

    Args:
        project: in which directory.
        arguments: of pytest.
        size: lines and columns of the terminal.
        environment: more variables.
        then: is shown all that was written so far, whenever there is more; a new size of the
            terminal, a signal to send, or nothing.
    """
    ours, theirs = pty.openpty()
    sizes = [(0, *size)]
    _resize(theirs, size)
    kept = {name: value for name, value in os.environ.items() if name not in _FROM_OUTSIDE}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *PLAIN, *arguments],
        cwd=project.path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**kept, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(environment or {})},
    )
    os.close(theirs)
    written = b""
    deadline = time.monotonic() + LONG
    try:
        while chunk := _read(ours):
            written += chunk
            assert time.monotonic() < deadline, written
            wanted = then(written)
            if isinstance(wanted, signal.Signals):
                process.send_signal(wanted)
            elif wanted is not None:
                _resize(ours, wanted)
                sizes.append((len(written), *wanted))
        status = process.wait(LONG)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return Session(written, tuple(sizes), status)


def until_drawn(go: Path, times: int) -> Callable[[bytes], None]:
    """For ``then``: make the file that agents wait for, once the line was drawn so often."""

    def then(written: bytes) -> None:
        if written.count(b"\x1b8") >= times:
            go.touch()

    return then


def _resize(descriptor: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # nobody has the other end any more
        return b""
