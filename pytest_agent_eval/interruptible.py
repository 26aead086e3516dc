"""A thread whose work can be ended from outside, by an asynchronous exception.

A loop in Python ends there and then. Code that sits in one long C call cannot be interrupted: its
thread is abandoned after a grace time, ends as soon as the call returns to Python, and never keeps
the interpreter from exiting.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["InterruptibleThread", "Interruption", "interrupt", "line_of"]

_POLL_S = 0.1
"""How often an interruption is repeated."""

_interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc
_interrupt.argtypes = (ctypes.c_ulong, ctypes.py_object)
_interrupt.restype = ctypes.c_int


_SOON = 100
"""Rounds of a loop in which an asynchronous exception that is on its way arrives."""

_SPINS = sys.version_info[:2] == (3, 11)
"""Python 3.11 under a debugger or coverage: while an asynchronous exception waits for a thread,
every traced thread that calls a Python function spins until it is delivered, so one that waits
for a thread stuck in a C call has to be taken back. Delivering one to oneself resets the flag that
taking it back leaves set."""

_STDLIB = os.path.dirname(os.__file__)
_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def _is_foreign(file: str) -> bool:
    """Whether the file is the standard library's, an installed package's or this package's."""
    return file.startswith((_STDLIB, _PACKAGE, "<frozen")) or "site-packages" in file


class Interruption(BaseException):
    """Ends the function. Not an Exception, so that ``except Exception`` lets it through."""


_INTERRUPTION = ctypes.py_object(Interruption)
_NOTHING = ctypes.py_object()


def interrupt(thread: threading.Thread) -> None:
    """Raise :class:`Interruption` in a thread, as soon as it is in Python code."""
    _interrupt(thread.ident or 0, _INTERRUPTION)


def line_of(thread: threading.Thread) -> str:
    """``judges.py:12 in count``: the innermost line of the user's code that a thread is at."""
    innermost = frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and _is_foreign(frame.f_code.co_filename):
        frame = frame.f_back
    frame = frame or innermost
    if frame is None or frame.f_code.co_filename == __file__:
        return ""
    name = os.path.basename(frame.f_code.co_filename)
    return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"


class InterruptibleThread:
    """One thread and the two locks by which work is handed to it and back.

    Bare locks as signals cost a third of what a condition or a queue costs.
    """

    def __init__(self, name: str) -> None:
        self._go = threading.Lock()
        self._go.acquire()
        self._done = threading.Lock()
        self._done.acquire()
        self._mutex = threading.Lock()  # guards _finished against a late interruption
        self._finished = True
        self._retired = False
        self._job: tuple[contextvars.Context, Callable[[], Any]] | None = None
        self._result: tuple[Any, BaseException | None] = (None, None)
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread is there: after a fork the child has the object but no thread."""
        return self._pid == os.getpid()

    def start(self, context: contextvars.Context, function: Callable[[], Any]) -> None:
        """Begin a piece of work; the one before must have ended."""
        self._job = (context, function)
        self._finished = False
        self._go.release()

    def wait(self, timeout: float) -> bool:
        """Whether the work has ended, after at most ``timeout`` seconds."""
        return self._done.acquire(timeout=max(0.0, min(timeout, threading.TIMEOUT_MAX)))

    def take_result(self) -> tuple[Any, BaseException | None]:
        """What the work returned, or what it raised."""
        result, self._result = self._result, (None, None)
        return result

    def end(self, grace: float) -> bool:
        """Interrupt until the function has ended or the grace time is over; whether it has.

        The thread is not used again. From the first interruption on nothing in here may call a
        function written in Python, see ``_SPINS``.
        """
        ident = self._thread.ident or 0
        finished, mutex, monotonic = self._done.acquire, self._mutex, time.monotonic
        spins = _SPINS and (sys.gettrace() or threading.gettrace()) is not None
        self._retired = True
        deadline = monotonic() + grace
        while True:
            with mutex:
                if not self._finished:
                    _interrupt(ident, _INTERRUPTION)
            left = deadline - monotonic()
            ended = finished(True, max(0.0, min(left, _POLL_S)))
            if ended or left <= 0:
                break
        if spins and not ended:
            try:
                _interrupt(ident, _NOTHING)
                _interrupt(threading.get_ident(), _INTERRUPTION)
                for _ in range(_SOON):
                    pass
            except Interruption:
                pass
        self.retire()
        return ended

    def retire(self) -> None:
        """Let the thread end; at once if it is idle."""
        self._retired = True
        with contextlib.suppress(RuntimeError):  # it has not even fetched its job
            self._go.release()

    def position(self) -> str:
        """The innermost line of the user's code that the thread is at."""
        return line_of(self._thread)

    def _loop(self) -> None:
        # An interruption may arrive a moment after the function returned: such a worker is
        # retired, so it only has to end without a word.
        try:
            while True:
                self._go.acquire()
                job, self._job = self._job, None
                if job is None:
                    return
                if self._retired:  # its time was up before it began
                    self._finish()
                    return
                self._run(*job)
                del job
        except Interruption:
            self._finish()

    def _run(self, context: contextvars.Context, function: Callable[[], Any]) -> None:
        try:
            self._result = (context.run(function), None)
        except Interruption:
            pass
        except BaseException as error:
            # The frames of this file say nothing to anybody.
            trace = error.__traceback__
            self._result = (None, error.with_traceback(trace.tb_next if trace else None))
        self._finish()

    def _finish(self) -> None:
        """Tell the caller. An interruption on its way is received here, not by later work."""
        while True:
            try:
                with self._mutex:
                    self._finished = True
                if self._retired:
                    for _ in range(_SOON):
                        pass
                break
            except Interruption:
                continue
        if self._done.locked():
            self._done.release()
