"""What a session has spent so far, shared by all its processes."""

from __future__ import annotations

import math
import os
import threading
from pathlib import Path

__all__ = ["Spending", "forget_spending"]

_PREFIX = "spent-"


class Spending:
    """A file to which each process appends the cost of its trials; one line with one write each.

    Args:
        run: the run directory.
        session: tells sessions that write into the same run from each other.
    """

    def __init__(self, run: Path, session: str) -> None:
        self._path = run / f"{_PREFIX}{session}"
        self._lock = threading.Lock()
        self._costs: list[float] = []
        self._read = 0

    def add(self, cost_usd: float | None) -> None:
        """Count the cost of one trial, in US dollars; unknown counts as nothing."""
        if not cost_usd:
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, f"{cost_usd!r}\n".encode())
        finally:
            os.close(descriptor)

    def total(self) -> float:
        """US dollars spent by all processes of the session."""
        with self._lock:
            try:
                with open(self._path, "rb") as stream:
                    stream.seek(self._read)
                    whole, newline, _ = stream.read().rpartition(b"\n")
            except FileNotFoundError:
                return 0.0
            self._read += len(whole) + len(newline)
            self._costs += [float(line) for line in whole.split()]
            return math.fsum(self._costs)


def forget_spending(run: Path) -> None:
    """Remove what sessions left, once they have ended."""
    for path in run.glob(f"{_PREFIX}*"):
        path.unlink(missing_ok=True)
