"""The engine: carries out trials away from the thread that reports them, and ahead of it.

A session plans its jobs in the order in which it will ask for them, then asks for one result after
the other. Meanwhile the engine starts jobs in that order, at most ``parallelism`` at once, each in
a thread of a crew that grows as it is needed. A job is a generator of steps: those with a time
limit are watched by one supervisor; those that can be awaited share one event loop and take no
thread while they wait.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from pytest_agent_eval.cancellation import Cancellation
from pytest_agent_eval.deadline import (
    PAUSED,
    AwaitStep,
    DeadlineExceeded,
    Released,
    Step,
    Steps,
    Walk,
)
from pytest_agent_eval.execution.clerk import Clerk
from pytest_agent_eval.execution.supervisor import Supervisor
from pytest_agent_eval.interruptible import InterruptibleThread, Interruption
from pytest_agent_eval.results import TrialResult

if TYPE_CHECKING:
    from pytest_agent_eval.event_loop import EventLoopThread

__all__ = ["Engine", "Job", "Lane", "Running", "Snapshot", "Stopped"]

_PREPARING = 4
"""Jobs that will be awaited and occupy a thread before they are: more would not be faster."""

_GRACE_S = 2.0
"""Seconds that a step whose time is up has to end before its thread is abandoned."""

_HURRY_S = 1.0
"""Seconds that killed agents have to let go of the threads that wait for them."""

_FOREVER = float("inf")
_STARTED = ("running", "judging", "done")


class Stopped(Exception):
    """The session ended before the job had a result."""


@dataclass(slots=True)
class Lane:
    """Jobs that share a limit: those of one suite.

    Attributes:
        limit: jobs at once.
        ahead: jobs start before they are asked for.
        is_async: they spend their time awaited in the event loop.
        open: they may start at all.
        running: jobs whose agent is at work.
    """

    limit: int
    ahead: bool = True
    is_async: bool = False
    open: bool = True
    running: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One trial to carry out.

    Attributes:
        key: identifies the job within the session.
        steps: carries it out; gets an event that is set when the session wants it to end.
        lane: the lane it runs in; None for one of its own.
        name: shown to people.
        ahead: False where it is to start only when it is asked for.
    """

    key: Hashable
    steps: Callable[[threading.Event], Steps[TrialResult]]
    lane: Lane | None = None
    name: str = ""
    ahead: bool = True


@dataclass(frozen=True, slots=True)
class Running:
    """A trial under way: its job's name, and when it began on the monotonic clock."""

    name: str
    since: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the engine is at.

    Attributes:
        total: jobs planned.
        done: finished jobs, in the order in which they ended.
        running: jobs under way, the longest first.
    """

    total: int
    done: tuple[TrialResult, ...]
    running: tuple[Running, ...]


class _Task:
    """A job and how far it is."""

    __slots__ = (
        "error",
        "index",
        "job",
        "lane",
        "phase",
        "prepares",
        "queued",
        "result",
        "since",
    )

    def __init__(self, job: Job, index: int) -> None:
        self.job = job
        self.lane = job.lane or Lane(1)
        self.index = index
        self.phase: Literal["planned", "running", "judging", "done", "taken"] = "planned"
        self.queued = False
        self.prepares = False
        self.result: TrialResult | None = None
        self.error: BaseException | None = None
        self.since = 0.0


class Engine:
    """Runs jobs; :meth:`result` is called from one thread only.

    Args:
        parallelism: agents at work at once.
        judging: trials that are judged at once. No agent starts while as many wait for it as
            there may be agents at work.
        window: how many jobs behind the one that was asked for last may start; None for any.
        cancelled: set by :meth:`stop`, handed to every job.
    """

    def __init__(
        self,
        parallelism: int = 1,
        *,
        judging: int = 8,
        window: int | None = 0,
        cancelled: threading.Event | None = None,
    ) -> None:
        self.cancelled = cancelled or Cancellation()
        self._parallelism = parallelism
        self._max_judging = judging
        self._window = window
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._work = threading.Condition(self._lock)
        self._tasks: dict[Hashable, _Task] = {}
        self._ahead: dict[int, tuple[Lane, deque[_Task]]] = {}
        self._asked: deque[_Task] = deque()
        self._position = 0
        self._awaited: _Task | None = None
        self._signs: SimpleQueue[None] = SimpleQueue()
        self._ready: deque[tuple[_Task, Walk]] = deque()
        self._to_judge: deque[tuple[_Task, Walk]] = deque()
        self._running = 0
        self._judging = 0
        self._preparing = 0
        self._idle = 0
        self._crew: set[InterruptibleThread] = set()
        self._walks: dict[Walk, tuple[_Task, InterruptibleThread]] = {}
        self._under_way: dict[_Task, None] = {}
        self._finished: list[TrialResult] = []
        self._awaits: dict[Walk, tuple[float, EventLoopThread]] = {}
        self._supervisor = Supervisor(self._overdue)
        self._loop: EventLoopThread | None = None
        self._closed = False
        self._deadline = _FOREVER
        self._clerk = Clerk()
        self._dismissed = False

    # -- called by the session -------------------------------------------------------------

    def plan(self, jobs: Iterable[Job]) -> None:
        """Tell the engine what will be asked for, in that order. May be called again."""
        with self._lock:
            for job in jobs:
                task = _Task(job, len(self._tasks))
                self._tasks[job.key] = task
                if task.lane.ahead and job.ahead:
                    lane = self._ahead.setdefault(id(task.lane), (task.lane, deque()))
                    lane[1].append(task)

    def begin(self, keys: Iterable[Hashable]) -> None:
        """Ask for jobs without waiting for them; they come before all that is only planned.

        Raises:
            KeyError: a job was never planned.
            Stopped: the engine was stopped.
        """
        if self.cancelled.is_set():
            raise Stopped
        tasks = [self._tasks[key] for key in keys]
        if self._window is None and all(task.phase in _STARTED for task in tasks):
            return
        self._clerk.do(partial(self._ask, tasks))

    def _ask(self, tasks: Iterable[_Task]) -> None:
        with self._lock:
            if self.cancelled.is_set():
                raise Stopped
            for task in tasks:
                if task.phase in ("planned", "taken") and not task.queued:
                    task.queued = True
                    self._asked.append(task)
                self._position = max(self._position, task.index)
            self._call()

    def result(self, key: Hashable, *, waiting: Callable[[], None] | None = None) -> TrialResult:
        """Wait for the result of a planned job. Asking again carries the job out again.

        Args:
            key: of the job.
            waiting: called meanwhile, at once and then ten times a second.

        Raises:
            KeyError: the job was never planned.
            Stopped: the engine was stopped.
        """
        self.begin((key,))
        # No lock is waited for in this thread, see Clerk: whoever ends a job says so if it is the
        # one that is awaited, and to look once too often does no harm.
        task = self._awaited = self._tasks[key]
        if waiting is not None and task.phase != "done":
            waiting()
        while task.phase != "done":
            try:
                self._signs.get(timeout=None if waiting is None else 0.1)
            except Empty:
                assert waiting is not None
                waiting()
        self._awaited = None
        result, error = task.result, task.error
        task.phase, task.result, task.error = "taken", None, None
        if error is not None:
            try:
                raise error
            finally:
                del error
        assert result is not None
        return result

    def unasked(self) -> list[TrialResult]:
        """Results of finished jobs that nobody has asked for."""
        with self._lock:
            return [task.result for task in self._tasks.values() if task.result is not None]

    def snapshot(self) -> Snapshot:
        """What is going on now."""
        with self._lock:
            return Snapshot(
                len(self._tasks),
                tuple(self._finished),
                tuple(Running(task.job.name, task.since) for task in self._under_way),
            )

    def stop(self, timeout: float = 15.0) -> None:
        """Start nothing more, end what is running and wait for it, at most ``timeout`` seconds.

        Safe to call twice, from a session in which nothing ran, and after Ctrl-C interrupted it.
        """
        if self._dismissed:
            return
        with contextlib.suppress(TimeoutError):
            self._clerk.do(partial(self._stop, timeout), timeout + _GRACE_S)
        self._dismissed = True
        self._clerk.close()

    def cancel(self) -> None:
        """Start nothing more and end what is running, without waiting. From any thread."""
        self.cancelled.set()
        with self._lock:
            loop = self._loop
            self._judging += len(self._to_judge)
            self._ready.extend(self._to_judge)
            self._to_judge.clear()
            self._call()
        self._supervisor.look()
        if loop is not None:
            loop.cancel_all()

    def hurry(self) -> None:
        """Have :meth:`stop`, which waits, wait a moment longer at most. From any thread."""
        with self._lock:
            self._deadline = min(self._deadline, time.monotonic() + _HURRY_S)
            self._ended.notify_all()

    def _stop(self, timeout: float) -> None:
        self.cancel()
        with self._lock:
            self._deadline = min(self._deadline, time.monotonic() + timeout)
            loop = self._loop
            while self._running + self._judging and (left := self._deadline - time.monotonic()) > 0:
                self._ended.wait(left)
            self._closed = True
            self._work.notify_all()
        self._supervisor.close()
        if loop is not None:
            loop.close()

    # -- the crew --------------------------------------------------------------------------

    def _call(self) -> None:
        """Get somebody to work if there is work; with the lock held."""
        if not self._ready and self._next_planned() is None:
            return
        if len(self._crew) - len(self._walks) > self._idle:
            return  # one of the crew is on its way here, and calls the next
        if self._idle:
            self._work.notify()
        else:
            worker = InterruptibleThread("agent-eval")
            self._crew.add(worker)
            worker.start(self._context.copy(), lambda: self._serve(worker))

    def _serve(self, worker: InterruptibleThread) -> None:
        """One thread of the crew: takes work as long as the engine is there."""
        while True:
            with self._lock:
                while (work := self._take()) is None:
                    if self._closed:
                        self._crew.discard(worker)
                        worker.retire()
                        return
                    self._idle += 1
                    try:
                        self._work.wait()
                    finally:
                        self._idle -= 1
                task, walk = work
                self._walks[walk] = (task, worker)
                self._call()
            self._advance(task, walk)

    def _take(self) -> tuple[_Task, Walk] | None:
        if self._ready:
            return self._ready.popleft()
        task = self._next_planned()
        if task is None:
            return None
        if task.queued:
            self._asked.remove(task)
            task.queued = False
        task.phase, task.since = "running", time.monotonic()
        self._under_way[task] = None
        task.lane.running += 1
        self._running += 1
        self._prepares(task, task.lane.is_async)
        return task, self._walk(task, task.job.steps(self.cancelled))

    def _next_planned(self) -> _Task | None:
        """The job that may start now: one that was asked for, else the next in order."""
        if self._running >= self._parallelism or self.cancelled.is_set():
            return None
        if len(self._to_judge) >= self._parallelism:
            return None  # each holds what its agent printed, and judges could not keep up
        for task in self._asked:
            if self._has_room(task.lane):
                return task
        first: _Task | None = None
        for lane, planned in self._ahead.values():
            while planned and (planned[0].phase != "planned" or planned[0].queued):
                planned.popleft()
            if planned and self._has_room(lane) and (not first or planned[0].index < first.index):
                first = planned[0]
        if first is None or self._window is None:
            return first
        return first if first.index <= self._position + self._window else None

    def _has_room(self, lane: Lane) -> bool:
        if not lane.open or lane.running >= lane.limit:
            return False
        return not lane.is_async or self._preparing < _PREPARING

    def _walk(self, task: _Task, steps: Steps[TrialResult], **first: Any) -> Walk:
        walk: Walk
        walk = Walk(
            steps,
            watch=self._supervisor.watch,
            pause=lambda step: self._pause(task, walk, step),
            **first,
        )
        return walk

    def _advance(self, task: _Task, walk: Walk) -> None:
        result, error = None, None
        try:
            result = walk.go()
        except Interruption:
            raise
        except BaseException as raised:
            error = raised
        with self._lock:
            self._walks.pop(walk, None)
            if result is not PAUSED:
                self._end(task, result, error)

    def _end(self, task: _Task, result: TrialResult | None, error: BaseException | None) -> None:
        """A job is done; with the lock held."""
        if task.phase == "judging":
            self._leave_judging()
        else:
            self._leave_lane(task)
        task.result, task.error = result, error
        task.phase = "done"  # last: who waits for it looks without the lock
        del self._under_way[task]
        if result is not None:
            self._finished.append(result)
        if self._awaited is task:
            self._signs.put(None)
        if self.cancelled.is_set():
            self._ended.notify_all()
        self._call()

    def _prepares(self, task: _Task, prepares: bool) -> None:
        """Whether a job that will be awaited occupies a thread; with the lock held."""
        self._preparing += prepares - task.prepares
        task.prepares = prepares

    def _leave_lane(self, task: _Task) -> None:
        self._prepares(task, False)
        task.lane.running -= 1
        self._running -= 1

    def _leave_judging(self) -> None:
        self._judging -= 1
        if self._to_judge:
            self._judging += 1
            self._ready.append(self._to_judge.popleft())  # which also makes room for an agent

    # -- steps -----------------------------------------------------------------------------

    def _pause(self, task: _Task, walk: Walk, step: Step) -> object:
        """Before a step, in the thread of its job: see :class:`Walk`."""
        if isinstance(step, Released):
            return self._release(task, walk)
        if self.cancelled.is_set():
            return DeadlineExceeded(True, cancelled=True)
        if isinstance(step, AwaitStep):
            self._await(task, walk, step)
            return PAUSED
        return None

    def _release(self, task: _Task, walk: Walk) -> object:
        with self._lock:
            if task.phase == "judging":
                return None
            task.phase = "judging"
            self._leave_lane(task)
            waits = self._judging >= self._max_judging
            if waits:
                self._walks.pop(walk, None)
                self._to_judge.append((task, self._walk(task, walk.steps)))
            else:
                self._judging += 1
            self._call()
            return PAUSED if waits else None

    def _await(self, task: _Task, walk: Walk, step: AwaitStep) -> None:
        with self._lock:
            self._prepares(task, False)
            self._walks.pop(walk, None)
            if self._loop is None:
                from pytest_agent_eval.event_loop import EventLoopThread

                self._loop = EventLoopThread()
            loop = self._loop
            until = time.monotonic() + step.timeout
            self._awaits[walk] = (until, loop)
            self._call()
        self._supervisor.watch(until)
        loop.submit(step, lambda answer, error: self._resume(task, walk, answer, error))
        if self.cancelled.is_set():
            loop.cancel_all()

    def _resume(self, task: _Task, walk: Walk, answer: Any, error: BaseException | None) -> None:
        """Let somebody go on with a job that was paused."""
        with self._lock:
            self._awaits.pop(walk, None)
            self._prepares(task, task.lane.is_async and task.phase == "running")
            self._ready.append((task, self._walk(task, walk.steps, answer=answer, error=error)))
            self._call()

    # -- time limits -----------------------------------------------------------------------

    def _overdue(self) -> float:
        """End the steps whose time is up; when to look again, on the monotonic clock."""
        at_once = self.cancelled.is_set()
        earliest = _FOREVER
        stuck = None
        with self._lock:
            walks = list(self._walks.items())
            now = time.monotonic()
            for waiting, (until, loop) in list(self._awaits.items()):
                if now < until:
                    earliest = min(earliest, until)
                else:
                    del self._awaits[waiting]
                    stuck = loop
        if stuck is not None:
            threading.Thread(target=self._unblock, args=(stuck,), daemon=True).start()
        for walk, (task, worker) in walks:
            deadline = walk.deadline
            if deadline is None:
                continue
            if walk.halt(at_once=at_once):
                # Ending a step may take a while, and others wait for their end.
                threading.Thread(
                    target=self._take_away, args=(task, walk, worker), daemon=True
                ).start()
            else:
                earliest = min(earliest, deadline)
        return earliest

    def _take_away(self, task: _Task, walk: Walk, worker: InterruptibleThread) -> None:
        where = worker.position()
        ended = worker.end(_GRACE_S)
        error = DeadlineExceeded(ended, cancelled=self.cancelled.is_set(), where=where)
        with self._lock:
            self._walks.pop(walk, None)
            self._crew.discard(worker)
            self._ready.append((task, self._walk(task, walk.steps, error=error)))
            self._call()

    def _unblock(self, loop: EventLoopThread) -> None:
        """A coroutine has kept the event loop from ending another in time."""
        if not loop.unblock(_GRACE_S):
            with self._lock:
                if self._loop is loop:
                    self._loop = None
