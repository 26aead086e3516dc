"""``workspace_mode: repo``: the agent works in the real checkout, which is set back afterwards.

The first rule is that nobody loses work. Before a trial all of the checkout is saved elsewhere,
also what git does not know or ignores, and git's own directory. A checkout that cannot be saved as
a whole is refused. What a trial leaves there is moved away, never deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.execution.collect import EVENTS_FILE, METRICS_FILE
from pytest_agent_eval.execution.files import copy_file, hash_file, walk
from pytest_agent_eval.execution.manifest import Manifest
from pytest_agent_eval.execution.names import printable
from pytest_agent_eval.execution.saved_tree import (
    LIMITS,
    Restored,
    SavedTree,
    Tree,
    TreeLimits,
    scan,
)
from pytest_agent_eval.execution.workspace import OUTPUT, Workspace
from pytest_agent_eval.runners.process import run_process
from pytest_agent_eval.runs.lock import wait_for_lock

__all__ = ["Checkout", "Left", "Stay", "checkout_directory", "take_turn"]

GIT = ".git"

_GIT_TIMEOUT_S = 60.0
_GIT_ARGUMENTS = 500
_CHECK_IGNORE = r'printf "%s\0" "$@" | git check-ignore -z --stdin'
"""Names may hold line breaks, and only from its input does git take names that end in NUL."""

_LEFT_OUT = frozenset({GIT, "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
"""Names of directories that no one means when they ask what an agent has changed."""


def checkout_directory(suite_directory: str | Path, rootdir: str | Path) -> str:
    """The top of the git checkout that holds the suite; the root directory where there is none.

    Raises:
        RunnerError: an agent must not work there, because it could not be set back.
    """
    root = os.path.realpath(rootdir)
    here = os.path.realpath(suite_directory)
    while True:
        if os.path.lexists(os.path.join(here, GIT)):
            root = here
            break
        parent = os.path.dirname(here)
        if parent == here:
            break
        here = parent
    if root in (os.sep, os.path.realpath(os.path.expanduser("~"))):
        raise RunnerError(
            f"workspace_mode repo: {root} would be the working directory; an agent works in the "
            "checkout of one project, so put the project under git, or start pytest in it",
            lasting=True,
        )
    if os.path.lexists(os.path.join(root, GIT)) and not _is_directory(os.path.join(root, GIT)):
        raise RunnerError(
            f"workspace_mode repo: {root} is a linked worktree or a submodule, whose commits are "
            "kept elsewhere and could not be taken back; use a clone of the repository",
            lasting=True,
        )
    return root


def take_turn(root: str, cancelled: threading.Event, *, cache: str = "") -> int:
    """Wait until no other trial of any session on this machine is in a checkout.

    Args:
        root: the top of the checkout (absolute).
        cancelled: ends waiting when set.
        cache: as of :class:`Checkout`.

    Returns:
        A file descriptor: the turn ends when it is closed, at the latest with the process.

    Raises:
        RunnerError: cancelled, or there is no place to wait at.
    """
    store = _store(root, cache)
    try:
        os.makedirs(store, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(store, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RunnerError(f"{store} cannot be written: {error.strerror}") from None
    try:
        if not wait_for_lock(lock, cancelled):
            raise RunnerError("cancelled before the checkout was free")
    except BaseException:
        os.close(lock)
        raise
    return lock


class Checkout:
    """A checkout in which one trial works at a time; see :func:`take_turn`.

    Args:
        root: its top (absolute), as :func:`checkout_directory` gives it.
        ours: what this program writes while agents work, such as the directory of runs and of
            workspaces (absolute); left alone where it is inside of the checkout.
        unprotected: paths relative to the top that may be lost: ``runner.settings.unprotected``.
        cache: where it is saved; the user's cache directory if empty. It outlives the session,
            so that nothing is lost when the session is killed.
        limits: of what is saved.

    Raises:
        RunnerError: a path that cannot be left alone, or a cache inside of the checkout.
    """

    def __init__(
        self,
        root: str,
        *,
        ours: Sequence[str] = (),
        unprotected: Any = (),
        cache: str = "",
        limits: TreeLimits = LIMITS,
    ) -> None:
        self.root = root
        self._store = _store(root, cache)
        self._busy = os.path.join(self._store, "busy.json")
        self._excluded = frozenset({*_inside(root, ours), *_unprotected(unprotected)})
        self._tree = SavedTree(self._store, root, self._excluded, limits)

    def enter(
        self,
        staged: Workspace,
        *,
        outputs: Sequence[str],
        trial: str,
    ) -> Stay:
        """Save the checkout and make it ready for a trial, whose turn it is.

        Args:
            staged: an ordinary workspace of the trial that holds the input file. The input is
                copied from there, and what the trial leaves is put there.
            outputs: each ``outputs[].path``.
            trial: where the trial is stored, for messages.

        Raises:
            RunnerError: the checkout cannot be saved; nothing in it was changed.
            OSError: the copy cannot be written; nothing in the checkout was changed.
        """
        self._refuse_unfinished()
        os.makedirs(self._store, mode=0o700, exist_ok=True)
        before = self._tree.save()
        _write_json(
            self._busy,
            {"checkout": self.root, "trial": trial, "pid": os.getpid(), "since": _now()},
        )
        stay = Stay(self, staged, before, tuple(outputs))
        try:
            stay.prepare()
        except BaseException:
            stay.set_back()
            raise
        return stay

    def _refuse_unfinished(self) -> None:
        """An earlier trial was killed: what is there now may be the agent's work or the user's."""
        try:
            with open(self._busy, encoding="utf-8") as stream:
                busy = json.load(stream)
            since = f"the trial {busy['trial']} of {busy['since']}"
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError):
            since = "an earlier trial"
        raise RunnerError(
            f"the checkout was not set back after {since}\n"
            "The session was killed, or setting back failed. What is in the checkout now may be "
            "the agent's work or yours, so nothing was changed.\n"
            f"before the trial:  {self._tree.saved}\n"
            f"the checkout:      {self.root}\n"
            "Compare them with `diff -r --no-dereference`, copy back what you miss with `cp -a`, "
            "then remove\n"
            f"{self._busy}",
            lasting=True,
        )

    @property
    def saved(self) -> str:
        """The directory in which it is saved."""
        return self._tree.saved

    def finish(self) -> None:
        """The checkout is what it was before."""
        os.unlink(self._busy)

    def scan(self) -> Tree:
        """What is there now.

        Raises:
            RunnerError: a directory cannot be read.
        """
        return scan(self.root, self._excluded)

    def set_back(self, before: Tree, aside: str) -> Restored:
        """See :meth:`SavedTree.set_back`."""
        return self._tree.set_back(before, aside)


class Left(NamedTuple):
    """What a trial left in the checkout.

    Attributes:
        workspace: the trial's own, which now holds what the agent wrote and edited, at the paths
            it has in the checkout; unchanged files of the output paths are there too.
        deleted: files that the agent had deleted.
        notes: things worth telling.
    """

    workspace: Workspace
    deleted: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass
class Stay:
    """One trial's time in the checkout; made by :meth:`Checkout.enter`."""

    checkout: Checkout
    staged: Workspace
    before: Tree
    outputs: tuple[str, ...]
    _own_input: bool = False
    _given: Tree | None = None
    _ended: Tree | None = None

    @property
    def directory(self) -> str:
        """Where the agent works: the top of the checkout."""
        return self.checkout.root

    def prepare(self) -> None:
        """Put the input file there and make the output directories."""
        root = self.directory
        for name in self.staged.manifest.files:
            target = os.path.join(root, name)
            if os.path.lexists(target):
                self._own_input = True
            else:
                copy_file(os.path.join(self.staged.directory, name), target)
        for output in (OUTPUT, *self.outputs):
            wanted = os.path.dirname(output) if os.path.splitext(output)[1] else output
            full = os.path.join(root, wanted)
            if wanted and not os.path.lexists(full) and not _through_link(root, wanted):
                os.makedirs(full, exist_ok=True)

    def agent_begins(self) -> None:
        """What is there now is given to the agent: hooks have worked there before it."""
        self._given = self.checkout.scan()

    def agent_ended(self) -> None:
        """What will be changed from now on is not the agent's work, but that of hooks."""
        with contextlib.suppress(RunnerError):  # nobody can tell then, and all of it counts
            self._ended = self.checkout.scan()

    def set_back(self, *, still_running: bool = False) -> tuple[Restored, str]:
        """Make the checkout what it was; what had become different, and where that is now."""
        aside = f"{self.staged.directory}.checkout"
        os.makedirs(aside, exist_ok=True)
        restored = self.checkout.set_back(self.before, aside)
        if still_running:
            raise RunnerError(
                "the agent could not be ended and may still change the checkout\n"
                f"It was set back once. What was there before is in {self.checkout.saved}; what "
                f"the agent had left is in {aside}."
            )
        self.checkout.finish()
        return restored, aside

    def leave(self, *, still_running: bool = False) -> Left:
        """Set the checkout back, always to be called when the agent has ended.

        Args:
            still_running: the agent could not be ended. What it goes on to do nobody can take
                back, so no trial enters the checkout from now on.

        Raises:
            RunnerError: it could not be set back. No trial enters it from now on, and the message
                says where it is saved.
        """
        try:
            unchanged = self._unchanged_outputs()
            restored, aside = self.set_back(still_running=still_running)
        except OSError as error:
            raise RunnerError(
                f"the checkout could not be set back: {error}\n"
                f"what was there before is in {self.checkout.saved}"
            ) from None
        return self._left(restored, aside, unchanged)

    def _unchanged_outputs(self) -> dict[str, int]:
        """Copy files of the output paths that were there before; path -> xxh3 of the content."""
        found: dict[str, int] = {}
        for output in dict.fromkeys((OUTPUT, *map(os.path.normpath, self.outputs))):
            for path, status in walk(self.directory, below=output):
                known = self.before.get(path)
                if known is None or path in found or path in (METRICS_FILE, EVENTS_FILE):
                    continue
                stamps = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
                if stat.S_ISREG(known.mode) and stamps == known[2:5]:
                    target = os.path.join(self.staged.directory, path)
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    found[path] = copy_file(os.path.join(self.directory, path), target)
        return found

    def _left(self, restored: Restored, aside: str, unchanged: Mapping[str, int]) -> Left:
        staged, notes = self.staged, []
        paths = list(filter(self._is_agents, (*restored.changed, *restored.created)))
        gone = list(filter(self._is_agents, restored.deleted))
        ignored = _ignored(self.directory, [*paths, *gone], f"{aside}.git")
        for path in (*restored.changed, *restored.created):
            if self._is_input(path, os.path.join(aside, path)):
                os.unlink(os.path.join(aside, path))
        for path in paths:
            source = os.path.join(aside, path)
            if path not in ignored and os.path.lexists(source):
                _move(source, staged.directory, path)
        manifest = staged.manifest
        if unchanged:
            taken = Manifest.take(staged.directory, unchanged)
            manifest = Manifest({**manifest.files, **taken.files}, taken.taken_ns)
        if self._own_input:
            names = ", ".join(staged.manifest.files)
            notes.append(f"the checkout has a file {names} of its own: the case's was not copied")
        if any(path == GIT or path.startswith(f"{GIT}/") for path in paths):
            notes.append("what the agent did to git's own directory was taken back")
        deleted = tuple(path for path in gone if path not in ignored)
        if deleted:
            shown = ", ".join(map(printable, deleted[:5]))
            more = f" and {len(deleted) - 5} more" if len(deleted) > 5 else ""
            notes.append(f"the agent deleted {shown}{more}")
        if next(walk(aside), None) is not None:
            notes.append(f"what else was different in the checkout was moved to {aside}")
        else:
            shutil.rmtree(aside)
        return Left(staged._replace(manifest=manifest), deleted, tuple(notes))

    def _is_agents(self, path: str) -> bool:
        """Whether the agent did something to a path, and not only a hook."""
        given = self.before if self._given is None else self._given
        return self._ended is None or given.get(path) != self._ended.get(path)

    def _is_input(self, path: str, source: str) -> bool:
        known = self.staged.manifest.files.get(path)
        if known is None or os.path.islink(source) or not os.path.isfile(source):
            return False
        return not self._own_input and hash_file(source) == known[-1]


def _move(source: str, directory: str, path: str) -> None:
    """Move a file to a path below a directory, in place of whatever is in the way."""
    parts = path.split("/")
    for end in range(1, len(parts)):
        parent = os.path.join(directory, *parts[:end])
        if os.path.lexists(parent) and not _is_directory(parent):
            os.unlink(parent)
        os.makedirs(parent, exist_ok=True)
    target = os.path.join(directory, path)
    if _is_directory(target):
        shutil.rmtree(target)
    os.replace(source, target)


def _ignored(root: str, paths: Sequence[str], scratch: str) -> Collection[str]:
    """Those of the paths that are no part of the project: git's own, and what it ignores."""
    found = {path for path in paths if _LEFT_OUT & set(path.split("/"))}
    rest = [path for path in paths if path not in found]
    if not rest or not _is_directory(os.path.join(root, GIT)):
        return found
    for start in range(0, len(rest), _GIT_ARGUMENTS):
        found.update(_git_ignored(root, rest[start : start + _GIT_ARGUMENTS], scratch))
    return found


def _git_ignored(root: str, paths: Sequence[str], scratch: str) -> list[str]:
    try:
        outcome = run_process(
            # A name may begin with a colon, which means something to git.
            ["sh", "-c", _CHECK_IGNORE, "sh", *(f"./{path}" for path in paths)],
            cwd=root,
            env={name: text for name, text in os.environ.items() if not name.startswith("GIT_")},
            timeout=_GIT_TIMEOUT_S,
            stdout_path=scratch,
            stderr_path=f"{scratch}.err",
        )
    except RunnerError:  # no git: then all of it counts
        return []
    listed = b""
    if outcome.exit_code == 0 and os.path.exists(scratch):
        with open(scratch, "rb") as stream:
            listed = stream.read()
    for name in (scratch, f"{scratch}.err"):
        if os.path.exists(name):
            os.unlink(name)
    if outcome.exit_code not in (0, 1) and len(paths) > 1:
        # One of them is nothing git can be asked about, such as a path in a submodule.
        half = len(paths) // 2
        return [
            *_git_ignored(root, paths[:half], scratch),
            *_git_ignored(root, paths[half:], scratch),
        ]
    return [os.fsdecode(name).removeprefix("./") for name in listed.split(b"\0") if name]


def _inside(root: str, paths: Sequence[str]) -> list[str]:
    """Those of some absolute paths that are inside of the checkout, relative to it.

    Raises:
        RunnerError: one of them is the checkout itself.
    """
    found = []
    for path in map(os.path.realpath, filter(None, paths)):
        if path == root:
            raise RunnerError(
                f"workspace_mode repo: results or workspaces are kept right in {path}, where the "
                "agent works; name another directory with --agent-eval-runs or --basetemp",
                lasting=True,
            )
        if path.startswith(f"{root}/"):
            found.append(os.path.relpath(path, root))
    return found


def _unprotected(value: Any) -> list[str]:
    where = "runner.settings.unprotected"
    if not isinstance(value, list | tuple):
        raise RunnerError(
            f"{where} must be a list of paths below the checkout, not {value!r}", lasting=True
        )
    found = []
    for path in value:
        normal = os.path.normpath(path) if isinstance(path, str) and path.strip() else os.curdir
        parts = normal.split(os.sep)
        if os.path.isabs(normal) or normal == os.curdir or os.pardir in parts or parts[0] == GIT:
            raise RunnerError(
                f"{where} lists {path!r}; expected a path below the checkout, and not {GIT}",
                lasting=True,
            )
        found.append(normal)
    return found


def _store(root: str, cache: str) -> str:
    """Where a checkout is saved.

    Raises:
        RunnerError: that is inside of the checkout.
    """
    cache = os.path.realpath(cache or _user_cache())
    if f"{cache}/".startswith(f"{root}/"):
        raise RunnerError(
            f"workspace_mode repo: {cache}, where the checkout is saved, is inside of it; set "
            "XDG_CACHE_HOME to a directory elsewhere"
        )
    return os.path.join(
        cache, f"{os.path.basename(root)}-{xxhash.xxh3_64_hexdigest(os.fsencode(root))}"
    )


def _user_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "agent-eval", "checkouts")


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _through_link(root: str, path: str) -> bool:
    """Whether a part of the path is a link, and so may lead out of the checkout."""
    parts = path.split("/")
    return any(os.path.islink(os.path.join(root, *parts[: end + 1])) for end in range(len(parts)))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _write_json(path: str, value: Mapping[str, Any]) -> None:
    part = f"{path}.part"
    with open(part, "w", encoding="ascii") as stream:
        json.dump(value, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(part, path)
