"""A copy of all that is in a directory, from which the directory can be set back."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.execution.names import printable

__all__ = ["LIMITS", "Restored", "SavedTree", "Tree", "TreeLimits", "scan"]

_RACY_NS = 50_000_000
"""A file stamped this shortly before it was saved may be edited without its stamp telling."""

_TRIES = 3


class TreeLimits(NamedTuple):
    """How much is saved at most: bytes and number of files."""

    size: int
    files: int


LIMITS = TreeLimits(4 * 1024**3, 300_000)


class Seen(NamedTuple):
    """What one path is: its file type and permissions, its stamps, and where a link leads."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    target: str = ""

    @property
    def kind(self) -> int:
        """The file type, as ``stat.S_IFMT`` gives it."""
        return stat.S_IFMT(self.mode)

    def is_like(self, other: Seen) -> bool:
        """Whether two are the same as far as anybody who does not look inside can tell."""
        if self.kind != other.kind:
            return False
        if stat.S_ISLNK(self.mode):
            return self.target == other.target
        if stat.S_ISDIR(self.mode):
            return self.mode == other.mode
        if not stat.S_ISREG(self.mode):
            return True
        return (self.mode, self.size, self.mtime_ns) == (other.mode, other.size, other.mtime_ns)


Tree = Mapping[str, Seen]
"""Relative path -> what is there; also directories and links, a directory before what it holds."""


class Restored(NamedTuple):
    """What had become different; relative paths.

    Attributes:
        changed: files and links that had another content, or were something else.
        created: those that were not there.
        deleted: those that were gone.
    """

    changed: tuple[str, ...]
    created: tuple[str, ...]
    deleted: tuple[str, ...]


def scan(root: str, excluded: Collection[str] = ()) -> Tree:
    """Everything below a directory; links are not followed.

    Args:
        root: the directory (absolute).
        excluded: relative paths to leave out, with all that is below them.

    Raises:
        RunnerError: a directory cannot be read, so that nobody knows what is in it.
    """
    found: dict[str, Seen] = {}
    pending = [""]
    while pending:
        here = pending.pop()
        try:
            with os.scandir(os.path.join(root, here)) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            where = printable(os.path.join(root, here))
            raise RunnerError(f"{where} cannot be read: {error.strerror}") from None
        for name in names:
            path = f"{here}/{name}" if here else name
            if path in excluded:
                continue
            seen = _look(os.path.join(root, path))
            if seen is None:
                continue
            found[path] = seen
            if stat.S_ISDIR(seen.mode):
                pending.append(path)
    return found


class SavedTree:
    """A directory saved elsewhere, as it was at one moment.

    What has not changed since it was last saved is not copied again.

    Args:
        store: where it is kept (absolute). ``store/saved`` is a plain copy for people too.
        root: the directory (absolute).
        excluded: relative paths below it that are neither saved nor touched.
        limits: of what is saved.
    """

    def __init__(
        self, store: str, root: str, excluded: Collection[str], limits: TreeLimits = LIMITS
    ) -> None:
        self.saved = os.path.join(store, "saved")
        self._index = os.path.join(store, "index.json")
        self._root = root
        self._excluded = frozenset(excluded)
        self._limits = limits
        self._root_mode = 0o755

    def save(self) -> Tree:
        """Save the directory as it is now.

        Raises:
            RunnerError: it is too large, does not stop changing, or something in it cannot be
                read: it could not be set back.
            OSError: the copy cannot be written.
        """
        os.makedirs(self.saved, mode=0o700, exist_ok=True)
        self._root_mode = stat.S_IMODE(os.stat(self._root).st_mode)
        for _ in range(_TRIES):  # an editor may have git look at the checkout at this moment
            tree, now = scan(self._root, self._excluded), time.time_ns()
            self._check_size(tree)
            self._copy(tree)
            if _alike(scan(self._root, self._excluded), tree):
                self._write_index(tree, now)
                return tree
        raise RunnerError(f"the checkout does not stop changing: {self._root}; try again")

    def _copy(self, tree: Tree) -> None:
        known, saved_ns = self._read_index()
        self._clear(tree)
        for path, seen in tree.items():
            target = os.path.join(self.saved, path)
            if stat.S_ISDIR(seen.mode):
                os.makedirs(target, exist_ok=True)
            elif stat.S_ISLNK(seen.mode):
                _link(seen.target, target)
            elif stat.S_ISREG(seen.mode):
                kept = known.get(path) == seen and saved_ns - seen.ctime_ns > _RACY_NS
                if not (kept and _is_copy(target, seen)):
                    _save_file(os.path.join(self._root, path), target, seen)

    def set_back(self, before: Tree, aside: str) -> Restored:
        """Make the directory again what it was. What is taken away from it is moved, not deleted.

        Args:
            before: what :meth:`save` returned.
            aside: an existing directory for what had become different (absolute).

        Raises:
            RunnerError: it is not what it was; says which paths, and where they are saved.
            OSError: something cannot be read, moved or written.
        """
        restored = self._set_back(before, aside)
        for number in range(2, _TRIES + 1):
            wrong = self._wrong(before)
            if not wrong:
                break
            # Somebody wrote there meanwhile; what that was is kept apart from the agent's work.
            again = os.path.join(aside, f".again-{number}")
            os.makedirs(again, exist_ok=True)
            self._set_back(before, again)
        else:
            wrong = self._wrong(before)
        if wrong:
            shown = ", ".join(map(printable, wrong[:5]))
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            raise RunnerError(
                f"the checkout could not be set back: {shown}{more}\n"
                f"what was there before is in {self.saved}"
            )
        return restored

    def _set_back(self, before: Tree, aside: str) -> Restored:
        os.makedirs(self._root, exist_ok=True)
        _open_directories(self._root, self._excluded)
        after = scan(self._root, self._excluded)
        changed, created = [], []
        for path, seen in after.items():
            known = before.get(path)
            if known is None:
                if not stat.S_ISDIR(seen.mode):
                    created.append(path)
                    self._move_aside(path, aside)
            elif known.kind != seen.kind:
                changed.append(path)
                if not stat.S_ISDIR(seen.mode):
                    self._move_aside(path, aside)
            elif not stat.S_ISDIR(seen.mode) and self._differs(path, known, seen):
                changed.append(path)
                self._copy_aside(path, aside)
        self._remove_directories(before, after)
        deleted = [p for p, s in before.items() if p not in after and not stat.S_ISDIR(s.mode)]
        for path, seen in before.items():
            self._put_back(path, seen)
        self._close_directories(before)
        return Restored(tuple(changed), tuple(created), tuple(deleted))

    # -- saving ----------------------------------------------------------------------------

    def _check_size(self, tree: Tree) -> None:
        files = [seen for seen in tree.values() if stat.S_ISREG(seen.mode)]
        size = sum(seen.size for seen in files)
        if size > self._limits.size or len(files) > self._limits.files:
            raise RunnerError(
                f"the checkout is too large to be saved: {size / 1024**3:.1f} GiB in "
                f"{len(files):,} files\n"
                f"{self._root} may hold {self._limits.size / 1024**3:g} GiB and "
                f"{self._limits.files:,} files; list directories that may be lost, such as .venv, "
                "in runner.settings.unprotected"
            )

    def _clear(self, tree: Tree) -> None:
        """Remove from the copy what is no longer there, or is something else."""
        for path, seen in reversed(list(scan(self.saved).items())):
            known = tree.get(path)
            if known is not None and known.kind == seen.kind:
                continue
            full = os.path.join(self.saved, path)
            if stat.S_ISDIR(seen.mode):
                shutil.rmtree(full)
            elif os.path.lexists(full):
                os.unlink(full)

    def _read_index(self) -> tuple[Tree, int]:
        try:
            with open(self._index, encoding="ascii") as stream:
                data = json.load(stream)
            if data["root"] != self._root:
                return {}, 0
            return {path: Seen(*values) for path, values in data["tree"].items()}, data["saved_ns"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}, 0  # everything is copied then

    def _write_index(self, tree: Tree, now: int) -> None:
        part = self._index + ".part"
        with open(part, "w", encoding="ascii") as stream:
            json.dump({"root": self._root, "saved_ns": now, "tree": dict(tree)}, stream)
        os.replace(part, self._index)

    # -- setting back ----------------------------------------------------------------------

    def _differs(self, path: str, known: Seen, seen: Seen) -> bool:
        """Whether the content is another one; stamps and permissions are not content."""
        if stat.S_ISLNK(seen.mode):
            return known.target != seen.target
        if not stat.S_ISREG(seen.mode) or known == seen:
            return False
        if known.size != seen.size:
            return True
        full = os.path.join(self._root, path)
        if not os.access(full, os.R_OK):
            os.chmod(full, 0o600)
        return not filecmp.cmp(full, os.path.join(self.saved, path), shallow=False)

    def _move_aside(self, path: str, aside: str) -> None:
        target = os.path.join(aside, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        source = os.path.join(self._root, path)
        mode = os.lstat(source).st_mode
        if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            shutil.move(source, target)
        else:
            os.unlink(source)  # a socket or a pipe holds nothing

    def _copy_aside(self, path: str, aside: str) -> None:
        source, target = os.path.join(self._root, path), os.path.join(aside, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.islink(source) and not os.access(source, os.R_OK):
            os.chmod(source, 0o600)
        shutil.copy2(source, target, follow_symlinks=False)

    def _remove_directories(self, before: Tree, after: Tree) -> None:
        for path, seen in reversed(list(after.items())):
            known = before.get(path)
            if not stat.S_ISDIR(seen.mode) or (known is not None and stat.S_ISDIR(known.mode)):
                continue
            full = os.path.join(self._root, path)
            if any(f"{name}/".startswith(f"{path}/") for name in self._excluded):
                continue
            os.rmdir(full)

    def _put_back(self, path: str, seen: Seen) -> None:
        target, source = os.path.join(self._root, path), os.path.join(self.saved, path)
        there = _look(target)
        if stat.S_ISDIR(seen.mode):
            if there is None:
                os.mkdir(target)
            if there is None or there.mode != seen.mode:
                os.chmod(target, stat.S_IMODE(seen.mode) | stat.S_IRWXU)
        elif stat.S_ISLNK(seen.mode):
            if there is None or there.target != seen.target:
                _link(seen.target, target)
        elif stat.S_ISREG(seen.mode) and there != seen:
            same = there is not None and there.size == seen.size
            if not (same and filecmp.cmp(target, source, shallow=False)):
                _write_back(
                    source, target, in_place=there is not None and there.inode == seen.inode
                )
            os.chmod(target, stat.S_IMODE(seen.mode))
            os.utime(target, ns=(seen.mtime_ns, seen.mtime_ns))

    def _close_directories(self, before: Tree) -> None:
        """Give directories the permissions that they had, the innermost first."""
        for path, seen in reversed(list(before.items())):
            full = os.path.join(self._root, path)
            if stat.S_ISDIR(seen.mode) and os.lstat(full).st_mode != seen.mode:
                os.chmod(full, stat.S_IMODE(seen.mode))
        os.chmod(self._root, self._root_mode)

    def _wrong(self, before: Tree) -> list[str]:
        """Paths that are not what they were."""
        after = scan(self._root, self._excluded)
        return [path for path in _paths(before, after) if not _is_back(path, before, after)]


def _paths(before: Tree, after: Tree) -> Iterator[str]:
    yield from before
    yield from (path for path in after if path not in before)


def _is_back(path: str, before: Tree, after: Tree) -> bool:
    known, seen = before.get(path), after.get(path)
    if known is None:
        return False
    if seen is None:
        return not (
            stat.S_ISREG(known.mode) or stat.S_ISLNK(known.mode) or stat.S_ISDIR(known.mode)
        )
    return known.is_like(seen)


def _alike(first: Tree, second: Tree) -> bool:
    return first.keys() == second.keys() and all(
        second[path].is_like(seen) for path, seen in first.items()
    )


def _look(path: str) -> Seen | None:
    try:
        status = os.lstat(path)
        target = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:
        return None
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    stamps = (0, 0) if stat.S_ISDIR(status.st_mode) else (status.st_mtime_ns, status.st_ctime_ns)
    return Seen(status.st_mode, size, *stamps, status.st_ino, target)


def _link(target: str, path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)


def _is_copy(path: str, seen: Seen) -> bool:
    copy = _look(path)
    return copy is not None and (copy.size, copy.mtime_ns) == (seen.size, seen.mtime_ns)


def _save_file(source: str, target: str, seen: Seen) -> None:
    try:
        if os.path.lexists(target):
            os.unlink(target)
        shutil.copyfile(source, target, follow_symlinks=False)
    except PermissionError as error:
        where = printable(error.filename or source)
        raise RunnerError(f"{where} cannot be saved: {error.strerror}") from None
    except FileNotFoundError:
        return  # gone again, which is seen when the directory is looked at once more
    os.chmod(target, stat.S_IMODE(seen.mode) | stat.S_IRUSR | stat.S_IWUSR)
    os.utime(target, ns=(seen.mtime_ns, seen.mtime_ns))


def _write_back(source: str, target: str, *, in_place: bool) -> None:
    """In place where it is the same file: it may have other names, outside of the directory."""
    if in_place:
        os.chmod(target, 0o600)
        shutil.copyfile(source, target, follow_symlinks=False)
        return
    part = f"{target}.agent-eval-part"
    shutil.copyfile(source, part, follow_symlinks=False)
    os.replace(part, target)


def _open_directories(root: str, excluded: Collection[str]) -> None:
    """Let directories be read and written that an agent has closed."""
    pending: list[str] = [""]
    while pending:
        here = pending.pop()
        full = os.path.join(root, here) if here else root
        mode = os.lstat(full).st_mode
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(full, stat.S_IMODE(mode) | stat.S_IRWXU)
        pending.extend(_inner(full, here, excluded))


def _inner(full: str, here: str, excluded: Collection[str]) -> Sequence[str]:
    with os.scandir(full) as entries:
        paths = [
            f"{here}/{entry.name}" if here else entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False)
        ]
    return [path for path in paths if path not in excluded]
