"""A thread that changes shared state for one that Ctrl-C may interrupt anywhere.

In the main thread a signal can raise an exception between any two instructions, also while a lock
is given up or taken back: a condition that is waited for there, or a change of several fields, may
be left half done, and all other threads with it. What matters is therefore done by the clerk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

__all__ = ["Clerk"]

T = TypeVar("T")

_Reply = tuple[Any, BaseException | None]


class Clerk:
    """Calls functions one after the other, each to its end, whatever happens to who asked."""

    def __init__(self, name: str = "agent-eval-clerk") -> None:
        # Made for signals: neither of its ends can be interrupted halfway.
        self._asked: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[_Reply]] | None]
        self._asked = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """What the function returns; what it raises is raised here.

        Raises:
            TimeoutError: it did not return in time; it goes on.
        """
        reply: SimpleQueue[_Reply] = SimpleQueue()
        self._asked.put((function, reply))
        try:
            result, error = reply.get(timeout=timeout)
        except Empty:
            raise TimeoutError from None
        if error is not None:
            try:
                raise error
            finally:
                del error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the thread once what it was asked for is done; nothing may be asked afterwards."""
        self._asked.put(None)

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            function, reply = asked
            try:
                reply.put((function(), None))
            except BaseException as error:
                reply.put((None, error))
            del asked, function, reply
