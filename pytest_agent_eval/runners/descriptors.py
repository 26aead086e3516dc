"""Room for the descriptors of many agents at once."""

from __future__ import annotations

import contextlib
import errno
import os
import resource

__all__ = ["limit", "make_room"]

_FACTOR = 4
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
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    # The lowest that is free tells about how many are in use.
    used = os.open(os.devnull, os.O_RDONLY)
    os.close(used)
    if used >= soft // 2:
        wanted = soft * _FACTOR if hard == resource.RLIM_INFINITY else min(soft * _FACTOR, hard)
        if wanted > soft:
            with contextlib.suppress(OSError, ValueError):  # a system may allow less than it says
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                soft = wanted
    if used + _SPARE > soft:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
