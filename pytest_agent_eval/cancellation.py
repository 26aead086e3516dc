"""An event that also wakes whoever waits for descriptors."""

from __future__ import annotations

import contextlib
import os
import threading

__all__ = ["Cancellation"]


class Cancellation(threading.Event):
    """Set once, when a session wants its trials to end.

    :meth:`fileno` becomes readable then, so that a thread in ``poll`` need not look now and then.
    """

    def __init__(self) -> None:
        super().__init__()
        self._mutex = threading.Lock()
        self._pipe: tuple[int, int] | None = None

    def fileno(self) -> int:
        """A descriptor that is readable from the moment the event is set; made when first asked."""
        with self._mutex:
            if self._pipe is None:
                self._pipe = os.pipe()
                if self.is_set():
                    os.write(self._pipe[1], b"x")
            return self._pipe[0]

    def set(self) -> None:
        """Set it, and wake all who wait."""
        with self._mutex:
            first = not self.is_set()
            super().set()
            if first and self._pipe is not None:
                # Nobody reads it, so it stays readable for all.
                os.write(self._pipe[1], b"x")

    def clear(self) -> None:
        """Not possible: what was cancelled stays so."""
        raise NotImplementedError("a cancellation is final")

    def __del__(self) -> None:
        for descriptor in self._pipe or ():
            with contextlib.suppress(OSError):
                os.close(descriptor)
