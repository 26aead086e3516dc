"""What is in a directory, and what has changed there since."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

import xxhash

from pytest_agent_eval.execution.files import Entry, hash_file, walk

__all__ = [
    "CaseManifest",
    "Changes",
    "Manifest",
    "case_digest",
    "case_manifest",
    "changed_in",
    "changes",
    "is_unchanged",
]

_RACY_NS = 50_000_000
"""File systems stamp changes with a clock of a few milliseconds, so a file stamped this shortly
before the manifest may be edited afterwards without its stamp telling."""

CaseManifest = Mapping[str, tuple[int, int, int]]
"""Path -> size, mtime_ns and ctime_ns of each file of a case directory."""


class Manifest(NamedTuple):
    """A workspace before the agent starts.

    Attributes:
        files: relative path -> (size, mtime_ns, ctime_ns, inode, xxh3 of the content).
        taken_ns: when it was complete.
    """

    files: Mapping[str, tuple[int, int, int, int, int]]
    taken_ns: int

    @classmethod
    def take(cls, root: str, hashes: Mapping[str, int]) -> Manifest:
        """The manifest of files that were just copied, whose content is hashed already."""
        files = {}
        for path, digest in hashes.items():
            status = os.lstat(os.path.join(root, path))
            files[path] = (
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
                status.st_ino,
                digest,
            )
        return cls(files, time.time_ns())


class Changes(NamedTuple):
    """What a run changed in its workspace outside the output paths; relative paths.

    Attributes:
        changed: files that were edited, replaced or created, with their status.
        deleted: files that are gone.
    """

    changed: tuple[Entry, ...]
    deleted: tuple[str, ...]


def changes(root: str, before: Manifest, outputs: Collection[str]) -> Changes:
    """Compare a workspace with its manifest.

    A file whose size, mtime, ctime and inode are as before is unchanged: no program can set a
    ctime back. Otherwise its content decides.

    Args:
        root: the workspace.
        before: taken before the run.
        outputs: relative output paths, whose files are no edits.
    """
    changed = []
    missing = set(before.files)
    for path, status in walk(root, skip=outputs):
        missing.discard(path)
        if not is_unchanged(root, path, status, before):
            changed.append((path, status))
    missing = {path for path in missing if not _is_below(path, outputs)}
    return Changes(tuple(changed), tuple(sorted(missing)))


def is_unchanged(root: str, path: str, status: os.stat_result, before: Manifest) -> bool:
    """Whether a file that exists is what it was when the manifest was taken."""
    known = before.files.get(path)
    if known is None:
        return False
    return not _differs(os.path.join(root, path), status, known, before.taken_ns)


def _is_below(path: str, outputs: Collection[str]) -> bool:
    return any(path == output or path.startswith(f"{output}/") for output in outputs)


def _differs(
    path: str, status: os.stat_result, known: tuple[int, int, int, int, int], taken_ns: int
) -> bool:
    size, mtime, ctime, inode, digest = known
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        return True
    same = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino) == (mtime, ctime, inode)
    if same and taken_ns - ctime > _RACY_NS:
        return False
    try:
        return hash_file(path) != digest
    except OSError:
        return True


def case_manifest(directory: str) -> CaseManifest:
    """Taken before and after a run: a difference means that the dataset was changed.

    What pytest leaves where it is started (its cache) is no part of a case.
    """
    return {
        path: (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        for path, status in walk(directory, skip=(".pytest_cache", "__pycache__"))
    }


def changed_in(
    directory: str, before: CaseManifest, *, was_set_back: bool = False
) -> tuple[str, ...]:
    """Paths that were added, removed or written since ``before``.

    Args:
        directory: of the case, or of the dataset.
        before: taken before the run.
        was_set_back: what an agent did to it was taken back: only size and mtime are as they were.
    """
    after = case_manifest(directory)
    if after == before:
        return ()
    stamps = 2 if was_set_back else 3
    return tuple(
        path
        for path in sorted(before.keys() | after.keys())
        if before.get(path, ())[:stamps] != after.get(path, ())[:stamps]
    )


def case_digest(
    directory: str, files: CaseManifest, hashes: Mapping[str, int] | None = None
) -> str:
    """xxh3_128, as 32 hex digits, over names and contents of a case's files.

    Args:
        directory: of the case.
        files: its manifest; contents that are not known are read here.
        hashes: known ones: relative path -> xxh3 of the content.
    """
    digest = xxhash.xxh3_128()
    known = hashes or {}
    for path in sorted(files):
        try:
            content = known.get(path)
            if content is None:
                content = hash_file(os.path.join(directory, path))
        except OSError:  # a link, or unreadable: its name counts
            content = 0
        digest.update(os.fsencode(path) + b"\0%d\0" % content)
    return digest.hexdigest()
