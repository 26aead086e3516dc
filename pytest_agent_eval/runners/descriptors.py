"""Room for the descriptors of many agents at once."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import threading

__all__ = ["limit", "make_more_room", "make_room"]

_FACTOR = 4
_LOCK = threading.Lock()
_SPARE = 32
"""Kept free: whoever ends an agent has to look at the running processes, and open files for it."""


def limit() -> int:
    """How many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def make_room() -> None:
    """Raise the soft limit of open files, as far as the hard one allows, if half is used.

    Programs that are started later inherit it, so it is left alone as long as there is room.

    Raises:
        OSError: ``EMFILE``: fewer than 32 are left.
    """
    with _LOCK:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return
        # The lowest that is free tells about how many are in use.
        used = os.open(os.devnull, os.O_RDONLY)
        os.close(used)
        if used >= soft // 2:
            soft = _raised(soft, hard)
        if used + _SPARE > soft:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def make_more_room() -> bool:
    """Raise the limit because it was reached all the same: many threads open files at once.

    Returns:
        Whether it was raised.
    """
    with _LOCK:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return soft != resource.RLIM_INFINITY and _raised(soft, hard) > soft


def _raised(soft: int, hard: int) -> int:
    """The soft limit, raised where that is allowed; with the lock held: nobody lowers it again."""
    wanted = soft * _FACTOR if hard == resource.RLIM_INFINITY else min(soft * _FACTOR, hard)
    if wanted > soft:
        with contextlib.suppress(OSError, ValueError):  # a system may allow less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return soft
