"""Stored runs of suites whose holdout half is sealed: what may be shown, and opening the half."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from pytest_agent_eval.errors import SelectionError
from pytest_agent_eval.evidence.looks import look_at
from pytest_agent_eval.evidence.sealing import is_open, sealed_header
from pytest_agent_eval.evidence.summary import Summary
from pytest_agent_eval.runs.ledger import record_look
from pytest_agent_eval.runs.stored import StoredRun

__all__ = ["open_part", "record_reveal", "refuse_sealed"]


def open_part(run: StoredRun, summary: Summary) -> StoredRun:
    """The run without the trials of sealed halves; ``summary`` is that of all of it."""
    hiding = {suite.info.key for suite in summary.suites if suite.info.sealed}
    if not hiding:
        return run
    trials = {
        key: trial
        for key, trial in run.trials.items()
        if is_open(trial.result.split, trial.result.suite in hiding)
    }
    return replace(run, trials=trials, header=sealed_header(run.header))


def refuse_sealed(case: str, run: StoredRun, shown: StoredRun) -> None:
    """Refuse a case of a sealed half.

    Args:
        case: a case's name or ``name[variant]``.
        run: all of it.
        shown: the part that may be shown.

    Raises:
        SelectionError: it is one.
    """
    hidden = [run.trials[key].result for key in run.trials.keys() - shown.trials.keys()]
    if any(case in (one.case, f"{one.case}[{one.variant}]") for one in hidden):
        raise SelectionError(
            f"{case} is of the holdout half, which is sealed; --reveal shows it, and the ledger "
            "beside the dataset records that it was seen"
        )


def record_reveal(run: StoredRun, summary: Summary, names: Collection[str] | None = None) -> None:
    """Record in the ledgers that cases of sealed halves were shown; all of them without names.
    Says on standard error what could not be recorded.
    """
    for key in dict.fromkeys(suite.info.key for suite in summary.suites if suite.info.sealed):
        suites = [suite for suite in summary.suites if suite.info.key == key]
        cases = [
            case
            for suite in suites
            for case in suite.cases
            if names is None or case.trials[0].case in names
        ]
        git = run.header.get("git")
        look = look_at(
            replace(suites[0].info, revealed=True),
            cases,
            date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            run=run.path.name,
            git=git if isinstance(git, dict) else None,
        )
        if look is None:
            continue
        root = _root_of(run.path, suites[0].info.file)
        notes: tuple[str, ...] = (f"{key} is not above the run: this look is not recorded",)
        if root is not None:
            _, notes = record_look(Path(os.path.normpath(root / suites[0].info.ledger)), look)
        for note in notes:
            print(f"agent-eval show: {note}", file=sys.stderr)


def _root_of(run: Path, file: str) -> Path | None:
    """The directory above a run to which a suite's file is relative."""
    return next((place for place in run.parents if (place / file).is_file()), None)
