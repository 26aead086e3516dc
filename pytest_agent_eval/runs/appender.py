"""Appending lines to a file so that nothing that was finished is lost."""

from __future__ import annotations

import os
import threading

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.lock import open_owned

__all__ = ["Appender"]

SYNC_AFTER = 0.9
"""Seconds a line may wait for its fsync; with the fsync itself it stays within a second."""


class Appender:
    """A file that any number of threads and processes may append lines to.

    A line is one ``write`` to a descriptor opened with ``O_APPEND``, so lines of several writers
    never mix. The first line after a flush starts a timer that flushes to the disk; while nothing
    is written there is neither a thread nor a wake-up.

    Args:
        path: the file.
        owned: lock the file while it is open, so that others see that somebody writes it.
    """

    def __init__(self, path: str, *, owned: bool = False) -> None:
        self._path = path
        self._owned = owned
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._fd = -1
        self._torn = False

    @classmethod
    def new(cls, path: str) -> Appender:
        """Make the file and own it.

        Raises:
            FileExistsError: it is there.
            OSError: it cannot be made.
        """
        appender = cls(path, owned=True)
        appender._fd = open_owned(path, new=True)
        return appender

    def append(self, line: bytes) -> None:
        """Append one line, which ends with its newline.

        Raises:
            RunDirectoryError: it cannot be written; nothing else of the file is damaged.
        """
        with self._lock:
            try:
                if self._fd < 0:
                    self._open()
                self._write(line)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                message = f"{self._path}: a result cannot be stored: {reason}"
                raise RunDirectoryError(message) from None
            if self._timer is None:
                self._timer = threading.Timer(SYNC_AFTER, self._sync)
                self._timer.daemon = True
                self._timer.start()

    def _open(self) -> None:
        if self._owned:
            self._fd = open_owned(self._path)
        else:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o644)
        size = os.fstat(self._fd).st_size
        # A process that was killed may have left half a line; ours must not continue it.
        self._torn = size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"

    def _write(self, line: bytes) -> None:
        if self._torn:
            line = b"\n" + line
        done = os.write(self._fd, line)
        while done < len(line):
            self._torn = True
            done += os.write(self._fd, line[done:])
        self._torn = False

    def _sync(self) -> None:
        with self._lock:
            self._timer = None
            if self._fd < 0:
                return
            try:
                fd = os.dup(self._fd)  # which stays open, whoever closes the other meanwhile
            except OSError:  # too many open files
                return
        try:
            # Not under the lock: on a busy disk it takes seconds, in which lines are to be written.
            os.fsync(fd)
        except OSError:
            # Not every file system can; the lines are with the kernel already.
            return
        finally:
            os.close(fd)

    def close(self) -> None:
        """Flush to the disk and close. May be called twice; a later ``append`` opens again."""
        with self._lock:
            timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
            if self._fd >= 0:
                fd, self._fd = self._fd, -1
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
