"""The directory in which a judging agent works: copies of what the judged agent left.

Nothing in it can speak for the judge. The directory of the verdict begins empty, whatever the
judged agent called its files, and files that coding agents take orders from have another name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_agent_eval.judges.material import fenced

__all__ = ["CONTEXT", "OUTPUT", "QUESTION", "Limits", "Staged", "remove_tree", "stage"]

OUTPUT = "output"
"""Where the verdict is written."""
CONTEXT = ".context"
"""Where the author's files are."""
_OWN = ".judge"
QUESTION = f"{_OWN}/question.md"
"""Where the whole question is."""

_OURS = frozenset({OUTPUT, CONTEXT, _OWN})
"""Names that nothing of the judged agent has at the top, in no letter case."""

_OBEYED = frozenset(
    {".agents", ".claude", ".codex", ".cursor", ".gemini", ".git", ".vscode"}
    | {".cursorrules", ".mcp.json", ".windsurfrules", "copilot-instructions.md"}
    | {"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md"}
)
"""Names of what coding agents read as orders, or start programs from; in lower case."""

_AWAY = "_"
"""Put before such a name."""

_LISTED = 500
"""Files that a question lists."""


class Limits(NamedTuple):
    """How much is copied: bytes of one file, and of all."""

    file: int = 100 * 1024 * 1024
    total: int = 500 * 1024 * 1024


_USUAL = Limits()


@dataclass(slots=True)
class Staged:
    """What was put into a workspace.

    Attributes:
        files: path in the workspace -> size in bytes, of what the judged agent left.
        moved: path in the record -> path in the workspace, where it is another one.
        left_out: path in the record -> why it is not there.
        context: paths in the workspace of the author's files and directories.
    """

    files: dict[str, int] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    context: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """For the question: what there is, with all names of the judged agent as data."""
        parts = ["Your working directory holds these files that the agent left:"]
        parts.append(fenced("\n".join(_listed(self._sizes())) or "(no files)"))
        if self.moved:
            parts.append("Some have another name here than the agent gave them:")
            pairs = (f"{old} -> {new}" for old, new in self._renamed().items())
            parts.append(fenced("\n".join(_listed(pairs))))
        if self.left_out:
            parts.append("Not here, though the agent left them:")
            lines = (f"{_line(path)} ({why})" for path, why in self.left_out.items())
            parts.append(fenced("\n".join(_listed(lines))))
        if self.context:
            parts.append("Files of the author of this evaluation, for reference:\n")
            parts.append("\n".join(self.context) + "\n")
        return "\n".join(parts)

    def _sizes(self) -> Iterator[str]:
        return (f"{_line(path)} ({size:,} bytes)" for path, size in self.files.items())

    def _renamed(self) -> dict[str, str]:
        """The nearest directory, or file, whose name was changed -> its name here."""
        found: dict[str, str] = {}
        for old, new in self.moved.items():
            before, after = old.split("/"), new.split("/")
            pairs = list(zip(before, after, strict=True))
            last = max(at for at, (was, now) in enumerate(pairs) if was != now)
            end = "/" if last + 1 < len(before) else ""
            old_name = "/".join(before[: last + 1]) + end
            found[_line(old_name)] = _line("/".join(after[: last + 1]) + end)
        return found


def stage(
    workspace: Path,
    files: Mapping[str, Any],
    *,
    inputs: Sequence[str] = (),
    context: Sequence[Path] = (),
    limits: Limits = _USUAL,
) -> Staged:
    """Fill a new workspace.

    Args:
        workspace: an existing, empty directory.
        files: ``outputs["files"]`` of a record: path -> text, or a mapping for a binary file. If
            it has methods ``size`` and ``copy_to``, files are copied as they are stored.
        inputs: files and directories of the record that are wanted; all where there is none.
        context: files and directories of the author.
        limits: of what is copied.

    Raises:
        OSError: something cannot be written, or a file of the author's not be read.
    """
    (workspace / OUTPUT).mkdir()
    staged = Staged()
    left = limits.total
    for path in sorted(files):
        if not _is_wanted(path, inputs):
            continue
        place = _place_of(path)
        if place is None:
            staged.left_out[path] = "no usable name"
            continue
        size = _size(files, path)
        if size is None:
            staged.left_out[path] = "its content is not stored"
        elif size > min(left, limits.file):
            staged.left_out[path] = f"too large: {size:,} bytes"
        elif not _copy(files, path, workspace / place):
            staged.left_out[path] = "it cannot be read, or another file has its name here"
        else:
            left -= size
            staged.files[place] = size
            if place != path:
                staged.moved[path] = place
    for source in context:
        target = workspace / CONTEXT / source.name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore_dangling_symlinks=True)
        else:
            shutil.copyfile(source, target)
        staged.context.append(f"{CONTEXT}/{source.name}{'/' if source.is_dir() else ''}")
    (workspace / _OWN).mkdir()
    return staged


def remove_tree(directory: str) -> None:
    """Remove a directory with all that is in it, also where an agent made it read-only.

    What cannot be removed stays; no link is followed.
    """
    shutil.rmtree(directory, ignore_errors=True)
    if not os.path.lexists(directory):
        return
    with contextlib.suppress(OSError):
        os.chmod(directory, 0o700)
    for place, names, _ in os.walk(directory):
        for name in names:
            inner = os.path.join(place, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)
    shutil.rmtree(directory, ignore_errors=True)


def _is_wanted(path: str, inputs: Sequence[str]) -> bool:
    if not inputs:
        return True
    wanted = (os.path.normpath(item) for item in inputs)
    return any(item == "." or path == item or path.startswith(f"{item}/") for item in wanted)


def _place_of(path: str) -> str | None:
    """Where a file of the record is staged, relative to the workspace; None: nowhere."""
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        return None
    found = [_AWAY + part if part.casefold() in _OBEYED else part for part in parts]
    if found[0].casefold() in _OURS:
        found[0] = _AWAY + found[0]
    return "/".join(found)


def _size(files: Mapping[str, Any], path: str) -> int | None:
    size = getattr(files, "size", None)
    if size is not None:
        return int(size(path))
    content = files[path]
    return len(_encoded(content)) if isinstance(content, str) else None


def _copy(files: Mapping[str, Any], path: str, target: Path) -> bool:
    """Copy a file to where none is; False where it cannot be read, or one is there."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_to = getattr(files, "copy_to", None)
        if copy_to is not None:
            copy_to(path, str(target))
        else:
            with open(target, "xb") as stream:
                stream.write(_encoded(files[path]))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return False
    return True


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _line(name: str) -> str:
    """A name on one line, whatever is in it."""
    return name.encode("utf-8", "replace").decode().replace("\\", "\\\\").replace("\n", "\\n")


def _listed(lines: Iterator[str]) -> list[str]:
    found = list(lines)
    more = len(found) - _LISTED
    return [*found[:_LISTED], f"... and {more} more"] if more > 0 else found
