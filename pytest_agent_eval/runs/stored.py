"""A run that is stored: its trials by what they are known by, and where their records are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.lines import TrialKey
from pytest_agent_eval.runs.lock import writer_of
from pytest_agent_eval.runs.reader import executions, read_header, read_run

__all__ = ["StoredRun", "StoredTrial"]


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """One trial of a stored run.

    Attributes:
        result: its last attempt, as it was judged last.
        earlier: the attempts before, in order; what was judged again is one attempt, so that
            adding up the costs of ``attempts`` counts each execution once.
    """

    result: TrialResult
    earlier: tuple[TrialResult, ...] = ()

    @property
    def attempts(self) -> tuple[TrialResult, ...]:
        """All executions of the trial, the last one at the end."""
        return (*self.earlier, self.result)


@dataclass(frozen=True)
class StoredRun:
    """A run directory that was read, also of a session that was killed or still goes on.

    Attributes:
        path: the run directory (absolute).
        header: ``run.json``; empty if it cannot be read (``notes`` says so).
        trials: by suite, case, variant and trial, in the order of their first lines.
        notes: what could not be read, one sentence each.
    """

    path: Path
    header: Mapping[str, Any] = field(default_factory=dict)
    trials: Mapping[TrialKey, StoredTrial] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: Path) -> StoredRun:
        """Read a run.

        Raises:
            RunDirectoryError: there is no such directory, or a file in it cannot be read.
        """
        path = path.absolute()
        notes: list[str] = []
        lines = read_run(path, notes)
        header: Mapping[str, Any] = {}
        try:
            header = read_header(path)
        except RunDirectoryError as error:
            notes.append(str(error))
        trials = {}
        for key, several in lines.items():
            *earlier, last = executions(several)
            trials[key] = StoredTrial(last, tuple(earlier))
        return cls(path, header, trials, tuple(notes))

    def find(
        self, suite: str, case: str, variant: str | None = None, trial: int = 1
    ) -> StoredTrial | None:
        """A trial by what it is known by; None if nothing is stored of it."""
        return self.trials.get((suite, case, variant, trial))

    @property
    def results(self) -> tuple[TrialResult, ...]:
        """The result of each trial."""
        return tuple(trial.result for trial in self.trials.values())

    @property
    def superseded(self) -> tuple[TrialResult, ...]:
        """The earlier attempts of all trials: their cost counts, their verdicts do not."""
        return tuple(earlier for trial in self.trials.values() for earlier in trial.earlier)

    @property
    def complete(self) -> bool:
        """The session said that all it was to do is done."""
        return self.header.get("complete") is True

    @property
    def writer(self) -> str:
        """The process that writes the run now, as messages name it; empty if none does."""
        return writer_of(self.path)

    def record_directory(self, result: TrialResult) -> Path:
        """Where the record of a trial is; of a rescored run that is in the run it came from.

        Raises:
            RunDirectoryError: nothing was recorded, or it is no longer there.
        """
        label = result.case + (f"[{result.variant}]" if result.variant else "")
        if not result.record:
            raise RunDirectoryError(f"{label}: nothing was recorded, as it was not carried out")
        path = Path(os.path.normpath(self.path / result.record))
        if not path.is_relative_to(self.path.parent):
            raise RunDirectoryError(f"{label}: its record lies outside the stored runs: {path}")
        if path.is_dir():
            return path
        if not path.is_relative_to(self.path):
            other = path.relative_to(self.path.parent).parts[0]
            if not (self.path.parent / other).is_dir():
                message = f"its record was in the run {other}, which is no longer there"
                raise RunDirectoryError(f"{label}: {message}")
        raise RunDirectoryError(f"{label}: its record is no longer there: {path}")

    def reference(self, result: TrialResult, other: Path) -> str:
        """``TrialResult.record`` for a line of another run that is about this run's record.

        Args:
            result: of this run.
            other: the directory of the other run.

        Raises:
            RunDirectoryError: as :meth:`record_directory`, or the other run is kept elsewhere.
        """
        record = self.record_directory(result)
        if other.absolute().parent != self.path.parent:
            raise RunDirectoryError(
                f"{other}: a run that is scored again has to be beside it, in {self.path.parent}"
            )
        return os.path.relpath(record, other.absolute()).replace(os.sep, "/")
