"""Who is writing: advisory locks of the operating system, which end with the process."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from pytest_agent_eval.baton import BATON
from pytest_agent_eval.errors import RunDirectoryError

__all__ = ["LOCK", "SessionLock", "open_owned", "try_lock", "wait_for_lock", "writer_of"]

LOCK = "session.lock"
_TRIES = 20
_PAUSE = 0.02
"""Seconds between tries: somebody who only asks who is writing holds the lock for a moment."""

_POLL_S = 0.1
"""How often somebody who waits for another process looks; the operating system does not say."""


def try_lock(fd: int, *, wait: bool = False) -> bool:
    """Lock an open file for this process; False where another one has it.

    True also on a file system without locks: one session at a time is then up to the user.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN)
    return True


def wait_for_lock(fd: int, cancelled: threading.Event) -> bool:
    """Lock an open file once nobody else has it; False where ``cancelled`` was set first."""
    while not try_lock(fd):
        with BATON.waiting():
            given_up = cancelled.wait(_POLL_S)
        if given_up:
            return False
    return True


def open_owned(path: str, *, new: bool = False) -> int:
    """Open a file for appending and lock it, so that others see that somebody writes it.

    Args:
        path: the file; made if it is missing.
        new: fail if it is there already.

    Raises:
        FileExistsError: it is there, and ``new`` is set.
        OSError: it cannot be opened.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    while True:
        fd = os.open(path, flags, 0o644)
        if try_lock(fd, wait=True) and _is_at(fd, path):
            return fd
        os.close(fd)  # somebody removed it between the two calls


def _is_at(fd: int, path: str) -> bool:
    try:
        there, ours = os.stat(path), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


@dataclass
class SessionLock:
    """Held by the one session that writes into a run."""

    path: str
    fd: int

    @classmethod
    def take(cls, run_dir: Path) -> SessionLock:
        """Become the session that writes into a run.

        Raises:
            RunDirectoryError: another one is; the message names its process.
            OSError: the run cannot be written.
        """
        path = os.path.join(run_dir, LOCK)
        for _ in range(_TRIES):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if not try_lock(fd):
                os.close(fd)
                time.sleep(_PAUSE)
                continue
            if not _is_at(fd, path):
                os.close(fd)
                continue
            started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            who = {"pid": os.getpid(), "host": platform.node(), "started": started}
            try:
                os.ftruncate(fd, 0)
                os.write(fd, json.dumps(who).encode() + b"\n")
            except OSError:
                os.close(fd)
                raise
            return cls(path, fd)
        who_else = writer_of(run_dir) or "another process"
        raise RunDirectoryError(
            f"{run_dir}: {who_else} is writing into this run; wait for it or end it"
        )

    def release(self) -> None:
        """Let others write. May be called twice."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            try:
                os.unlink(self.path)
            except OSError:
                pass  # whoever finds it finds it unlocked
            finally:
                os.close(fd)


def writer_of(run_dir: Path) -> str:
    """``process 4711 on HOST (since 2026-01-01T00:00:00Z)``; empty if nobody writes there."""
    try:
        fd = os.open(run_dir / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
            return ""
        return _described(os.read(fd, 4096))
    finally:
        os.close(fd)
    return ""


def _described(content: bytes) -> str:
    try:
        who = json.loads(content)
        return f"process {who['pid']} on {who['host']} (since {who['started']})"
    except (ValueError, KeyError, TypeError):
        return "another process"
