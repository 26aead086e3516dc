"""Run a function with a time limit, in this process and for about 30 microseconds.

The function runs in a daemon thread that is kept for the next call. When its time is up an
asynchronous exception is injected into that thread: a loop in Python ends there and then. Code
that sits in one long C call cannot be interrupted; after a grace time its thread is abandoned
(it ends as soon as the call returns to Python, and never keeps the interpreter from exiting).
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["DeadlineExceeded", "DeadlineThread", "Released", "Step", "Steps"]

T = TypeVar("T")

_POLL_S = 0.1
"""How often a waiting call looks at ``cancelled``, and how often an interruption is repeated."""

_ON_CTRL_C_S = 0.5
"""Seconds that Ctrl-C in the waiting thread gives the function to end."""

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


class _Interruption(BaseException):
    """Ends the function. Not an Exception, so that ``except Exception`` lets it through."""


_INTERRUPTION = ctypes.py_object(_Interruption)
_NOTHING = ctypes.py_object()


class DeadlineExceeded(Exception):
    """The function did not return in time.

    Attributes:
        interrupted: it has ended by now; False when its thread had to be abandoned.
        cancelled: it was ended because ``cancelled`` was set, not because its time was up.
        where: the line it was at, ``judges.py:12 in count``; empty when unknown.
    """

    def __init__(self, interrupted: bool, *, cancelled: bool = False, where: str = "") -> None:
        super().__init__("cancelled" if cancelled else "did not return in time")
        self.interrupted = interrupted
        self.cancelled = cancelled
        self.where = where


@dataclass(frozen=True, slots=True)
class Step:
    """Something a generator wants done within a time limit.

    Attributes:
        function: takes no argument.
        timeout: seconds.
    """

    function: Callable[[], Any]
    timeout: float


class Released(Step):
    """Not a thing to do but a sign: the agent has ended, so another may take its place."""

    def __init__(self) -> None:
        super().__init__(_nothing, float("inf"))


def _nothing() -> None:
    return None


Steps = Generator[Step, Any, T]
"""A procedure some of whose parts have a time limit; for :meth:`DeadlineThread.drive`."""


class DeadlineThread:
    """Calls functions under a time limit; the owner of one instance shares it between threads.

    Concurrent calls each get a thread of their own; idle threads are reused.

    Args:
        name: of the threads, for debuggers.
        grace: seconds an interrupted function has to end before its thread is abandoned.
    """

    def __init__(self, name: str = "agent-eval-deadline", *, grace: float = 2.0) -> None:
        self._name = name
        self._grace = grace
        self._idle: list[_Worker] = []  # append and pop are atomic
        self._left: list[_Worker] = []

    def call(
        self,
        function: Callable[[], T],
        timeout: float,
        *,
        cancelled: threading.Event | None = None,
    ) -> T:
        """What ``function()`` returns; what it raises is raised here, with its traceback.

        It sees the caller's context variables (a copy of them).

        Args:
            function: takes no argument.
            timeout: seconds.
            cancelled: ends the call early when set.

        Raises:
            DeadlineExceeded: it did not return in time, or was cancelled.
        """

        def steps() -> Steps[T]:
            answer: T = yield Step(function, timeout)
            return answer

        return self.drive(steps(), cancelled=cancelled)

    def drive(self, steps: Steps[T], *, cancelled: threading.Event | None = None) -> T:
        """Run a generator to its end; each :class:`Step` that it yields has a time limit.

        The generator and its steps share one thread, so that a step costs next to nothing. A step
        whose time is up is interrupted, or abandoned with its thread; the generator, which waits
        at its ``yield``, goes on in another thread with :class:`DeadlineExceeded`. What the
        generator does between its steps has no limit.

        Args:
            steps: what a step returns is sent to it, what a step raises is raised in it.
            cancelled: ends a step early when set.

        Returns:
            What the generator returns; what it raises is raised here.
        """
        error: BaseException | None = None
        while True:
            worker = self._take()
            walk = _Walk(steps, error)
            worker.start(contextvars.copy_context(), walk.go)
            try:
                done = walk.wait(worker, cancelled)
            except BaseException:  # Ctrl-C in the waiting thread
                if walk.halt(at_once=True):
                    worker.end(min(self._grace, _ON_CTRL_C_S))
                else:
                    self._left.append(worker)
                raise
            if done:
                result, error = worker.take_result()
                self._idle.append(worker)
                if error is not None:
                    try:
                        raise error
                    finally:
                        del error
                return result  # type: ignore[no-any-return]
            where = worker.position()
            ended = worker.end(self._grace)
            was_cancelled = cancelled is not None and cancelled.is_set()
            error = DeadlineExceeded(ended, cancelled=was_cancelled, where=where)

    def settle(self, timeout: float) -> None:
        """Wait for generators that Ctrl-C left between two steps, at most ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while self._left:
            self._left.pop().wait(deadline - time.monotonic())

    def close(self) -> None:
        """End the idle threads. A later call makes new ones."""
        while self._idle:
            self._idle.pop().retire()

    def __del__(self) -> None:
        self.close()

    def _take(self) -> _Worker:
        while True:
            try:
                worker = self._idle.pop()
            except IndexError:
                return _Worker(self._name)
            if worker.alive:
                return worker


class _Walk:
    """One thread's way through a generator, watched by the thread that waits for it."""

    def __init__(self, steps: Steps[Any], error: BaseException | None) -> None:
        self._steps = steps
        self._error = error
        self._mutex = threading.Lock()  # guards the end of a step against its interruption
        self._deadline: float | None = None  # of the step under way
        self._halted = False

    def go(self) -> Any:
        """Advance the generator to its end. Runs in the worker."""
        steps, answer, error = self._steps, None, self._error
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value
            answer = error = None
            self._deadline = time.monotonic() + step.timeout
            try:
                answer = step.function()
            except _Interruption:
                raise
            except BaseException as raised:
                error = raised
            with self._mutex:
                if self._halted:  # the generator goes on elsewhere
                    raise _Interruption
                self._deadline = None

    def wait(self, worker: _Worker, cancelled: threading.Event | None) -> bool:
        """True when the generator has ended, False when its step has to be ended."""
        while True:
            deadline = self._deadline
            left = _POLL_S if deadline is None else deadline - time.monotonic()
            if worker.wait(min(left, _POLL_S)):
                return True
            if self.halt(at_once=cancelled is not None and cancelled.is_set()):
                return False

    def halt(self, *, at_once: bool) -> bool:
        """Take the generator away from its thread if a step is under way and its time is up."""
        with self._mutex:
            deadline = self._deadline
            if deadline is None or not (at_once or time.monotonic() >= deadline):
                return False
            self._halted = True
            return True


class _Worker:
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
        self._job = (context, function)
        self._finished = False
        self._go.release()

    def wait(self, timeout: float) -> bool:
        return self._done.acquire(timeout=max(0.0, min(timeout, threading.TIMEOUT_MAX)))

    def take_result(self) -> tuple[Any, BaseException | None]:
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
            except _Interruption:
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
        innermost = frame = sys._current_frames().get(self._thread.ident or 0)
        while frame is not None and _is_foreign(frame.f_code.co_filename):
            frame = frame.f_back
        frame = frame or innermost
        if frame is None or frame.f_code.co_filename == __file__:
            return ""
        name = os.path.basename(frame.f_code.co_filename)
        return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"

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
        except _Interruption:
            self._finish()

    def _run(self, context: contextvars.Context, function: Callable[[], Any]) -> None:
        try:
            self._result = (context.run(function), None)
        except _Interruption:
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
            except _Interruption:
                continue
        if self._done.locked():
            self._done.release()
