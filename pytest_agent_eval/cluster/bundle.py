"""Directories as bytes, because a worker of a cluster has none of ours."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator

from pytest_agent_eval.errors import RunnerError

__all__ = ["MAX_BUNDLE_BYTES", "pack", "suite_files", "unpack"]

MAX_BUNDLE_BYTES = 256 * 1024 * 1024

_LEFT_OUT = frozenset({"__pycache__", "node_modules", "venv"})


def suite_files(directory: str, dataset: str) -> Iterator[str]:
    """Files of a suite's directory that its agent may need, relative to it.

    Left out are the dataset, suites (they hold the judges), hidden files and directories, links,
    and what can be made again.
    """
    for place, directories, files in os.walk(directory):
        directories[:] = sorted(
            name
            for name in directories
            if not name.startswith(".")
            and name not in _LEFT_OUT
            and os.path.join(place, name) != dataset
            and not os.path.islink(os.path.join(place, name))
        )
        for name in sorted(files):
            path = os.path.join(place, name)
            is_suite = name == "eval.yaml" or name.endswith(".eval.yaml")
            if not (name.startswith(".") or is_suite or os.path.islink(path)):
                yield os.path.relpath(path, directory)


def pack(
    root: str,
    paths: Iterable[str],
    *,
    what: str,
    leave_out: Callable[[str], bool] | None = None,
) -> bytes:
    """Files and whole directories below ``root`` as one archive; links stay links.

    Args:
        root: absolute.
        paths: relative to it.
        what: said in errors.
        leave_out: told the relative path of each file.

    Raises:
        RunnerError: they cannot be read, or are more than ``MAX_BUNDLE_BYTES``.
    """
    size = 0

    def counted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal size
        if leave_out is not None and leave_out(member.name):
            return None
        size += member.size
        if size > MAX_BUNDLE_BYTES:
            limit = MAX_BUNDLE_BYTES // 1024**2
            raise RunnerError(
                f"{what}: more than {limit} MiB, too much to send to a cluster", lasting=True
            )
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    buffer = io.BytesIO()
    try:
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path in paths:
                archive.add(os.path.join(root, path), arcname=path, filter=counted)
    except OSError as error:
        raise RunnerError(f"{what} cannot be read: {error}") from None
    return buffer.getvalue()


def unpack(data: bytes, directory: str) -> None:
    """The inverse of :func:`pack`. Nothing is written outside ``directory``.

    Raises:
        OSError, tarfile.TarError: it cannot be written, or is damaged.
    """
    os.makedirs(directory, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        if hasattr(tarfile, "tar_filter"):
            archive.extractall(directory, filter="tar")
        else:  # a Python without the security fix: the archive is our own
            archive.extractall(directory)
