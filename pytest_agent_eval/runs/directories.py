"""Making, naming and clearing the directories of a run."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xxhash

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.names import new_run_name

__all__ = [
    "failure",
    "new_directory",
    "part",
    "point_latest",
    "prepare",
    "remove_tree",
    "replace_file",
    "reserved",
]

_NAMES_TO_TRY = 100
_LONGEST = 255
"""Bytes of a file name on the usual file systems."""


def failure(path: str | Path, error: OSError) -> RunDirectoryError:
    """What a person is told when something cannot be stored."""
    reason = error.strerror or type(error).__name__
    if isinstance(error, NotADirectoryError | FileExistsError):
        blocker = _file_in_the_way(path)
        reason += f": {blocker} is a file" if blocker else ""
    return RunDirectoryError(f"{path}: results cannot be stored here: {reason}")


def _file_in_the_way(path: str | Path) -> str:
    for place in (Path(path), *Path(path).parents):
        if os.path.lexists(place):
            return "" if place.is_dir() else str(place)
    return ""


def part(name: str) -> str:
    """A name as one part of a path; a long one is cut and gets a digest of the whole.

    Raises:
        RunDirectoryError: it cannot name a directory.
    """
    if name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
        raise RunDirectoryError(f"{name!r} cannot name a directory of stored results")
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        raise RunDirectoryError(f"{name!r} cannot name a directory of stored results") from None
    if len(encoded) <= _LONGEST:
        return name
    mark = f"~{xxhash.xxh3_64_hexdigest(encoded)}"
    return encoded[: _LONGEST - len(mark)].decode("utf-8", "ignore") + mark


def prepare(directory: Path) -> None:
    """Make the directory of runs, ignored by git if it is ours."""
    ours = directory.parent if directory.parent.name == ".agent-eval" else directory
    fresh = not ours.exists()
    directory.mkdir(parents=True, exist_ok=True)
    # A directory that was there may hold files that belong into version control.
    if fresh or ours.name == ".agent-eval":
        ignore = ours / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")


def new_directory(directory: Path) -> Path:
    """Make a run directory of a new name."""
    for _ in range(_NAMES_TO_TRY):
        path = directory / new_run_name()
        try:
            path.mkdir()
        except FileExistsError:
            continue
        (path / "cases").mkdir()
        return path
    raise FileExistsError(None, "every name for a new run is taken", str(directory))


def reserved(path: Path) -> Path:
    """Make a run directory of an agreed name, or use it."""
    (path / "cases").mkdir(parents=True, exist_ok=True)
    return path


def point_latest(directory: Path, name: str) -> None:
    """Best effort: some file systems have no symlinks, and a reader does without."""
    link = directory / f".latest-{secrets.token_hex(4)}"
    try:
        link.symlink_to(name, target_is_directory=True)
    except (OSError, NotImplementedError):
        return
    try:
        os.replace(link, directory / "latest")
    except OSError:
        link.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old content or the new one, never a part."""
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def remove_tree(path: str) -> None:
    """Remove a directory with all it holds, or a link without following it.

    Raises:
        OSError: something in it cannot be removed, also after its directory was made writable.
    """
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
    elif sys.version_info >= (3, 12):
        shutil.rmtree(path, onexc=_again)
    else:
        shutil.rmtree(path, onerror=_again)


def _again(function: Callable[..., Any], path: str, _: Any) -> None:
    """An agent may leave directories that nobody may write; they are the user's all the same."""
    for place in (os.path.dirname(path), path):
        if os.path.isdir(place) and not os.path.islink(place):
            os.chmod(place, stat.S_IRWXU)
    if function is os.rmdir or function is os.unlink:
        function(path)
    elif os.path.isdir(path):  # listing or opening it failed, so nothing below is gone yet
        shutil.rmtree(path)
