"""The files of a trial as judges read them: a mapping that reads a file when it is looked at."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agent_eval.execution.files import copy_file, read_file, walk

__all__ = ["MAX_TEXT", "StoredFiles", "read_text", "text_of"]

MAX_TEXT = 4 * 1024 * 1024
"""A longer text is cut, with a marker."""

_LOOK = 8192
_BINARY_SHARE = 0.3
_KEEP = 1024 * 1024


class StoredFiles(Mapping[str, Any]):
    """Relative path -> text; a binary file gives ``{"_binary": True, "path", "name", "size"}``.

    Keys are relative to the workspace. A file of an output directory is found as well by its path
    relative to that directory, which is how most people write a judge: ``reply.md`` finds
    ``output/reply.md`` where no file ``reply.md`` is in the way.

    Args:
        directory: the files are below it (absolute); it need not exist.
        below: only those below this path, which is not part of the keys.
        roots: output directories, in the order in which they are searched.
        listing: path -> size of all files in ``directory``, where that is known.
    """

    def __init__(
        self,
        directory: str,
        *,
        below: str = "",
        roots: tuple[str, ...] = (),
        listing: Mapping[str, int] | None = None,
    ) -> None:
        self._directory = os.path.join(directory, below) if below else directory
        self._roots = roots
        self._known, self._below = listing, below
        self._sizes: dict[str, int] | None = None
        self._texts: dict[str, str] = {}

    def __getitem__(self, path: str) -> Any:
        sizes = self._listing()
        path = self._key(path) or path
        if path in self._texts:
            return self._texts[path]
        if path not in sizes:
            close = difflib.get_close_matches(str(path), sizes, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise KeyError(f"the agent left no file {path!r}{hint}")
        try:
            text = read_text(os.path.join(self._directory, path), sizes[path])
        except OSError as error:
            raise KeyError(f"{path!r} cannot be read: {error.strerror}") from None
        if text is None:
            name = path.rpartition("/")[2]
            return {"_binary": True, "path": path, "name": name, "size": sizes[path]}
        if len(text) <= _KEEP:
            self._texts[path] = text
        return text

    def __iter__(self) -> Iterator[str]:
        return iter(self._listing())

    def __len__(self) -> int:
        return len(self._listing())

    def __contains__(self, path: object) -> bool:
        return self._key(path) is not None

    def _key(self, path: object) -> str | None:
        """The key that a path means; None when there is no such file."""
        listing = self._listing()
        candidates = (path, *(f"{root}/{path}" for root in self._roots))
        return next((item for item in candidates if item in listing), None)

    def __repr__(self) -> str:
        return f"<{len(self)} files: {', '.join(list(self)[:8])}{', ...' if len(self) > 8 else ''}>"

    def size(self, path: str) -> int:
        """Bytes of a file as it was left; KeyError when there is no such file."""
        return self._listing()[self._key(path) or path]

    def copy_to(self, path: str, target: str) -> None:
        """Copy a file, as it is stored, to a path that does not exist.

        Raises:
            OSError: it cannot be read, or the target exists.
            KeyError: there is no such file.
        """
        self.size(path)
        copy_file(os.path.join(self._directory, self._key(path) or path), target)

    def first(self, path: str, *, besides: tuple[str, ...] = ()) -> str | None:
        """The file at a path, or the first one below it; None when there is none."""
        if path in self._listing() and path not in besides:
            return path
        start = f"{path}/"
        return next((name for name in self if name.startswith(start) and name not in besides), None)

    def _listing(self) -> dict[str, int]:
        if self._sizes is None:
            self._sizes = dict(sorted(self._found()))
        return self._sizes

    def _found(self) -> Iterator[tuple[str, int]]:
        if self._known is None:
            yield from ((path, status.st_size) for path, status in walk(self._directory))
            return
        start = self._below and f"{self._below}/"
        for path, size in self._known.items():
            if path.startswith(start):
                yield path[len(start) :], size


def read_text(path: str, size: int) -> str | None:
    """The text of a file, cut to 4 MiB; None when it is binary.

    Args:
        path: absolute.
        size: of the file in bytes, named in the marker.

    Raises:
        OSError: it cannot be read.
    """
    data = read_file(path, MAX_TEXT)
    if b"\0" in data[:_LOOK]:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        head = text[:_LOOK]
        if head.count("�") > len(head) * _BINARY_SHARE:
            return None
    if size > len(data):
        text += f"\n[... cut: {size - len(data):,} more bytes]"
    return text


def text_of(path: str) -> str:
    """All of a log file as text, invalid UTF-8 replaced; empty when there is no such file."""
    try:
        with open(path, "rb") as stream:
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
