"""``agent-eval runs``: the stored runs, newest first."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_agent_eval.cli.places import runs_directory
from pytest_agent_eval.cli.terminal import print_lines, width
from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.reports.numbers import count, money
from pytest_agent_eval.reports.printable import display_width, hanging, one_line, padded, shortened
from pytest_agent_eval.reports.terminal import Line
from pytest_agent_eval.runs.finding import run_names
from pytest_agent_eval.runs.lines import sanitised
from pytest_agent_eval.runs.lock import writer_of
from pytest_agent_eval.runs.reader import read_header
from pytest_agent_eval.runs.stored import StoredRun
from pytest_agent_eval.runs.totals import run_totals

__all__ = ["RunRow", "list_runs", "run_row", "state_of"]

_INTERRUPTED = 2
"""The exit status of pytest after Ctrl-C."""
_STATUSES = ("failed", "error", "passed", "tolerated", "skipped")


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of the list.

    Attributes:
        name: of its directory.
        started: UTC, ISO 8601; empty if unknown.
        state: as :func:`state_of`.
        suites: their names.
        cases: status -> cases.
        gates_missed: how many; None if they were not decided.
        cost_usd: US dollars; None if unknown.
        exit_status: pytest's; None if it did not end.
        rescored_from: the run whose records were judged, or empty.
        notes: what could not be read.
    """

    name: str
    started: str
    state: str
    suites: tuple[str, ...]
    cases: Mapping[str, int]
    gates_missed: int | None
    cost_usd: float | None
    exit_status: int | None
    rescored_from: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data.update(suites=list(self.suites), notes=list(self.notes))
        return data


def list_runs(directory: str | None, *, as_json: bool) -> int:
    """Print the runs below a directory; 1 if there are none."""
    place = runs_directory(directory)
    rows = [run_row(place / name) for name in run_names(place)]
    if as_json:
        print(json.dumps(sanitised([row.to_dict() for row in rows]), indent=2))
    else:
        print_lines(_table(rows, width()))
    if not rows:
        message = f"no run is stored in {place}; pytest makes one when it runs a suite"
        print(f"agent-eval runs: {message}", file=sys.stderr)
        return 1
    return 0


def state_of(path: Path, header: Mapping[str, Any]) -> str:
    """``complete``, ``interrupted`` (by a person, or killed), ``incomplete`` (it ended by itself,
    and selected cases have no result) or ``running``.
    """
    if writer_of(path):
        return "running"
    if header.get("complete") is True:
        return "complete"
    ended = "ended" in header and header.get("exit_status") != _INTERRUPTED
    return "incomplete" if ended else "interrupted"


def run_row(path: Path) -> RunRow:
    """What a list says of a run. A run that was closed is not read beyond ``run.json``."""
    notes: list[str] = []
    try:
        header = read_header(path)
    except RunDirectoryError as error:
        header = {}
        notes.append(_inside(path, error))
    totals = header.get("totals")
    if not isinstance(totals, dict):
        totals = _counted(path, notes)
    suites = header.get("suites")
    names = [
        str(suite.get("name") or suite.get("file") or "?")
        for suite in (suites if isinstance(suites, list) else ())
        if isinstance(suite, dict)
    ]
    return RunRow(
        name=path.name,
        started=str(header.get("started") or ""),
        state=state_of(path, header),
        suites=tuple(dict.fromkeys(names)),
        cases=totals.get("cases") or {},
        gates_missed=totals.get("gates_missed"),
        cost_usd=totals.get("cost_usd"),
        exit_status=header.get("exit_status"),
        rescored_from=str(header.get("rescored_from") or ""),
        notes=tuple(notes),
    )


def _inside(path: Path, error: RunDirectoryError) -> str:
    """A message about a file of a run, in a line below the run's name."""
    return str(error).removeprefix(f"{path}/")


def _counted(path: Path, notes: list[str]) -> dict[str, Any]:
    """The totals of a run that was not closed, from its lines."""
    try:
        run = StoredRun.open(path)
    except RunDirectoryError as error:
        notes.append(_inside(path, error))
        return {}
    # That the header cannot be read has been said.
    notes += [note for note in run.notes if not note.startswith(str(path))]
    keys = dict.fromkeys((result.suite, result.variant) for result in run.results)
    infos = [SuiteInfo(key, key, variant) for key, variant in keys]
    summary = summarise(infos, run.results, superseded=run.superseded, gate_mode="never")
    return {**run_totals(summary.to_yaml_dict()), "gates_missed": None}


def _table(rows: list[RunRow], columns: int) -> list[Line]:
    cells = [_cells(row) for row in rows]
    widths = [max(map(display_width, column), default=0) for column in zip(*cells, strict=True)]
    lines = []
    for row, texts in zip(rows, cells, strict=True):
        whole = "  ".join(padded(text, size) for text, size in zip(texts, widths, strict=True))
        bad = row.exit_status not in (None, 0) or row.cases.get("failed") or row.cases.get("error")
        lines.append(
            Line(
                shortened(whole.rstrip(), columns),
                "yellow" if row.state != "complete" else "red" if bad else "green",
            )
        )
        for note in row.notes:
            said = hanging(note, columns - 4, indent=2)
            lines += [Line(f"    {text}", "yellow") for text in said]
    return lines


def _cells(row: RunRow) -> tuple[str, ...]:
    # The first part of the name is the time at which it started.
    counts = [f"{row.cases[s]:,} {s}" for s in _STATUSES if row.cases.get(s)]
    result = ", ".join(counts) or "no case"
    if row.gates_missed:
        result += f", {count(row.gates_missed, 'gate')} missed"
    status = "" if row.exit_status is None else f"exit {row.exit_status}"
    suites = ", ".join(one_line(name) for name in row.suites)
    if row.rescored_from:
        suites += f" (scored again: {one_line(row.rescored_from)})"
    cost = "" if row.cost_usd is None else money(row.cost_usd)
    return (one_line(row.name), row.state, status, cost, result, suites)
