"""The thread that looks after deadlines, for all that run at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Supervisor"]

_FOREVER = float("inf")


class Supervisor:
    """Sleeps until the next deadline, then looks.

    Args:
        overdue: ends what is overdue, and says when to look again (on the monotonic clock).
    """

    def __init__(self, overdue: Callable[[], float]) -> None:
        self._overdue = overdue
        self._changed = threading.Condition()
        self._wakes_at = _FOREVER
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, deadline: float) -> None:
        """A step has this deadline. Costs a comparison unless it is the next one."""
        if deadline < self._wakes_at or self._thread is None:
            self._wake(deadline)

    def look(self) -> None:
        """Look now."""
        self._wake(-_FOREVER)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _wake(self, at: float) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="agent-eval-time", daemon=True
                )
                self._thread.start()
            if at < self._wakes_at:
                self._wakes_at = at
                self._changed.notify()

    def _run(self) -> None:
        while True:
            # Whoever has a deadline from now on says so, whether or not it is seen below.
            self._wakes_at = _FOREVER
            earliest = self._overdue()
            with self._changed:
                self._wakes_at = min(self._wakes_at, earliest)
                left = self._wakes_at - time.monotonic()
                if not self._closed and left > 0:
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))
                closed = self._closed
            if closed:
                return
