"""What an agent left in its workspace, copied to where the trial is stored."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_agent_eval.execution.events import read_events
from pytest_agent_eval.execution.files import copy_file, read_file, walk
from pytest_agent_eval.execution.manifest import changes, is_unchanged
from pytest_agent_eval.execution.metrics import read_metrics
from pytest_agent_eval.execution.names import printable
from pytest_agent_eval.execution.workspace import OUTPUT, Workspace
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.results import Usage

__all__ = [
    "DEFAULT_LIMITS",
    "EVENTS_FILE",
    "FILES",
    "METRICS_FILE",
    "MODIFIED",
    "Collected",
    "Limits",
    "collect",
]

FILES = "files"
MODIFIED = "_modified"
METRICS_FILE = f"{OUTPUT}/metrics.json"
EVENTS_FILE = f"{OUTPUT}/events.jsonl"

_MAX_METRICS = 1024 * 1024
_MAX_EVENTS = 64 * 1024 * 1024
_MAX_NOTES = 20


class Limits(NamedTuple):
    """How much of a workspace is kept: bytes and number of files of one trial."""

    size: int
    files: int


_NO_METRICS: tuple[Usage, tuple[str, ...]] = (Usage(), ())

DEFAULT_LIMITS = Limits(1024 * 1024 * 1024, 20_000)


class Collected(NamedTuple):
    """What was found.

    Attributes:
        files: output files that the agent wrote, metrics and events not counted.
        modified: files it edited, created or deleted elsewhere in its workspace.
        usage: from ``output/metrics.json``.
        events: from ``output/events.jsonl``.
        notes: what was left out and why.
        stored: what was copied: path below ``files`` -> size in bytes of the original.
    """

    files: int = 0
    modified: int = 0
    usage: Usage = Usage()
    events: Sequence[dict[str, Any]] = ()
    notes: tuple[str, ...] = ()
    stored: Mapping[str, int] = MappingProxyType({})


def collect(
    workspace: Workspace,
    destination: str,
    outputs: Sequence[str],
    *,
    metrics: bool = True,
    events: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    secrets: Secrets = NO_SECRETS,
) -> Collected:
    """Copy output files and edits below ``destination/files``; links are never followed.

    The workspace stays as it is. In the copies, in their names (below the output paths), in usage,
    events and notes secrets are replaced.

    Args:
        workspace: after the run, with nothing running in it any more.
        destination: directory of the trial (absolute).
        outputs: each ``outputs[].path``.
        metrics: read the metrics file.
        events: read the events file.
        limits: of what is copied; beyond them files are left out, with a note.
        secrets: what nothing that is stored may hold.
    """
    root = workspace.directory
    if not _is_same(workspace):
        return Collected(modified=1, notes=("the agent deleted or replaced its workspace",))
    roots = _output_roots(outputs)
    names = _Names((*roots, *map(os.path.normpath, outputs)), secrets)
    collector = _Collector(root, os.path.join(destination, FILES), limits, names, secrets)
    written = 0
    seen = set()
    for below in roots:
        for path, status in walk(root, below=below):
            seen.add(path)
            copied = collector.copy(path, "", status)
            if copied and path not in (METRICS_FILE, EVENTS_FILE):
                written += not is_unchanged(root, path, status, workspace.manifest)
    found = changes(root, workspace.manifest, roots)
    modified = len(found.deleted) + sum(
        collector.copy(path, f"{MODIFIED}/", status) for path, status in found.changed
    )
    notes = collector.all_notes()
    if found.deleted:
        notes.append("the agent deleted " + _list(found.deleted))
    usage, usage_notes = (
        _metrics(root, secrets) if metrics and METRICS_FILE in seen else _NO_METRICS
    )
    event_list, event_notes = _events(root, secrets) if events and EVENTS_FILE in seen else ((), ())
    return Collected(
        files=written,
        modified=modified,
        usage=usage,
        events=tuple(event_list),
        notes=tuple(map(secrets.text, (*notes, *usage_notes, *event_notes))),
        stored=collector.stored,
    )


def _is_same(workspace: Workspace) -> bool:
    try:
        status = os.lstat(workspace.directory)
    except OSError:
        return False
    # A link that took its place may have been given the same inode.
    is_directory = stat.S_ISDIR(status.st_mode)
    return is_directory and (status.st_dev, status.st_ino) == workspace.identity


def _output_roots(outputs: Sequence[str]) -> list[str]:
    """``output`` and the output paths, none of them below another."""
    roots = [OUTPUT]
    for path in sorted({os.path.normpath(path) for path in outputs}):
        if not any(path == root or path.startswith(f"{root}/") for root in roots):
            roots.append(path)
    return roots


@dataclass
class _Collector:
    """Copies files of one workspace, within limits."""

    root: str
    target: str
    limits: Limits
    names: _Names
    secrets: Secrets
    notes: list[str] = field(default_factory=list)
    size: int = 0
    count: int = 0
    over: int = 0
    stored: dict[str, int] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)

    def copy(self, path: str, below: str, status: os.stat_result) -> bool:
        """Copy one file to its path with ``below`` in front; whether it is there now."""
        if not stat.S_ISREG(status.st_mode):
            self.notes.append(f"not collected: {printable(path)} is {_kind(status.st_mode)}")
            return False
        if self.size + status.st_size > self.limits.size or self.count >= self.limits.files:
            self.over += 1
            return False
        name = below + self.names.stored(path)
        target = os.path.join(self.target, name)
        try:
            self._make(os.path.dirname(target))
            copy_file(os.path.join(self.root, path), target, self.secrets)
        except OSError as error:
            self.notes.append(f"not collected: {printable(path)}: {error.strerror}")
            return False
        self.stored[name] = status.st_size
        self.size += status.st_size
        self.count += 1
        return True

    def _make(self, directory: str) -> None:
        """Make a directory below the target, and those above it: each is asked for once."""
        if directory in self._made:
            return
        if directory != self.target:
            self._make(os.path.dirname(directory))
        with contextlib.suppress(FileExistsError):
            try:
                os.mkdir(directory)
            except FileNotFoundError:
                os.makedirs(directory)
        self._made.add(directory)

    def all_notes(self) -> list[str]:
        notes = self.notes[:_MAX_NOTES]
        if len(self.notes) > _MAX_NOTES:
            notes.append(f"not collected: {len(self.notes) - _MAX_NOTES:,} more")
        if self.over:
            notes.append(
                f"not collected: {self.over:,} files beyond the limits of "
                f"{self.limits.size / 1024**2:,.0f} MiB and {self.limits.files:,} files a trial"
            )
        return notes


class _Names:
    """Under which path a file is stored: no secrets, and no two files under one.

    Args:
        declared: paths that the suite names, under which files are looked for: they stay.
        secrets: what no other part of a path may hold.
    """

    def __init__(self, declared: Sequence[str], secrets: Secrets) -> None:
        self._declared = sorted(set(declared), key=len, reverse=True)
        self._secrets = secrets
        self._given: set[str] = set()

    def stored(self, path: str) -> str:
        if not self._secrets:
            return path
        kept = next((name for name in self._declared if f"{path}/".startswith(f"{name}/")), "")
        clean = kept + self._secrets.file_name(path[len(kept) :])
        if clean == path and "***" not in path:
            return path
        number, unused = 1, clean
        stem, extension = os.path.splitext(clean)
        while unused in self._given:
            number += 1
            unused = f"{stem}-{number}{extension}"
        self._given.add(unused)
        return unused


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "no regular file"


def _list(paths: Sequence[str]) -> str:
    shown = ", ".join(printable(path) for path in paths[:5])
    return shown + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def _metrics(root: str, secrets: Secrets) -> tuple[Usage, tuple[str, ...]]:
    data, note = _small(root, METRICS_FILE, _MAX_METRICS)
    return (Usage(), note) if data is None else read_metrics(data, secrets)


def _events(root: str, secrets: Secrets) -> tuple[Sequence[dict[str, Any]], Sequence[str]]:
    data, note = _small(root, EVENTS_FILE, _MAX_EVENTS)
    return ([], note) if data is None else read_events(data, secrets=secrets)


def _small(root: str, path: str, limit: int) -> tuple[bytes | None, tuple[str, ...]]:
    """The content of a file that may be missing; None and a note when it is unusable."""
    try:
        data = read_file(os.path.join(root, path), limit + 1)
    except FileNotFoundError:
        return None, ()
    except OSError as error:
        return None, (f"{path} cannot be read and was ignored: {error.strerror}",)
    if len(data) > limit:
        return None, (f"{path} is larger than {limit // 1024**2} MiB and was ignored",)
    return data, ()
