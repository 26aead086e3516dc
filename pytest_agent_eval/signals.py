"""What Ctrl-C and SIGTERM do to a session besides what pytest makes of them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Signals"]


class Signals:
    """The handlers of one session. Without effect outside the main thread, which alone has any."""

    def __init__(self) -> None:
        self._catches_sigterm = False
        self.hurried = False
        """Somebody asked the session to end while it was at its end."""

    def catch_sigterm(self) -> None:
        """End as on Ctrl-C when CI or ``timeout`` ends the session: agents must not outlive it."""
        if _is_main() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _interrupt)
            self._catches_sigterm = True

    def restore(self) -> None:
        """Undo what was changed for the time of the session."""
        if self._catches_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._catches_sigterm = False

    @contextmanager
    def finishing(self, hurry: Callable[[], None]) -> Iterator[None]:
        """The session is ending: let nothing that is to be stored be lost to another Ctrl-C.

        Args:
            hurry: called in a thread at the first signal, which raises nothing; another one raises
                ``KeyboardInterrupt`` again.
        """
        before = {
            number: handler
            for number in (signal.SIGINT, signal.SIGTERM)
            if _is_main()
            and (handler := signal.getsignal(number)) in (signal.default_int_handler, _interrupt)
        }

        def put_back() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def first(*_: object) -> None:
            put_back()
            self.hurried = True
            threading.Thread(target=hurry, name="agent-eval-hurry", daemon=True).start()

        for number in before:
            signal.signal(number, first)
        try:
            yield
        finally:
            put_back()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt("terminated by SIGTERM")
