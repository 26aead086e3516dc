from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import threading
from collections.abc import Iterator

import pytest

from pytest_agent_eval.reports.progress import Snapshot
from pytest_agent_eval.status_line import StatusLine


class Writer:
    """Stands in for pytest's terminal writer."""

    width_of_current_line = 0

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write_raw(self, msg: str, *, flush: bool = False) -> None:
        os.write(self._descriptor, msg.encode())

    def markup(self, text: str, **markup: bool) -> str:
        return text


class Terminal:
    """A terminal of 24 lines and 80 columns, and a status line on it."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.now = 100.0
        self.snapshot: Snapshot | None = Snapshot(total=9, done=3)
        self.writer = Writer(self.theirs)
        self.resize(24, 80)
        self.line = StatusLine(
            os.dup(self.theirs), self.writer, lambda: self.snapshot, clock=lambda: self.now
        )

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def written(self) -> str:
        """What was written since this was asked last."""
        data = b""
        while select.select([self.ours], [], [], 0.05)[0]:
            data += os.read(self.ours, 65536)
        return data.decode()


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.line.close()
    os.close(terminal.theirs)
    os.close(terminal.ours)


def test_it_is_drawn_at_most_ten_times_a_second(terminal: Terminal) -> None:
    drawn = 0
    for step in range(100):
        terminal.now = 100 + step / 100
        terminal.line.tick()
        terminal.line.clear()
        drawn += terminal.written().count("3/9") if step % 10 == 9 else 0
    assert drawn == 10


def test_it_is_gone_before_anybody_writes(terminal: Terminal) -> None:
    terminal.line.tick()
    assert "3/9" in terminal.written()
    terminal.writer.write_raw(".")
    terminal.writer.write_raw("F")
    assert terminal.written() == "\x1b[J.F"


def test_nothing_to_show_takes_it_away(terminal: Terminal) -> None:
    terminal.line.tick()
    terminal.written()
    terminal.snapshot, terminal.now = None, 101.0
    terminal.line.tick()
    assert terminal.written() == "\x1b[J"


@pytest.mark.parametrize("size", [(0, 0), (1, 80), (24, 10)])
def test_a_terminal_without_room_has_none(terminal: Terminal, size: tuple[int, int]) -> None:
    terminal.resize(*size)
    terminal.line.tick()
    assert terminal.written() == ""


def test_closed_it_leaves_the_writer_as_it_was(terminal: Terminal) -> None:
    terminal.line.tick()
    terminal.line.close()
    terminal.line.close()
    terminal.line.tick()
    terminal.written()
    assert terminal.writer.write_raw.__func__ is Writer.write_raw  # type: ignore[attr-defined]
    terminal.writer.write_raw(".")
    assert terminal.written() == "."


def test_a_terminal_that_is_gone_is_no_error() -> None:
    terminal = Terminal()
    terminal.line.tick()
    os.close(terminal.ours)
    terminal.now += 1
    terminal.line.tick()
    terminal.line.close()
    os.close(terminal.theirs)


def test_threads_never_write_into_the_status(terminal: Terminal) -> None:
    """Each letter comes right after another letter, or after the status was erased."""
    done = threading.Event()
    received: list[str] = []

    def read() -> None:
        while not done.is_set():
            received.append(terminal.written())

    def draw() -> None:
        while not done.is_set():
            terminal.now += 1
            terminal.line.tick()

    threads = [threading.Thread(target=read), threading.Thread(target=draw)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        terminal.writer.write_raw("F")
    done.set()
    for thread in threads:
        thread.join()
    text = "".join([*received, terminal.written()])
    assert text.count("F") == 300
    for before in text.split("F")[:-1]:
        assert not before or before.endswith("\x1b[J")
