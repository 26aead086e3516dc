"""Reading stored results back, whatever happened to the session that wrote them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.lines import SCHEMA_VERSION, TrialKey, decode_line, trial_key

__all__ = [
    "RESULTS",
    "StoredResults",
    "executions",
    "latest_run",
    "read_attempts",
    "read_header",
    "read_results",
    "read_run",
    "result_files",
]

RESULTS = "results.jsonl"
_TRIES = 100
_WORKER_FILE = re.compile(r"results-(.+)\.jsonl\Z")
_RUN_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}\Z")


class _Gone(RunDirectoryError):
    """A file that was listed is no longer there."""


@dataclass(frozen=True, slots=True)
class StoredResults:
    """What a run directory holds.

    Attributes:
        results: each trial once, its last attempt as it was judged last, in the order of their
            first lines.
        notes: what could not be read, one sentence each, naming file and line.
        superseded: earlier attempts of those trials, in order; what was judged again is one.
        attempts: how often each trial was carried out, for those of more than one attempt.
    """

    results: tuple[TrialResult, ...]
    notes: tuple[str, ...] = ()
    superseded: tuple[TrialResult, ...] = ()
    attempts: Mapping[TrialKey, int] = field(default_factory=dict)


def read_results(run_dir: Path) -> StoredResults:
    """The results of a run, also of one that was killed or is still going on.

    A torn last line is dropped with a note, as is any other line that is no stored trial. Of
    several attempts of one trial the last one counts.

    Raises:
        RunDirectoryError: there is no such directory, or a file in it cannot be read.
    """
    notes: list[str] = []
    lines = read_run(run_dir, notes)
    attempts = {key: executions(several) for key, several in lines.items()}
    return StoredResults(
        results=tuple(several[-1] for several in attempts.values()),
        notes=tuple(notes),
        superseded=tuple(one for several in attempts.values() for one in several[:-1]),
        attempts={key: len(several) for key, several in attempts.items() if len(several) > 1},
    )


def read_run(run_dir: Path, notes: list[str]) -> dict[TrialKey, list[TrialResult]]:
    """:func:`read_attempts` of a run that another process may be merging at this moment.

    Raises:
        RunDirectoryError: there is no such directory, or a file in it cannot be read.
    """
    for _ in range(_TRIES):
        found: list[str] = []
        with _unmerged(run_dir) as is_unmerged:
            try:
                attempts = read_attempts(result_files(run_dir), found)
            except _Gone:
                continue  # what was in that file is in results.jsonl now
            if is_unmerged():
                notes += found
                return attempts
    raise RunDirectoryError(f"{run_dir}: its files change faster than they can be read")


@contextmanager
def _unmerged(run_dir: Path) -> Iterator[Callable[[], bool]]:
    """Tells whether ``results.jsonl`` still is the file that it was: a merge replaces it."""
    path = run_dir / RESULTS
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield lambda: True  # reading it says why, or there never was one
        return
    try:
        # While it is open, no other file can have its number.
        yield lambda: _number(path) == os.fstat(fd).st_ino
    finally:
        os.close(fd)


def _number(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def read_attempts(files: Sequence[Path], notes: list[str]) -> dict[TrialKey, list[TrialResult]]:
    """What is stored of each trial, in order; ``notes`` gets what is torn.

    These are attempts, and attempts that were judged again: :func:`executions` tells them apart.

    Raises:
        RunDirectoryError: a file cannot be read.
    """
    found = [item for path in files for item in _read_file(path, notes)]
    if len(files) > 1:
        # Each file is in the order of time; a trial that two workers did is in two of them.
        found.sort(key=lambda attempts: attempts[-1].started)
    by_trial: dict[TrialKey, list[TrialResult]] = {}
    for attempts in found:
        several = by_trial.setdefault(trial_key(attempts[-1]), [])
        # A merge that was killed leaves two copies of an attempt.
        several += [attempt for attempt in attempts if attempt not in several]
    if len(files) > 1:
        for several in by_trial.values():
            several.sort(key=lambda attempt: (attempt.started, attempt.rescored))
    return by_trial


def executions(stored: Sequence[TrialResult]) -> list[TrialResult]:
    """One result an execution of a trial: where judges were asked again, what came of that."""
    found: list[TrialResult] = []
    for result in stored:
        if result.rescored and found:
            found[-1] = result
        else:
            found.append(result)
    return found


def result_files(run_dir: Path) -> list[Path]:
    """``results.jsonl``, then the files of workers that were not merged, by name.

    Raises:
        RunDirectoryError: there is no such directory.
    """
    try:
        names = os.listdir(run_dir)
    except OSError as error:
        raise RunDirectoryError(f"{run_dir}: cannot be read: {error.strerror}") from None
    workers = sorted(
        (name for name in names if _WORKER_FILE.match(name)), key=lambda name: (len(name), name)
    )
    return [run_dir / name for name in ([RESULTS] if RESULTS in names else []) + workers]


def _read_file(path: Path, notes: list[str]) -> list[tuple[TrialResult, ...]]:
    """A line's attempts, the last one being the trial's result, for each line of one file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise _Gone(f"{path}: cannot be read: {error.strerror}") from None
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    lines = data.split(b"\n")
    found: list[tuple[TrialResult, ...]] = []
    newer = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            result, earlier, version = decode_line(line)
        except ValueError as error:
            if number == len(lines):
                notes.append(f"{path.name}: the last line is torn and was dropped")
            else:
                notes.append(f"{path.name}, line {number}: {error}; dropped")
            continue
        newer = newer or version > SCHEMA_VERSION
        found.append((*earlier, result))
    if newer:
        notes.append(f"{path.name}: written by a newer version; what it added is not shown")
    return found


def read_header(run_dir: Path) -> dict[str, Any]:
    """``run.json`` of a run.

    Raises:
        RunDirectoryError: it is missing or is not a JSON mapping.
    """
    path = run_dir / "run.json"
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise RunDirectoryError(f"{path}: not valid JSON") from None
    if not isinstance(data, dict):
        raise RunDirectoryError(f"{path}: not a JSON mapping")
    return data


def latest_run(directory: Path) -> Path:
    """The newest run below ``directory``: where ``latest`` points, else by name.

    Raises:
        RunDirectoryError: there is none.
    """
    link = directory / "latest"
    if link.is_dir():
        return link.resolve()
    try:
        names = [name for name in os.listdir(directory) if _RUN_NAME.match(name)]
    except OSError:
        names = []
    if not names:
        raise RunDirectoryError(f"no run is stored in {directory}")
    return directory / max(names)
