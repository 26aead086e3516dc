"""An event loop in a thread of its own, on which many coroutines of a suite run at once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

from pytest_agent_eval.deadline import AwaitStep, DeadlineExceeded
from pytest_agent_eval.interruptible import Interruption, interrupt, line_of

__all__ = ["AwaitableTimeout", "EventLoopThread", "complete", "in_a_thread"]

T = TypeVar("T")
Done = Callable[[Any, BaseException | None], None]

_ENDING_S = 0.5
"""How long tasks that are cancelled may take to end."""


class AwaitableTimeout(Exception):
    """It did not end in time and was cancelled."""


def complete(awaitable: Awaitable[Any], timeout: float) -> Any:
    """Await in a loop of its own, which is closed within a second whatever its tasks do.

    Raises:
        AwaitableTimeout: it did not end within ``timeout`` seconds.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_within(awaitable, timeout))
    finally:
        try:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=_ENDING_S))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


async def in_a_thread(function: Callable[[], T]) -> T:
    """What ``function()`` returns, called in a thread that keeps nobody from exiting."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():  # whoever awaited it was cancelled
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = function()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name="agent-eval-asked", daemon=True).start()
    return await future


async def _within(awaitable: Awaitable[Any], timeout: float) -> Any:
    future = asyncio.ensure_future(awaitable)
    done, _ = await asyncio.wait((future,), timeout=timeout)
    if not done:
        raise AwaitableTimeout
    return future.result()


class EventLoopThread:
    """Runs awaitable steps. A coroutine that blocks the loop holds up all of them; when one is
    overdue for that reason, the one that blocks is interrupted, or the loop is given up.
    """

    def __init__(self, name: str = "agent-eval-loop") -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_task_factory(self._task)
        self._families: weakref.WeakKeyDictionary[asyncio.Task[Any], _Family] = (
            weakref.WeakKeyDictionary()
        )
        self._pending: dict[_Family, Done] = {}
        self._blocked_at = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, step: AwaitStep, done: Done) -> None:
        """Begin a step; ``done`` is called in the loop's thread with its value or its error."""
        family = _Family()
        self._pending[family] = done
        self._loop.call_soon_threadsafe(self._begin, step, family)

    def cancel_all(self) -> None:
        """End all steps; each is done with :class:`DeadlineExceeded`, said to be cancelled."""
        with contextlib.suppress(RuntimeError):  # closed by now
            self._loop.call_soon_threadsafe(self._cancel_all)

    def unblock(self, grace: float) -> bool:
        """Interrupt what the loop is at; whether the loop turns again after ``grace`` seconds.

        If it does not, every pending step is done with :class:`DeadlineExceeded`, and the loop
        must not be used again.
        """
        turned = threading.Event()
        self._loop.call_soon_threadsafe(turned.set)
        where = self._blocked_at = line_of(self._thread)
        if turned.wait(0.1):
            return True
        deadline = time.monotonic() + grace
        while not turned.is_set() and time.monotonic() < deadline:
            interrupt(self._thread)
            turned.wait(0.1)
        if turned.is_set():
            return True
        pending, self._pending = self._pending, {}
        for done in pending.values():
            done(None, DeadlineExceeded(False, where=where))
        return False

    def close(self) -> None:
        """End the thread once what is pending has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        while True:
            try:
                loop.run_forever()
            except Interruption:  # it came between two coroutines
                continue
            except (KeyboardInterrupt, SystemExit):  # of an agent; its own task has it too
                continue
            break
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        with contextlib.suppress(Exception, Interruption):
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=_ENDING_S))
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _begin(self, step: AwaitStep, family: _Family) -> None:
        task = asyncio.Task(self._follow(step, family), loop=self._loop)
        family.head = task
        self._families[task] = family

    async def _follow(self, step: AwaitStep, family: _Family) -> None:
        answer: Any = None
        error: BaseException | None = None
        try:
            future = asyncio.ensure_future(step.start())
            limit = None if step.limit == float("inf") else step.limit
            ended, _ = await asyncio.wait((future,), timeout=limit)
            if ended:
                answer = future.result()
            else:
                answer = step.late()
        except asyncio.CancelledError:
            error = DeadlineExceeded(True, cancelled=True)
        except Interruption:
            error = DeadlineExceeded(True, where=self._blocked_at)
        except BaseException as raised:
            error = raised
        await self._end(family)
        done = self._pending.pop(family, None)
        if done is not None:
            done(answer, error)

    async def _end(self, family: _Family) -> None:
        """Whatever the step started ends with it."""
        left = [task for task in family.tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(left, timeout=_ENDING_S)

    def _cancel_all(self) -> None:
        for family in list(self._pending):
            if family.head is not None:
                family.head.cancel()

    def _task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
        parent = asyncio.current_task(loop)
        family = self._families.get(parent) if parent is not None else None
        if family is not None:
            self._families[task] = family
            family.tasks.add(task)
        return task


class _Family:
    """The tasks of one step."""

    def __init__(self) -> None:
        self.head: asyncio.Task[Any] | None = None
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
