"""Copying and hashing files without ever following a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator

import xxhash

from pytest_agent_eval.baton import BATON
from pytest_agent_eval.redaction import NO_SECRETS, Secrets

__all__ = ["Entry", "copy_file", "hash_file", "read_file", "walk"]

_CHUNK = 1024 * 1024
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

Entry = tuple[str, os.stat_result]
"""A path relative to the directory that was walked, with slashes, and its own status."""


def copy_file(source: str, target: str, secrets: Secrets = NO_SECRETS) -> int:
    """Copy a regular file to a path that does not exist, and return the xxh3 of its content.

    Only the permission to execute is kept; the owner can always read and write the copy, in which
    secrets are replaced.

    Raises:
        OSError: unreadable, a link, no regular file, or the target exists.
    """
    reader = os.open(source, _READ)
    try:
        status = os.fstat(reader)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", source)
        mode = 0o755 if status.st_mode & 0o100 else 0o644
        writer = os.open(target, _WRITE, mode)
        try:
            # Never more than it had at first: a file that grows while it is read has an end too.
            return _copy(reader, writer, status.st_size, secrets)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _copy(reader: int, writer: int, size: int, secrets: Secrets) -> int:
    data = os.read(reader, min(size, _CHUNK)) if size else b""
    if len(data) == size:
        _write_all(writer, secrets.data(data))
        return xxhash.xxh3_64_intdigest(data)
    digest = xxhash.xxh3_64()
    redacted = secrets.filter()
    left = size
    with BATON.waiting():
        while data:
            digest.update(data)
            _write_all(writer, redacted.feed(data))
            left -= len(data)
            data = os.read(reader, min(left, _CHUNK)) if left > 0 else b""
        _write_all(writer, redacted.flush())
    return digest.intdigest()


def _write_all(writer: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(writer, view) :]


def hash_file(path: str) -> int:
    """The xxh3 of a regular file's content.

    Raises:
        OSError: unreadable, or a link.
    """
    reader = os.open(path, _READ)
    try:
        # A read sets aside what it asks for, so it asks for no more than there is.
        chunk = min(os.fstat(reader).st_size + 1, _CHUNK)
        data = os.read(reader, chunk)
        if len(data) < chunk:
            return xxhash.xxh3_64_intdigest(data)
        digest = xxhash.xxh3_64()
        with BATON.waiting():
            while data:
                digest.update(data)
                data = os.read(reader, _CHUNK)
        return digest.intdigest()
    finally:
        os.close(reader)


def read_file(path: str, limit: int) -> bytes:
    """At most ``limit`` bytes from the beginning of a regular file.

    Raises:
        OSError: unreadable, a link, or no regular file.
    """
    reader = os.open(path, _READ)
    try:
        status = os.fstat(reader)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        parts = []
        left = min(limit, status.st_size)
        while left > 0 and (data := os.read(reader, left)):
            parts.append(data)
            left -= len(data)
        return b"".join(parts)
    finally:
        os.close(reader)


def walk(root: str, *, below: str = "", skip: Collection[str] = ()) -> Iterator[Entry]:
    """Everything below ``root`` but directories, by name; links are not followed.

    Directories that cannot be read are passed over. When a part of ``below`` is a link, that link
    is all that is yielded.

    Args:
        root: the directory that paths are relative to.
        below: start at this path below ``root``; a file there is yielded itself.
        skip: relative paths to leave out, with all that is below them.
    """
    link = _first_link(root, below)
    if link is not None:
        yield link
        return
    pending = [below]
    while pending:
        here = pending.pop()
        try:
            with os.scandir(os.path.join(root, here) if here else root) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except NotADirectoryError:
            status = _lstat(os.path.join(root, here))
            if status is not None:
                yield here, status
            continue
        except OSError:
            continue
        inner = []
        for entry in found:
            path = f"{here}/{entry.name}" if here else entry.name
            if path in skip:
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append(path)
                continue
            try:
                yield path, entry.stat(follow_symlinks=False)
            except OSError:
                continue
        pending.extend(reversed(inner))


def _first_link(root: str, below: str) -> Entry | None:
    end = -1
    while below and end != len(below):
        end = below.find("/", end + 1)
        end = len(below) if end < 0 else end
        status = _lstat(os.path.join(root, below[:end]))
        if status is not None and stat.S_ISLNK(status.st_mode):
            return below[:end], status
    return None


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
