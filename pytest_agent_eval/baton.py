"""One thread at a time does the short work of many: handling files, reporting, judging.

Python runs one thread at a time anyway, but at every system call it lets another go on: with
several threads at work each call costs two context switches, more than most of the calls themselves
(``docs/performance.md`` has the numbers). The thread that holds the baton has the others wait
beside the interpreter instead of for it.

It is a courtesy, not a lock: who waits too long goes on without. So nothing is lost but speed where
the holder blocks, or was interrupted before it could give the baton back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

__all__ = ["BATON", "Baton"]

_PATIENCE_S = 0.05
"""Longer than any piece of short work, and shorter than what a person would notice."""


class Baton:
    """Held by one thread at a time, each for a moment.

    Args:
        patience: seconds after which a thread takes the baton from the one that holds it.
    """

    def __init__(self, patience: float = _PATIENCE_S) -> None:
        self._patience = patience
        self._lock = Lock()
        self._holder = 0

    @property
    def held(self) -> bool:
        """Whether this thread holds it."""
        return self._holder == get_ident()

    def take(self) -> None:
        """Begin a piece of short work. A thread that holds the baton must not take it again."""
        self._lock.acquire(timeout=self._patience)
        self._holder = get_ident()

    def give(self) -> bool:
        """End it; returns whether this thread still held the baton."""
        if not self.held:
            return False
        self._holder = 0
        try:
            self._lock.release()
        except RuntimeError:  # it was taken from us just now, and given back
            return False
        return True

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let others work while this thread waits for something, if it holds the baton."""
        held = self.give()
        try:
            yield
        finally:
            if held:
                self.take()


BATON = Baton()
"""The interpreter has one lock, and so one baton."""
