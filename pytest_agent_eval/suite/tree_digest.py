"""A digest of directories that an agent is given: bounded, and fast for what plugins are."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

import xxhash

__all__ = ["MAX_BYTES", "MAX_FILES", "tree_digest"]

MAX_FILES = 5_000
MAX_BYTES = 64 * 1024 * 1024
"""What is read. Of files beyond it size and time of change tell: a change is not missed, and what
was only copied anew counts as changed."""

_PASSED_OVER = frozenset({".git", "__pycache__"})


def tree_digest(
    paths: Iterable[str],
    directory: str | os.PathLike[str],
    *,
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
) -> str:
    """xxh3_128 (hexadecimal) over names and contents of all files below the paths.

    Links count by where they lead; a path that is one itself is followed. What cannot be read, or
    does not exist, counts as such.

    Args:
        paths: of files or directories.
        directory: where relative ones begin.
        max_files: whose content is read.
        max_bytes: of them together.
    """
    digest = xxhash.xxh3_128()
    files, size = 0, 0
    for path in paths:
        digest.update(f"path {path}\n".encode("utf-8", "surrogateescape"))
        root = os.path.realpath(os.path.join(directory, os.path.expanduser(path)))
        for name, whole in _files(root):
            digest.update(f"file {name}\n".encode("utf-8", "surrogateescape"))
            try:
                status = os.lstat(whole)
                if stat.S_ISLNK(status.st_mode):
                    digest.update(os.fsencode(os.readlink(whole)))
                elif stat.S_ISREG(status.st_mode):
                    files, size = files + 1, size + status.st_size
                    if files > max_files or size > max_bytes:
                        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
                    else:
                        with open(whole, "rb") as stream:
                            digest.update(xxhash.xxh3_128_digest(stream.read()))
            except OSError as error:
                digest.update(f"error {error.errno}".encode())
    return digest.hexdigest()


def _files(root: str) -> Iterator[tuple[str, str]]:
    """Each file below a directory, or the file itself: its relative name and its path; sorted."""
    if not os.path.isdir(root):
        yield "", root
        return
    for place, directories, names in os.walk(root):
        links = [name for name in directories if os.path.islink(os.path.join(place, name))]
        directories[:] = sorted(name for name in directories if name not in _PASSED_OVER)
        for name in sorted([*names, *links]):
            whole = os.path.join(place, name)
            yield os.path.relpath(whole, root), whole
