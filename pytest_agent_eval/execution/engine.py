"""The engine: carries out trials away from the thread that reports them.

A session plans its jobs in the order in which it will ask for them, then asks for one result
after the other. This engine works on one job at a time, when it is asked for; the interface does
not say so, so that jobs may be started ahead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import SimpleQueue

from pytest_agent_eval.results import TrialResult

__all__ = ["Engine", "Job", "Stopped"]


class Stopped(Exception):
    """The session ended before the job had a result."""


@dataclass(frozen=True, slots=True)
class Job:
    """One case to carry out.

    Attributes:
        key: identifies the job within the session.
        run: carries it out; gets an event that is set when the session wants it to end.
    """

    key: str
    run: Callable[[threading.Event], TrialResult]


class _Outcome:
    """A result that may not be there yet."""

    __slots__ = ("error", "ready", "result")

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.result: TrialResult | None = None
        self.error: BaseException | None = None


class Engine:
    """Runs jobs in a thread of its own; :meth:`result` is called from one thread only."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._inbox: SimpleQueue[tuple[Job, _Outcome] | None] = SimpleQueue()
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None

    def plan(self, jobs: Iterable[Job]) -> None:
        """Tell the engine what will be asked for, in that order. May be called again."""
        self._jobs.update((job.key, job) for job in jobs)

    def result(self, key: str) -> TrialResult:
        """Wait for the result of a planned job. Asking again carries the job out again.

        Raises:
            KeyError: the job was never planned.
            Stopped: the engine was stopped.
        """
        if self._cancelled.is_set():
            raise Stopped
        job, outcome = self._jobs[key], _Outcome()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="agent-eval", daemon=True)
            self._thread.start()
        self._inbox.put((job, outcome))
        outcome.ready.wait()
        if outcome.error is not None:
            raise outcome.error
        assert outcome.result is not None
        return outcome.result

    def stop(self, timeout: float = 15.0) -> None:
        """Start nothing more, end what is running and wait for it, at most ``timeout`` seconds.

        Safe to call twice, and from a session in which nothing ran.
        """
        self._cancelled.set()
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join(timeout)
            self._thread = None

    def _work(self) -> None:
        while (entry := self._inbox.get()) is not None:
            job, outcome = entry
            try:
                if self._cancelled.is_set():
                    raise Stopped
                outcome.result = job.run(self._cancelled)
            except BaseException as error:  # handed to the thread that asked
                outcome.error = error
            outcome.ready.set()
