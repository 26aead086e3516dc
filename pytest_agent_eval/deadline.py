"""Run a function with a time limit, in this process and for about 30 microseconds.

The function runs in a daemon thread that is kept for the next call. When its time is up an
asynchronous exception is injected into that thread: a loop in Python ends there and then. Code
that sits in one long C call cannot be interrupted; after a grace time its thread is abandoned
(it ends as soon as the call returns to Python, and never keeps the interpreter from exiting).
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from pytest_agent_eval.baton import BATON
from pytest_agent_eval.interruptible import InterruptibleThread, Interruption

__all__ = [
    "PAUSED",
    "AwaitStep",
    "DeadlineExceeded",
    "DeadlineThread",
    "Released",
    "Step",
    "Steps",
    "Walk",
]

T = TypeVar("T")

_POLL_S = 0.1
"""How often a waiting call looks at ``cancelled``."""

_ON_CTRL_C_S = 0.5
"""Seconds that Ctrl-C in the waiting thread gives the function to end."""


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


@dataclass(frozen=True, slots=True)
class AwaitStep(Step):
    """A step that may as well be awaited, in an event loop that many share.

    Attributes:
        function: does it in this thread, for a caller that has no event loop.
        timeout: seconds of ``function``.
        start: makes what is awaited; its value is that of ``function``.
        limit: seconds of what is awaited.
        late: makes the value if the limit is exceeded.
    """

    start: Callable[[], Awaitable[Any]]
    limit: float
    late: Callable[[], Any]


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
        self._idle: list[InterruptibleThread] = []  # append and pop are atomic
        self._left: list[InterruptibleThread] = []

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
            walk = Walk(steps, error=error)
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

    def _take(self) -> InterruptibleThread:
        while True:
            try:
                worker = self._idle.pop()
            except IndexError:
                return InterruptibleThread(self._name)
            if worker.alive:
                return worker


PAUSED = object()
"""What :meth:`Walk.go` returns when another part of the program goes on with the generator."""


class Walk:
    """One thread's way through a generator, watched by another thread.

    Args:
        steps: the generator.
        answer, error: what to send into it, or to raise in it, first.
        watch: told the deadline of each step, before it begins.
        pause: asked before each step: :data:`PAUSED` to stop there and leave the step to somebody
            else, an exception to raise it in place of the step, None to go on.

    Attributes:
        deadline: of the step under way, or None.
    """

    def __init__(
        self,
        steps: Steps[Any],
        *,
        answer: Any = None,
        error: BaseException | None = None,
        watch: Callable[[float], None] | None = None,
        pause: Callable[[Step], object] | None = None,
    ) -> None:
        self.steps = steps
        self.deadline: float | None = None
        self._answer = answer
        self._error = error
        self._watch = watch
        self._pause = pause
        self._mutex = threading.Lock()  # guards the end of a step against its interruption
        self._halted = False

    def go(self) -> Any:
        """Advance the generator to its end, or until it is paused. Runs in the worker."""
        steps, answer, error = self.steps, self._answer, self._error
        while True:
            BATON.take()
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value
            finally:
                BATON.give()
            answer = error = None
            said = self._pause(step) if self._pause is not None else None
            if said is PAUSED:
                return PAUSED  # nothing here may touch the generator from now on
            if isinstance(said, BaseException):
                error = said
                continue
            self.deadline = deadline = time.monotonic() + step.timeout
            if self._watch is not None:
                self._watch(deadline)
            try:
                answer = step.function()
            except Interruption:
                raise
            except BaseException as raised:
                error = raised
            with self._mutex:
                if self._halted:  # the generator goes on elsewhere
                    raise Interruption
                self.deadline = None
            del step  # and with it all that its function holds

    def wait(self, worker: InterruptibleThread, cancelled: threading.Event | None) -> bool:
        """True when the generator has ended, False when its step has to be ended."""
        while True:
            deadline = self.deadline
            left = _POLL_S if deadline is None else deadline - time.monotonic()
            if worker.wait(min(left, _POLL_S)):
                return True
            if self.halt(at_once=cancelled is not None and cancelled.is_set()):
                return False

    def halt(self, *, at_once: bool) -> bool:
        """Take the generator away from its thread if a step is under way and its time is up."""
        with self._mutex:
            deadline = self.deadline
            if self._halted or deadline is None:
                return False
            if not (at_once or time.monotonic() >= deadline):
                return False
            self._halted = True
            return True
