"""The stored run that a session is compared with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.stored import StoredRun, StoredTrial
from pytest_agent_eval.suite.digests import canonical_digest

__all__ = ["Baseline"]

Variants = Mapping[str | None, set[int]]
"""Variant -> the trials that are stored of it."""


@dataclass(frozen=True)
class Baseline:
    """A run that has ended, whose trials stand beside those of this session.

    Attributes:
        run: as it is stored.
    """

    run: StoredRun

    @classmethod
    def open(cls, path: Path, *, other_than: StoredRun | None = None) -> Baseline:
        """Read a run.

        Args:
            path: its directory.
            other_than: the run that this session goes on with or judges again.

        Raises:
            RunDirectoryError: it cannot be read, holds no result, is being written, or holds the
                same executions as the other one.
        """
        run = StoredRun.open(path)
        name = run.path.name
        if run.writer:
            raise RunDirectoryError(f"{name} is still being written, by {run.writer}")
        if not run.trials:
            raise RunDirectoryError(f"{name} holds no result")
        if other_than is not None and _origins(run) & _origins(other_than):
            message = "holds the very executions that this session is about; name another run"
            raise RunDirectoryError(f"{name} {message}")
        return cls(run)

    @property
    def name(self) -> str:
        """The run's."""
        return self.run.path.name

    @property
    def suites(self) -> tuple[str, ...]:
        """Keys of the suites that it has results of, sorted."""
        return tuple(sorted(self._stored))

    def require(self, suites: Iterable[str]) -> None:
        """Check that it has results of at least one of these suites.

        Raises:
            RunDirectoryError: names those that it has.
        """
        wanted = sorted(suites)
        if wanted and not set(wanted) & self._stored.keys():
            message = f"{self.name} has no result of {' or '.join(wanted)}"
            raise RunDirectoryError(f"{message}; it is a run of {', '.join(self.suites)}")

    def identity(self, suite: str) -> str:
        """xxh3_128 (hexadecimal): another one where the suite's executions in it are others."""
        trials = [
            [case, variant, trial, found.result.started, found.result.status]
            for (key, case, variant, trial), found in self.run.trials.items()
            if key == suite
        ]
        return canonical_digest([self.name, sorted(trials, key=repr)])

    def find(
        self, suite: str, case: str, variant: str | None = None, trial: int = 1
    ) -> StoredTrial | None:
        """The trial that stands beside one of this session; None where there is none."""
        return self.run.find(suite, case, variant, trial)

    def lacks(self, suite: str, case: str, variant: str | None = None, trial: int = 1) -> str:
        """Why there is no such trial, in a few words; empty where there is."""
        cases = self._stored.get(suite)
        if cases is None:
            return "no result of this suite in the baseline"
        variants = cases.get(case)
        if variants is None:
            return "no such case in the baseline"
        if variant not in variants:
            there = ", ".join(sorted(str(name) for name in variants if name is not None))
            return (
                f"the baseline has this case only {f'as {there}' if there else 'without a variant'}"
            )
        return "" if trial in variants[variant] else f"no trial {trial} of it in the baseline"

    @cached_property
    def _stored(self) -> Mapping[str, Mapping[str, Variants]]:
        found: dict[str, dict[str, dict[str | None, set[int]]]] = {}
        for suite, case, variant, trial in self.run.trials:
            found.setdefault(suite, {}).setdefault(case, {}).setdefault(variant, set()).add(trial)
        return found


def _origins(run: StoredRun) -> set[str]:
    """The directories of the runs in which its agents worked: of one that was judged again the
    other's.
    """
    records = {result.record for result in run.results if result.record}
    parent = os.path.realpath(run.path.parent)
    found = {run.path.name}
    for record in records:
        path = os.path.normpath(os.path.join(parent, run.path.name, record))
        found.add(os.path.relpath(path, parent).split(os.sep)[0])
    return {os.path.join(parent, name) for name in found}
