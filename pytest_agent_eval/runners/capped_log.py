"""A file that takes any amount of output and keeps its head and its tail."""

from __future__ import annotations

import os

from pytest_agent_eval.redaction import StreamFilter

__all__ = ["CappedLog"]

_MARKER_ROOM = 128
_CHUNK = 1024 * 1024


class CappedLog:
    """Output written to a file of at most ``cap`` bytes: the middle is dropped.

    The first half of the file holds the head. The second half is used as a ring while output
    comes in, and put in order when the log is closed, so neither memory nor disk grows with
    what is written. The file is made when the first byte comes.

    Args:
        path: of the file; an existing one is replaced.
        cap: bytes, at least 1 KiB.
        redacted: replaces secrets before anything is written or dropped, so that no part of one
            is left where the middle was dropped.

    What cannot be written, on a full disk for example, is dropped with all that follows, and
    ``failure`` says why: whoever reads a pipe has to go on reading it.

    Attributes:
        total: bytes that were given to it.
        failure: why the log is not complete; None as long as it is.
    """

    def __init__(self, path: str, cap: int, redacted: StreamFilter | None = None) -> None:
        cap = max(cap, 1024)
        self.path = path
        self._head = cap // 2
        self._ring = cap - self._head - _MARKER_ROOM
        self._file: int | None = None
        self._filter = redacted
        self._length = 0
        self.total = 0
        self.failure: OSError | None = None

    def write(self, data: bytes) -> None:
        """Take the next bytes, which are not empty."""
        self.total += len(data)
        if self.failure is not None:
            return
        if self._filter is not None:
            data = self._filter.feed(data)
        if data:
            try:
                self._append(data)
            except OSError as error:
                self.failure = error

    def _append(self, data: bytes) -> None:
        if self._file is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(self.path, flags, 0o644)
        view = memoryview(data)
        while view:
            if self._length < self._head:
                room, position = self._head - self._length, self._length
            else:
                offset = (self._length - self._head) % self._ring
                room, position = self._ring - offset, self._head + offset
            written = os.pwrite(self._file, view[:room], position)
            self._length += written
            view = view[written:]

    def close(self) -> None:
        """Put head, marker and tail in order. Nothing is written afterwards."""
        try:
            if self.failure is None:
                self._finish()
        except OSError as error:
            self.failure = error
        finally:
            if self._file is not None:
                file, self._file = self._file, None
                try:
                    os.close(file)
                except OSError as error:  # of a network file system, or a quota
                    self.failure = self.failure or error

    def _finish(self) -> None:
        if self._filter is not None and (rest := self._filter.flush()):
            self._append(rest)
        if self._file is not None and self._length > self._head + self._ring:
            self._put_in_order(self._file)

    def _put_in_order(self, file: int) -> None:
        dropped = self._length - self._head - self._ring
        marker = b"\n[... %d bytes dropped ...]\n" % dropped
        ring = bytearray()
        while len(ring) < self._ring:
            data = os.pread(file, min(_CHUNK, self._ring - len(ring)), self._head + len(ring))
            if not data:  # cut short by somebody else
                break
            ring += data
        start = (self._length - self._head) % self._ring
        position = self._head
        for part in (marker, memoryview(ring)[start:], memoryview(ring)[:start]):
            position += _write_all(file, part, position)
        os.ftruncate(file, position)


def _write_all(file: int, data: bytes | memoryview, position: int) -> int:
    view = memoryview(data)
    done = 0
    while done < len(view):
        done += os.pwrite(file, view[done:], position + done)
    return done


def read_tail(path: str, limit: int) -> str:
    """The last ``limit`` bytes of a log as text, invalid UTF-8 replaced; empty without a log."""
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - limit))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
