"""The engine: carries out trials away from the thread that reports them.

A session plans its jobs in the order in which it will ask for them, then asks for one result
after the other. This engine works on one job at a time, when it is asked for; the interface does
not say so, so that jobs may be started ahead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pytest_agent_eval.deadline import DeadlineThread, Steps
from pytest_agent_eval.results import TrialResult

__all__ = ["Engine", "Job", "Stopped"]


class Stopped(Exception):
    """The session ended before the job had a result."""


@dataclass(frozen=True, slots=True)
class Job:
    """One case to carry out.

    Attributes:
        key: identifies the job within the session.
        steps: carries it out; gets an event that is set when the session wants it to end.
    """

    key: str
    steps: Callable[[threading.Event], Steps[TrialResult]]


class Engine:
    """Runs jobs in a thread of its own; :meth:`result` is called from one thread only.

    That thread waits for the result, so it is also the one that watches the time of the job's
    steps: a case costs one switch of threads.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._cancelled = threading.Event()
        self._threads = DeadlineThread("agent-eval")

    def plan(self, jobs: Iterable[Job]) -> None:
        """Tell the engine what will be asked for, in that order. May be called again."""
        self._jobs.update((job.key, job) for job in jobs)

    def result(self, key: str) -> TrialResult:
        """Wait for the result of a planned job. Asking again carries the job out again.

        Raises:
            KeyError: the job was never planned.
            Stopped: the engine was stopped.
        """
        job = self._jobs[key]
        if self._cancelled.is_set():
            raise Stopped
        return self._threads.drive(job.steps(self._cancelled), cancelled=self._cancelled)

    def stop(self, timeout: float = 15.0) -> None:
        """Start nothing more, end what is running and wait for it, at most ``timeout`` seconds.

        Safe to call twice, and from a session in which nothing ran.
        """
        self._cancelled.set()
        self._threads.settle(timeout)
        self._threads.close()
