"""The ledger of looks at a holdout half: a file beside the dataset that is meant to be committed.

A YAML list with one line an entry, so that a person can read it, ``git diff`` shows what was added
and ``merge=union`` merges it. Entries are only ever appended, each with one write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_agent_eval.errors import RunDirectoryError

__all__ = ["ENDING", "Look", "add_look", "ledger_of", "read_ledger", "record_look"]

ENDING = ".holdout.yaml"
_HEAD = """\
# Each look at the holdout half of these cases, written by pytest_agent_eval. Commit this file: it
# says how often the half has been looked at, and by which version of what was evaluated.
# To merge it without conflicts, write in .gitattributes:  *.holdout.yaml merge=union
"""
_OPTIONAL = ("commit", "dirty")


@dataclass(frozen=True, slots=True)
class Look:
    """One entry: one run in which cases of the holdout half had a result.

    Attributes:
        date: UTC, ISO 8601.
        run: its name.
        suite: the suite's file, relative to the ledger's directory, with slashes.
        version: xxh3_128 of that file: which version of the suite it was.
        dataset: xxh3_128 over names and contents of the holdout cases that had a result.
        cases: how many those are.
        counts: status -> outcomes; a case in two variants has two.
        commit: of git; None without one.
        dirty: whether tracked files were changed besides; None if unknown.
        revealed: names of the cases that were shown although the half is sealed.
    """

    date: str
    run: str
    suite: str
    version: str
    dataset: str
    cases: int
    counts: Mapping[str, int] = field(default_factory=dict)
    commit: str | None = None
    dirty: bool | None = None
    revealed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types; :meth:`from_dict` reads it back."""
        data: dict[str, Any] = {
            "date": self.date,
            "run": self.run,
            "suite": self.suite,
            "version": self.version,
            "dataset": self.dataset,
        }
        data |= {key: value for key in _OPTIONAL if (value := getattr(self, key)) is not None}
        data |= {"cases": self.cases, "counts": dict(self.counts)}
        if self.revealed:
            data |= {"revealed": True, "names": list(self.revealed)}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Look:
        """The inverse of :meth:`to_dict`; unknown keys are ignored.

        Raises:
            KeyError, TypeError, ValueError: it is no entry.
        """
        return cls(
            date=str(data["date"]),
            run=str(data["run"]),
            suite=str(data["suite"]),
            version=str(data["version"]),
            dataset=str(data["dataset"]),
            cases=int(data["cases"]),
            counts={str(status): int(number) for status, number in dict(data["counts"]).items()},
            commit=data.get("commit"),
            dirty=data.get("dirty"),
            revealed=tuple(map(str, data.get("names", ()))) if data.get("revealed") else (),
        )


def ledger_of(dataset: Path) -> Path:
    """Where the ledger of a dataset is: ``cases.holdout.yaml`` beside ``cases``. Never in it, as a
    dataset must not change while it is used.
    """
    dataset = Path(os.path.abspath(dataset))
    return dataset.with_name(dataset.name + ENDING)


def read_ledger(path: Path) -> tuple[tuple[Look, ...], tuple[str, ...]]:
    """The entries of a ledger in the order of its lines, and one note for what cannot be read.
    A ledger that is not there has no entry.
    """
    try:
        lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return (), ()
    except OSError as error:
        return (), (f"{path.name} cannot be read: {error.strerror}",)
    found: list[Look] = []
    bad: list[int] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            found.append(Look.from_dict(json.loads(text.removeprefix("-"))))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            bad.append(number)
    if not bad:
        return tuple(found), ()
    where = f"line {bad[0]}" + (f" and {len(bad) - 1} more" if len(bad) > 1 else "")
    return tuple(found), (f"{path.name}, {where}: no entry of a ledger, not counted",)


def record_look(path: Path, look: Look) -> tuple[tuple[Look, ...], tuple[str, ...]]:
    """Add an entry unless one says the same of the same run: to go on with a run, or to show it
    again, is no further look, at whatever time and commit.

    Returns:
        The entries that were there, and notes on what could not be read or written.
    """
    entries, notes = read_ledger(path)
    said = [
        replace(entry, date=look.date, commit=look.commit, dirty=look.dirty) for entry in entries
    ]
    if look not in said:
        try:
            add_look(path, look)
        except RunDirectoryError as error:
            notes = (*notes, str(error))
    return entries, notes


def add_look(path: Path, look: Look) -> None:
    """Append an entry, and make the file if it is not there. Safe under several sessions.

    Raises:
        RunDirectoryError: it cannot be written.
    """
    line = f"- {json.dumps(look.to_dict())}\n".encode()
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
    try:
        try:
            fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            line = _HEAD.encode() + line
        except FileExistsError:
            fd = os.open(path, flags)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":  # edited by hand, or torn
                line = b"\n" + line
            os.write(fd, line)
        finally:
            os.close(fd)
    except OSError as error:
        raise RunDirectoryError(
            f"{path.name}: this look at the holdout half is not recorded: {error.strerror}"
        ) from None
