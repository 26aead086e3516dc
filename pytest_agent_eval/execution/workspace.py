"""The directory an agent works in: a copy of what the suite lists, without the answer key."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import xxhash

from pytest_agent_eval.errors import CaseError, RunnerError
from pytest_agent_eval.execution.files import copy_file, hash_file, walk
from pytest_agent_eval.execution.manifest import Manifest, changes
from pytest_agent_eval.execution.names import printable
from pytest_agent_eval.suite.tool_handlers import HANDLERS

__all__ = [
    "OUTPUT",
    "Contents",
    "Workspace",
    "adopt",
    "create_shared_workspace",
    "create_workspace",
    "is_answer_key",
    "make_outputs",
    "snapshot",
    "workspace_name",
]

OUTPUT = "output"

_KEY_STEMS = ("annotations", "answers")


class Contents(NamedTuple):
    """What the workspaces of a suite hold, beside the input file.

    Attributes:
        files: ``dataset.workspace.files``: paths relative to the case's directory.
        outputs: each ``outputs[].path``.
        project_files: ``runner.settings.project_files``: relative to ``project_directory``.
        project_directory: the suite's directory (absolute).
        dataset_directory: never copied as a project file (absolute).
    """

    files: Sequence[str] = ()
    outputs: Sequence[str] = ()
    project_files: Sequence[str] = ()
    project_directory: str = ""
    dataset_directory: str = ""


class Workspace(NamedTuple):
    """A workspace that was made.

    Attributes:
        directory: absolute path.
        identity: device and inode of the directory, which tell whether it is still the same.
        manifest: of the files in it.
        notes: what was left out and why.
    """

    directory: str
    identity: tuple[int, int]
    manifest: Manifest
    notes: tuple[str, ...]


def workspace_name(run_id: str, suite: str, case: str, variant: str | None, trial: int) -> str:
    """16 hex digits that tell the agent nothing: a hash of all that identifies the trial."""
    key = "\0".join((run_id, suite, case, variant or "", str(trial)))
    return xxhash.xxh3_128_hexdigest(key.encode("utf-8", "surrogatepass"))[:16]


def is_answer_key(name: str) -> bool:
    """Whether a file directly in a case's directory holds answers: ``annotations.*``, ``answers.*``
    in any letter case.
    """
    stem, dot, _ = name.partition(".")
    return bool(dot) and stem.casefold() in _KEY_STEMS


def create_workspace(
    directory: str, *, case: str, case_directory: str, input_name: str, contents: Contents
) -> Workspace:
    """Make the workspace of one trial.

    Args:
        directory: the workspace (absolute); its parent exists, itself it does not.
        case: the case's name, for errors.
        case_directory: absolute.
        input_name: base name of the input file.
        contents: what else belongs into it.

    Raises:
        CaseError: the input file leaves the case's directory, or a listed entry is missing or
            would hand over the answer key.
        RunnerError: a project file cannot be copied.
        OSError: the disk is full, or not writable.
    """
    os.mkdir(directory)
    status = os.stat(directory)
    copier = _Copier(case, case_directory, directory)
    copier.copy_input(input_name)
    for entry in contents.files:
        copier.copy_entry(entry)
    if contents.project_files:
        _copy_project(copier, contents)
    make_outputs(directory, contents.outputs)
    return Workspace(
        directory,
        (status.st_dev, status.st_ino),
        Manifest.take(directory, copier.hashes),
        tuple(copier.notes),
    )


def create_shared_workspace(
    directory: str, files: Mapping[str, str], contents: Contents
) -> Workspace:
    """Make a workspace that belongs to no single case.

    Args:
        directory: the workspace (absolute); its parent exists, itself it does not.
        files: base name -> text of the files that are put into it.
        contents: its project files and output paths; files of cases are not copied.

    Raises:
        RunnerError: a project file cannot be copied.
        OSError: the disk is full, or not writable.
    """
    os.mkdir(directory)
    status = os.stat(directory)
    for name, text in files.items():
        with open(os.path.join(directory, name), "x", encoding="utf-8") as stream:
            stream.write(text)
    copier = _Copier("batch", contents.dataset_directory, directory)
    if contents.project_files:
        _copy_project(copier, contents)
    make_outputs(directory, contents.outputs)
    return Workspace(
        directory, (status.st_dev, status.st_ino), snapshot(directory), tuple(copier.notes)
    )


def make_outputs(directory: str, outputs: Sequence[str]) -> None:
    """Make ``output`` and the directories of the output paths, where they do not exist."""
    for output in dict.fromkeys((OUTPUT, *outputs)):
        # "reports/summary.md" names a file the agent is to write, "reports" a directory.
        wanted = os.path.dirname(output) if os.path.splitext(output)[1] else output
        if wanted:
            path = os.path.join(directory, wanted)
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                try:
                    os.mkdir(path)
                except FileNotFoundError:
                    os.makedirs(path, exist_ok=True)


def snapshot(directory: str) -> Manifest:
    """The manifest of a directory as it is now. Files that cannot be read are left out."""
    hashes = {}
    for path, status in walk(directory):
        if stat.S_ISREG(status.st_mode):
            with contextlib.suppress(OSError):
                hashes[path] = hash_file(os.path.join(directory, path))
    return Manifest.take(directory, hashes)


def adopt(workspace: Workspace, since: Manifest) -> Workspace:
    """The workspace with what has changed in it since then taken as given, not as the agent's.

    Args:
        workspace: in which somebody else than the agent has worked.
        since: its :func:`snapshot` before that.
    """
    found = changes(workspace.directory, since, ())
    files = dict(workspace.manifest.files)
    changed = [path for path, status in found.changed if stat.S_ISREG(status.st_mode)]
    hashes = {}
    for path in changed:
        with contextlib.suppress(OSError):
            hashes[path] = hash_file(os.path.join(workspace.directory, path))
    taken = Manifest.take(workspace.directory, hashes)
    files.update(taken.files)
    for path in found.deleted:
        files.pop(path, None)
    return workspace._replace(manifest=Manifest(files, taken.taken_ns))


@dataclass
class _Copier:
    """Copies from one case's directory into one workspace."""

    case: str
    source: str
    target: str
    hashes: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _made: set[str] = field(default_factory=set)
    _keys: set[tuple[int, int]] | None = None

    def copy_input(self, name: str) -> None:
        path = os.path.join(self.source, name)
        if os.path.islink(path):
            resolved = os.path.realpath(path)
            home = os.path.realpath(self.source)
            if os.path.dirname(resolved) != home and not resolved.startswith(home + os.sep):
                raise CaseError(self.case, f"{name} is a link that leaves the case's directory")
            if is_answer_key(os.path.basename(resolved)):
                raise CaseError(self.case, f"{name} is a link to the answer key")
            path = resolved
        try:
            self.hashes[name] = copy_file(path, os.path.join(self.target, name))
        except FileNotFoundError:
            raise CaseError(self.case, f"no {name}") from None
        except OSError as error:
            raise CaseError(self.case, f"{name} cannot be read: {error.strerror}") from None

    def copy_entry(self, entry: str) -> None:
        """One entry of ``workspace.files``: a file at its path, a directory with all in it."""
        path = os.path.normpath(entry)
        parts = path.split(os.sep)
        if os.path.isabs(entry) or path == os.curdir or os.pardir in parts:
            raise CaseError(self.case, f"workspace.files lists {entry!r}: not inside the case")
        if len(parts) == 1 and is_answer_key(path):
            raise CaseError(
                self.case, f"workspace.files lists {entry!r}: this hands the agent the answer key"
            )
        if not os.path.lexists(os.path.join(self.source, path)):
            raise CaseError(self.case, self._missing(entry))
        self.copy_below(self.source, path)

    def copy_below(self, root: str, below: str, *, outside: str = "", but: str = "") -> None:
        """A file or a directory at a relative path, but nothing that is below ``outside``, nor the
        file at the relative path ``but``.
        """
        linked = False
        for path, status in walk(root, below=below):
            full = os.path.join(root, path)
            if path == but or (outside and f"{full}/".startswith(f"{outside}/")):
                continue
            linked = linked or below == path or below.startswith(f"{path}/")
            self._copy(path, status, full)
        if below and not linked and os.path.isdir(os.path.join(root, below)):
            self._make(below)  # also an empty one

    def _copy(self, path: str, status: os.stat_result, full: str) -> None:
        if path in self.hashes:
            return
        if not stat.S_ISREG(status.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no regular file"
            self._note(path, kind)
            return
        if status.st_nlink > 1 and (status.st_dev, status.st_ino) in self._answer_files():
            self._note(path, "the answer key by another name")
            return
        parent = os.path.dirname(path)
        if parent:
            self._make(parent)
        try:
            self.hashes[path] = copy_file(full, os.path.join(self.target, path))
        except OSError as error:
            raise CaseError(
                self.case, f"{printable(path)} cannot be copied: {error.strerror}"
            ) from None

    def _note(self, path: str, what: str) -> None:
        note = f"not copied into the workspace: {printable(path)} is {what}"
        if note not in self.notes:
            self.notes.append(note)

    def _make(self, path: str) -> None:
        if path not in self._made:
            os.makedirs(os.path.join(self.target, path), exist_ok=True)
            self._made.add(path)

    def _answer_files(self) -> set[tuple[int, int]]:
        if self._keys is None:
            self._keys = set(_identities(self.source))
        return self._keys

    def _missing(self, entry: str) -> str:
        names = sorted(
            name
            for name in os.listdir(self.source)
            if not name.startswith(".") and not is_answer_key(name)
        )
        there = ", ".join(printable(name) for name in names[:8])
        return f"workspace.files lists {entry!r}, which this case does not have; it has {there}"


def _identities(directory: str) -> Iterator[tuple[int, int]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if is_answer_key(entry.name):
                status = entry.stat()
                yield status.st_dev, status.st_ino


def _copy_project(copier: _Copier, contents: Contents) -> None:
    root, dataset = contents.project_directory, os.path.normpath(contents.dataset_directory)
    for entry in contents.project_files:
        where = f"runner.settings.project_files lists {entry!r}"
        path = os.path.normpath(entry)
        if os.path.isabs(entry) or os.pardir in path.split(os.sep):
            raise RunnerError(f"{where}; expected a path below the suite's directory", lasting=True)
        if not os.path.lexists(os.path.join(root, path)):
            raise RunnerError(f"{where}, which does not exist in {root}", lasting=True)
        if path == HANDLERS:
            raise RunnerError(f"{where}: this hands the agent the answers", lasting=True)
        copier.copy_below(root, "" if path == os.curdir else path, outside=dataset, but=HANDLERS)
