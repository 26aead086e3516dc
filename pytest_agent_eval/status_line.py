"""The status line on a terminal: drawn below what pytest writes, taken away without a trace.

pytest leaves its cursor anywhere in a line (``eval.yaml ..F``) and goes on writing there. So the
status is drawn one line below, and the cursor goes back to where it was, all in one write; every
movement is relative to the cursor, whose place nobody needs to know. Whatever pytest writes goes
through its terminal writer, and there the status is erased first, under the lock that also guards
drawing. Nothing else than the status is ever below pytest's cursor.
"""

from __future__ import annotations

import codecs
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pytest_agent_eval.reports.progress import Part, Snapshot

__all__ = ["INTERVAL_S", "StatusLine", "Writer", "open_status_line"]

INTERVAL_S = 0.1
"""The line is drawn at most this often."""

_NARROWEST = 20
_CI = ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
"""Variables of CI systems: the two that pytest looks at, and those of systems that set neither."""

_ERASE = "\x1b[J"
"""Erase from the cursor to the end of the screen; the cursor stays."""
_MAKE_ROOM = "\x1bD\x1b[A"
"""Down and up again in the same column: at the bottom of the screen this scrolls."""
_BEGIN = f"{_MAKE_ROOM}\x1b7\x1b[B\r\x1b[?7l"
"""Remember the cursor, go to the line below, and let nothing wrap there."""
_END = f"{_ERASE}\x1b[?7h\x1b8"


class Writer(Protocol):
    """What is used of pytest's terminal writer."""

    def write_raw(self, msg: str, *, flush: bool = False) -> None:
        """Write text as it is; all other ways to write come here."""

    @property
    def width_of_current_line(self) -> int:
        """Columns written since the last newline; below 0 if that is not known."""

    def markup(self, text: str, **markup: bool) -> str:
        """The text with colours, if there are to be any."""


class StatusLine:
    """One line below the cursor of a terminal.

    May be used from several threads. Close it before the terminal is given to somebody else.

    Args:
        descriptor: of the terminal; closed by :meth:`close`.
        writer: through which everybody else writes to that terminal.
        snapshot: where the session stands; None while there is nothing to show. It is called
            without any lock of this object.
        encoding: of the terminal.
        clock: seconds of ``time.monotonic``.
    """

    def __init__(
        self,
        descriptor: int,
        writer: Writer,
        snapshot: Callable[[], Snapshot | None],
        *,
        encoding: str = "utf-8",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._descriptor = descriptor
        self._writer = writer
        self._snapshot = snapshot
        self._encoding = encoding
        self._unicode = codecs.lookup(encoding).name in ("utf-8", "utf-16", "utf-32")
        self._clock = clock
        self._lock = threading.RLock()
        self._due = -1.0
        self._shown = False
        self._held = 0
        self._closed = False
        self._width = writer.width_of_current_line
        self._write_raw = writer.write_raw
        writer.write_raw = self._write_through  # type: ignore[method-assign]

    def tick(self) -> None:
        """Draw the line again if it is time to; call it as often as you like."""
        now = self._clock()
        if now < self._due:
            return
        snapshot = self._snapshot()
        with self._lock:
            if self._closed or self._held or now < self._due:
                return
            self._due = now + INTERVAL_S
            text = "" if snapshot is None else self._text(snapshot, now)
            if text:
                self._shown = True
                self._send(f"{_BEGIN}{text}{_END}")
            else:
                self.clear()

    def clear(self) -> None:
        """Take the line away; the next :meth:`tick` may draw it again."""
        with self._lock:
            if self._shown:
                self._shown = False
                self._send(_ERASE)

    def hold(self) -> None:
        """Take the line away until :meth:`release` was called as often as this."""
        with self._lock:
            self.clear()
            self._held += 1

    def release(self) -> None:
        """Let :meth:`tick` draw again."""
        with self._lock:
            self._held -= 1

    def close(self) -> None:
        """Take the line away for good."""
        with self._lock:
            if self._closed:
                return
            self.clear()
            self._closed = True
            if self._writer.write_raw == self._write_through:
                self._writer.write_raw = self._write_raw  # type: ignore[method-assign]
            os.close(self._descriptor)

    def _write_through(self, msg: str, *, flush: bool = False) -> None:
        """What the writer does instead of ``write_raw``: never write over the status.

        It flushes, so that the terminal's cursor is where the writer's count says it is. The count
        is kept, because the writer raises its own before the text is written.
        """
        with self._lock:
            self.clear()
            self._write_raw(msg, flush=flush or not self._closed)
            self._width = self._writer.width_of_current_line

    def _text(self, snapshot: Snapshot, now: float) -> str:
        """The line with its colours; empty if it must not or cannot be drawn now."""
        from pytest_agent_eval.reports.progress import progress_line

        try:
            columns, lines = os.get_terminal_size(self._descriptor)
        except OSError:
            return ""
        if columns < _NARROWEST or lines < 2 or self._may_be_at_the_edge(columns):
            return ""
        parts = progress_line(snapshot, columns - 1, now=now, unicode=self._unicode)
        return "".join(map(self._marked, parts))

    def _may_be_at_the_edge(self, columns: int) -> bool:
        """Whether the last line may be full to its last column.

        The terminal then holds the cursor back until the next character comes, and forgets about
        it when the cursor moves. Each wide character that had no room at the end of a line makes
        the true width one larger than the counted one.
        """
        width = self._width
        lost = range(width // columns + 1)
        return width < 0 or (width > 0 and any((width + more) % columns == 0 for more in lost))

    def _marked(self, part: Part) -> str:
        return self._writer.markup(part.text, **{part.markup: True}) if part.markup else part.text

    def _send(self, text: str) -> None:
        data = text.encode(self._encoding, "replace")
        try:
            while data:
                try:
                    data = data[os.write(self._descriptor, data) :]
                except BlockingIOError:
                    select.select([], [self._descriptor], [])
        except OSError:  # the terminal is gone
            self._shown = False


def open_status_line(
    config: pytest.Config, snapshot: Callable[[], Snapshot | None]
) -> StatusLine | None:
    """The status line of this session; None where there must be none.

    That is everywhere but on a terminal that a person looks at and that pytest alone writes to: not
    in a pipe, a file or CI, not for ``-s`` or ``--pdb``, not in an xdist worker, and not beside a
    plugin that replaces pytest's terminal reporter. Call it while output is not captured.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if (
        os.name != "posix"
        or hasattr(config, "workerinput")
        or os.environ.get("TERM", "dumb") in ("", "dumb", "unknown")
        or any(os.environ.get(name) for name in _CI)
        or config.getoption("capture", "no") not in ("fd", "sys")
        or config.getoption("usepdb", False)
        or config.getoption("trace", False)
        or type(reporter) is not pytest.TerminalReporter
    ):
        return None
    try:
        descriptor = sys.stdout.fileno()
        if not os.isatty(descriptor):
            return None
        descriptor = os.dup(descriptor)
    except (OSError, ValueError):  # a stream that is no file, or closed
        return None
    writer = config.get_terminal_writer()
    return StatusLine(descriptor, writer, snapshot, encoding=sys.stdout.encoding)
