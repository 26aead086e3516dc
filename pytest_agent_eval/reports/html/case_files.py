"""Where a case's own files are: its input is not stored with a run, as it is in the dataset."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xxhash

from pytest_agent_eval.documents import parse_yaml, read_document
from pytest_agent_eval.errors import DocumentError
from pytest_agent_eval.evidence.summary import SuiteInfo
from pytest_agent_eval.results import TrialResult

__all__ = ["INPUTS", "CaseFiles", "expected_output", "inside"]

INPUTS = ("input.yaml", "input.yml", "input.json")
_EXPECTED = "expected_output"
_MOST = 1024 * 1024


class CaseFiles:
    """The directories of one suite's cases, looked for from where the run is stored upwards.

    A report may be made long after the run, or elsewhere: what cannot be found is left out.

    Args:
        info: the suite.
        run: the run's directory, or None.
    """

    def __init__(self, info: SuiteInfo, run: Path | None) -> None:
        suite = _suite_file(info, run)
        self.suite_directory = suite.parent if suite else None
        self._dataset = _dataset(suite) if suite else None

    def directory(self, result: TrialResult) -> str | None:
        """The directory of a trial's case (absolute), or None."""
        if self._dataset is None or result.case != os.path.basename(result.case):
            return None
        path = os.path.join(self._dataset, result.case)
        return path if os.path.isdir(path) else None


def _suite_file(info: SuiteInfo, run: Path | None) -> Path | None:
    found = [path for root in _roots(run) if (path := root / info.key).is_file()]
    same = (path for path in found if xxhash.xxh3_128_hexdigest(path.read_bytes()) == info.digest)
    try:
        return next(same, found[0] if found else None)
    except OSError:
        return None


def _roots(run: Path | None) -> Iterator[Path]:
    if run is not None:
        yield from run.parents
    yield Path.cwd()


def _dataset(suite: Path) -> str | None:
    try:
        data = read_document(suite)
        path = data["dataset"]["path"]
    except (DocumentError, KeyError, TypeError):
        return None
    return os.path.join(suite.parent, path) if isinstance(path, str) else None


def expected_output(directory: str) -> str | None:
    """``annotations.expected_output`` as text: that of the file that it names, else what it says;
    None where there is none.
    """
    try:
        with open(os.path.join(directory, "annotations.yaml"), "rb") as stream:
            data = stream.read(_MOST)
        if _EXPECTED.encode() not in data:
            return None
        value: Any = parse_yaml(data.decode("utf-8")).data[_EXPECTED]
    except (OSError, ValueError, KeyError, TypeError, DocumentError):
        return None
    return _text(value, directory)


def _text(value: Any, directory: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    named = inside(directory, value) if len(value) < 256 and "\n" not in value else None
    if named is None:
        return value
    try:
        with open(named, "rb") as stream:
            return stream.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return value


def inside(directory: str, path: str) -> str | None:
    """The file at a relative path, if it is a file within the directory, links followed."""
    if "\0" in path or os.path.isabs(path):
        return None
    full = os.path.join(directory, path)
    try:
        if "/" not in path and stat.S_ISREG(os.lstat(full).st_mode):
            return full  # no link that could lead elsewhere
    except OSError:
        return None
    full = os.path.realpath(full)
    within = full.startswith(os.path.realpath(directory).rstrip(os.sep) + os.sep)
    return full if within and os.path.isfile(full) else None
