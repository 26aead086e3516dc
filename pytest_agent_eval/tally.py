"""Counting trials as they end, for the status line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pytest_agent_eval.reports.progress import Snapshot

if TYPE_CHECKING:
    from pytest_agent_eval.execution.engine import Snapshot as EngineSnapshot
    from pytest_agent_eval.results import TrialResult

__all__ = ["EngineTally", "Tally"]


class Tally:
    """What finished trials amount to. Counts what was done since it was made, and not what was
    taken over from a stored run: neither time nor money was spent on that now.
    """

    def __init__(self) -> None:
        self._begun = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self._statuses: Counter[str] = Counter()
        self._last: dict[Hashable, str] = {}
        self._finished = 0
        self._seconds = 0.0
        self._cost: float | None = None

    def count(self, key: Hashable, status: str) -> None:
        """One is done; the last time counts if it is carried out again."""
        if key in self._last:
            self._statuses[self._last[key]] -= 1
        self._last[key] = status
        self._statuses[status] += 1

    def spend(self, result: TrialResult) -> None:
        """The time and the money that a trial took."""
        carried_out = bool(result.started) and result.started >= self._begun
        if not carried_out and not result.rescored:
            return
        self._finished += 1
        self._seconds += result.judging_s
        if carried_out:
            self._seconds += result.duration_s
            if result.usage.cost_usd is not None:
                self._cost = (self._cost or 0.0) + result.usage.cost_usd

    def snapshot(
        self, total: int, running: tuple[tuple[str, float], ...], parallelism: int
    ) -> Snapshot:
        """Where the session stands; ``running`` and ``parallelism`` as in :class:`Snapshot`."""
        return Snapshot(
            total=total,
            done=len(self._last),
            failed=self._statuses["failed"],
            errors=self._statuses["error"],
            tolerated=self._statuses["tolerated"],
            running=running,
            cost_usd=self._cost,
            finished_seconds=(self._finished, self._seconds),
            parallelism=parallelism,
        )


class EngineTally:
    """Where the engine of this process stands, in trials. Call it for a snapshot.

    Args:
        engine: what the engine is at.
        parallelism: trials at once.
    """

    def __init__(self, engine: Callable[[], EngineSnapshot], parallelism: int) -> None:
        self._engine = engine
        self._parallelism = parallelism
        self._tally = Tally()
        self._seen = 0

    def __call__(self) -> Snapshot:
        """The snapshot; to be called from one thread."""
        at = self._engine()
        for result in at.done[self._seen :]:
            key = (result.suite, result.case, result.variant, result.trial)
            self._tally.count(key, result.status)
            self._tally.spend(result)
        self._seen = len(at.done)
        running = tuple((one.name, one.since) for one in at.running)
        return self._tally.snapshot(at.total, running, self._parallelism)
