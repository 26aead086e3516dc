"""An event that also wakes whoever waits for descriptors."""

from __future__ import annotations

import contextlib
import os
import threading

__all__ = ["Cancellation"]


class Cancellation(threading.Event):
    """Set once, when a session wants its trials to end.

    :meth:`fileno` becomes readable then, so that a thread in ``poll`` need not look now and then.
    Used from several threads; a forked child gets a descriptor of its own when it asks.
    """

    def __init__(self) -> None:
        super().__init__()
        # Reentrant: it may be set in a signal handler.
        self._mutex = threading.RLock()
        self._pipe: tuple[int, int] | None = None
        self._made_in = 0
        self._closed = False

    def fileno(self) -> int:
        """A descriptor that is readable from the moment the event is set; made when first asked.

        Raises:
            OSError: this process may open no more files.
            ValueError: it was closed.
        """
        with self._mutex:
            if self._closed:
                raise ValueError("the cancellation was closed")
            if self._pipe is None or self._made_in != os.getpid():
                self._pipe = os.pipe()
                self._made_in = os.getpid()
                if self.is_set():
                    self._wake()
            return self._pipe[0]

    def set(self) -> None:
        """Set it, and wake all who wait."""
        with self._mutex:
            first = not self.is_set()
            super().set()
            if first and self._made_in == os.getpid():
                self._wake()

    def clear(self) -> None:
        """Not possible: what was cancelled stays so."""
        raise NotImplementedError("a cancellation is final")

    def close(self) -> None:
        """Close the descriptors. Nobody may be waiting for them; the event goes on working."""
        with self._mutex:
            self._closed = True
            pipe, self._pipe = self._pipe, None
        for descriptor in pipe or ():
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _wake(self) -> None:
        # Nobody reads it, so it stays readable for all.
        if self._pipe is not None:
            os.write(self._pipe[1], b"x")

    def __del__(self) -> None:
        if hasattr(self, "_pipe"):
            self.close()
