"""What code in other threads prints while pytest itself writes.

Between the parts of a test pytest gives its captured streams back, to write to the terminal. What a
Python agent or a judge prints in that moment, in a thread of the engine, would land in the middle
of pytest's lines, and nobody would have looked for secrets in it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import deque
from typing import Any

import pytest

__all__ = ["HeldOutput"]


class HeldOutput:
    """Keeps what other threads print then, until pytest captures again.

    Only for what is written to ``sys.stdout`` and ``sys.stderr``: a write to the descriptor goes
    where it goes. Where pytest captures nothing, or in another way than known, nothing is done.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._replaced: list[tuple[Any, str, Any, _Divided]] = []
        manager = config.pluginmanager.getplugin("capturemanager")
        both = getattr(manager, "_global_capturing", None)
        for capture, name in (
            (getattr(both, "out", None), "stdout"),
            (getattr(both, "err", None), "stderr"),
        ):
            inner = getattr(capture, "syscapture", capture)  # a capture of descriptors has one
            original = getattr(inner, "_old", None)
            if inner is None or original is None:
                continue
            divided = _Divided(original)
            with contextlib.suppress(AttributeError):
                inner._old = divided
                self._replaced.append((inner, name, original, divided))
                if getattr(sys, name) is original:
                    setattr(sys, name, divided)

    def deliver(self) -> None:
        """Print what was kept; called where pytest captures."""
        for _, name, _, divided in self._replaced:
            kept = divided.take()
            if kept:
                getattr(sys, name).write(kept)

    def close(self) -> None:
        """Give the streams back."""
        for inner, name, original, divided in self._replaced:
            if getattr(inner, "_old", None) is divided:  # else it has ended by now
                inner._old = original
            if getattr(sys, name) is divided:
                setattr(sys, name, original)
        self._replaced = []


class _Divided:
    """A stream that only the thread which made it writes to."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._owner = threading.get_ident()
        self._kept: deque[str] = deque()  # its ends are atomic

    def write(self, text: str) -> int:
        if threading.get_ident() == self._owner:
            written: int = self._stream.write(text)
            return written
        self._kept.append(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def take(self) -> str:
        """What was kept since the last time."""
        taken = []
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._kept.popleft())
        return "".join(taken)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
