"""``agent-eval show``: one stored run, or one case of it."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_agent_eval.cli.places import runs_directory
from pytest_agent_eval.cli.revealing import open_part, record_reveal, refuse_sealed
from pytest_agent_eval.cli.runs import state_of
from pytest_agent_eval.cli.stored_summary import left_out, stored_calibrations, stored_summary
from pytest_agent_eval.cli.terminal import print_lines, width
from pytest_agent_eval.errors import RunDirectoryError, SelectionError
from pytest_agent_eval.evidence.sealing import sealed
from pytest_agent_eval.evidence.summary import Summary
from pytest_agent_eval.execution.verdict import last_said
from pytest_agent_eval.reports.calibration import calibration_text
from pytest_agent_eval.reports.failure import failure_block
from pytest_agent_eval.reports.numbers import count, money, seconds, tokens
from pytest_agent_eval.reports.printable import display_width, hanging, one_line, padded
from pytest_agent_eval.reports.terminal import Line, summary_lines
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.finding import find_run
from pytest_agent_eval.runs.lines import sanitised
from pytest_agent_eval.runs.stored import StoredRun, StoredTrial

__all__ = ["show"]

_MARKUP: dict[str, Any] = {
    "passed": "green",
    "failed": "red",
    "error": "red",
    "tolerated": "yellow",
    "skipped": "",
}
_ORDER = ("error", "failed", "tolerated", "skipped", "passed")
_FILES_SHOWN = 10
_NAMED = re.compile(r"(.+)\[(.+)\]\Z", re.DOTALL)


def show(
    run: str,
    case: str | None,
    *,
    trial: int | None = None,
    directory: str | None = None,
    as_json: bool = False,
    files: bool = False,
    reveal: bool = False,
) -> int:
    """Print a run, or a case of it.

    Args:
        run: what :func:`~pytest_agent_eval.runs.finding.find_run` takes.
        case: a case's name or ``name[variant]``; None for the whole run.
        trial: of a case of several trials only this one.
        directory: of the runs; None to look for it.
        as_json: print JSON.
        files: list the files of each record, with their sizes.
        reveal: show also the cases of sealed halves, and record it.

    Raises:
        RunDirectoryError: no such run, or it cannot be read.
        SelectionError: no such case or trial; names those that are near.
    """
    every = StoredRun.open(find_run(runs_directory(directory), run))
    summary = stored_summary(every)
    stored = every if reveal else open_part(every, summary)
    if case is None:
        if as_json:
            _print_json(_run_data(stored, summary if reveal else sealed(summary), files))
        else:
            shown = summary if reveal else sealed(summary)
            print_lines(_run_lines(stored, shown, width(), files))
            if len(stored.trials) < len(every.trials):
                print("cases of a sealed half are not listed (--reveal lists them)")
        if reveal:
            record_reveal(every, summary)
        return 0
    if len(stored.trials) < len(every.trials):
        refuse_sealed(case, every, stored)
    trials = _chosen(stored, case, trial)
    if reveal:
        record_reveal(every, summary, {item.result.case for item in trials})
    if as_json:
        _print_json([_trial_data(stored, item) for item in trials])
    else:
        print_lines(_case_lines(stored, trials, width(), files))
    return 0


def _print_json(data: Any) -> None:
    print(json.dumps(sanitised(data), indent=2))


def _label(result: TrialResult) -> str:
    return result.case + (f"[{result.variant}]" if result.variant else "")


# -- which case -----------------------------------------------------------------------------------


def _chosen(run: StoredRun, case: str, trial: int | None) -> list[StoredTrial]:
    every = list(run.trials.values())
    found = [item for item in every if item.result.case == case or _label(item.result) == case]
    if not found:
        near = _near(case, every)
        labels = sorted({_label(item.result) for item in every})
        hint = f"did you mean {' or '.join(near)}?" if near else _there(labels)
        raise SelectionError(f"no case {case} in the run {run.path.name}; {hint}")
    if trial is not None:
        numbers = sorted({item.result.trial for item in found})
        found = [item for item in found if item.result.trial == trial]
        if not found:
            there = ", ".join(map(str, numbers))
            raise SelectionError(f"no trial {trial} of {case} is stored; there is {there}")
    return found


def _near(case: str, every: Sequence[StoredTrial]) -> list[str]:
    """What may have been meant: variants of a case that is there, else names that are alike."""
    named = _NAMED.match(case)
    if named:
        variants = {_label(item.result) for item in every if item.result.case == named[1]}
        if variants:
            return sorted(variants)[:3]
    names = sorted({item.result.case for item in every})
    near = difflib.get_close_matches(case, names, n=3, cutoff=0.5)
    return near or [name for name in names if case.lower() in name.lower()][:3]


def _there(labels: Sequence[str]) -> str:
    if not labels:
        return "it holds no result yet"
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return f"there is {', '.join(labels[:3])}{more}"


# -- a run ----------------------------------------------------------------------------------------


def _run_data(run: StoredRun, summary: Summary, files: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "path": str(run.path),
        "state": state_of(run.path, run.header),
        "header": dict(run.header),
        "notes": list(run.notes),
        "summary": summary.to_yaml_dict(run.path.name),
    }
    if files:
        data["trials"] = [_trial_data(run, item) for item in run.trials.values()]
    else:
        data["results"] = [result.to_dict() for result in run.results]
    return data


def _run_lines(run: StoredRun, summary: Summary, columns: int, files: bool) -> Iterator[Line]:
    yield from _head(run, columns)
    yield Line("")
    yield from summary_lines(
        summary, width=columns, verbosity=1, run=run.path.name, notes=run.notes
    )
    several = len({result.suite for result in run.results}) > 1
    rows: list[tuple[str, str, str, TrialResult | None]] = [
        (result.status, _row_name(result, several), result.reason, result) for result in run.results
    ]
    rows += [("skipped", one_line(name), reason, None) for name, reason in left_out(run)]
    if not rows:
        return
    rows.sort(key=lambda row: _ORDER.index(row[0]))
    yield Line("")
    states = max(len(status) for status, *_ in rows)
    column = min(max(display_width(name) for _, name, *_ in rows), max(columns // 2, 20))
    for status, name, why, result in rows:
        lead = f"{status:{states}}  {padded(one_line(name, column), column)}"
        reason = one_line(why, max(columns - display_width(lead) - 2, 20))
        yield Line(f"{lead}  {reason}".rstrip(), _MARKUP[status])
        if files and result is not None:
            yield from _file_lines(run, result, everything=True)


def _row_name(result: TrialResult, several: bool) -> str:
    """The case, in a run of several suites as its node id names it."""
    name = f"{result.suite}::{_label(result)}" if several else _label(result)
    return one_line(name) + (f", trial {result.trial}" if result.trial > 1 else "")


def _head(run: StoredRun, columns: int) -> Iterator[Line]:
    header = run.header
    state = run.writer and f"running: {run.writer} writes it"
    state = state or state_of(run.path, header)
    if header.get("exit_status") is not None:
        state += f", exit status {header['exit_status']}"
    rows = {
        "run": run.path.name,
        "stored in": str(run.path),
        "started": header.get("started"),
        "ended": header.get("ended"),
        "state": state,
        "sessions": len(header.get("sessions") or ()) or None,
        "scored again": header.get("rescored_from"),
        "options": _pairs(header.get("options")),
        "versions": _pairs(header.get("versions")),
        "commit": _commit(header.get("git")),
    }
    for name, value in rows.items():
        if value not in (None, ""):
            texts = hanging(str(value), columns - 14, indent=0)
            for text in texts:
                yield Line(f"{name:12}  {text}".rstrip(), "bold" if name == "run" else "")
                name = ""


def _pairs(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    return ", ".join(f"{key} {item}" for key, item in value.items() if item is not None)


def _commit(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    return f"{value.get('commit')}{', with changes' if value.get('dirty') else ''}"


# -- a case ---------------------------------------------------------------------------------------


def _case_lines(
    run: StoredRun, trials: Sequence[StoredTrial], columns: int, files: bool
) -> Iterator[Line]:
    unvalidated = {
        suite: [("labels", calibration_text(one)) for one in found if not one.validated]
        for suite, found in stored_calibrations(run).items()
    }
    for index, item in enumerate(trials):
        if index:
            yield Line("")
        result = item.result
        directory, missing = _record(run, result)
        text = failure_block(
            replace(result, record=""),
            output_tail=last_said(str(directory)) if directory else "",
            width=columns,
            verbosity=1,
        )
        first, *others = text.split("\n")
        yield Line(first, _MARKUP[result.status])
        yield from (Line(line) for line in others)
        where = str(directory) if directory else missing
        yield Line(f"record     {one_line(where)}", "" if directory else "yellow")
        for name, text in (*_facts(item), *unvalidated.get((result.suite, result.variant), ())):
            for part in hanging(text, columns - 11, indent=0):
                yield Line(f"{name:9}  {part}")
                name = ""
        if directory:
            yield from _file_lines(run, result, everything=files)
    for note in run.notes:
        yield from (Line(text, "yellow") for text in hanging(f"note: {note}", columns))


def _facts(item: StoredTrial) -> Iterator[tuple[str, str]]:
    result = item.result
    usage = result.usage
    cost = "unknown" if usage.cost_usd is None else money(usage.cost_usd)
    if usage.input_tokens is not None or usage.output_tokens is not None:
        cost += f", {tokens(usage.input_tokens or 0)} tokens in"
        cost += f", {tokens(usage.output_tokens or 0)} out"
    if usage.model:
        cost += f", {usage.model}"
    yield "cost", cost
    yield "judging", seconds(result.judging_s) + (", judged again" if result.rescored else "")
    if result.started:
        yield "started", result.started
    belongs = [result.suite, result.split]
    belongs += [f"group {result.group}"] if result.group else []
    belongs += [f"{key}={value}" for key, value in result.tags.items()]
    yield "case of", ", ".join(filter(None, belongs))
    if item.earlier:
        reasons = "; ".join(
            one.status + (f" ({one.reason})" if one.reason else "") for one in item.earlier
        )
        yield "earlier", f"{count(len(item.earlier), 'attempt')}: {reasons}"


def _record(run: StoredRun, result: TrialResult) -> tuple[Path | None, str]:
    try:
        return run.record_directory(result), ""
    except RunDirectoryError as error:
        return None, str(error).partition(": ")[2]


def _files(directory: Path) -> list[tuple[str, int]]:
    """Relative path and bytes of every file of a record, sorted; links are not followed."""
    found = []
    for place, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(place, name)
            found.append((os.path.relpath(path, directory), os.lstat(path).st_size))
    return sorted(found)


def _file_lines(run: StoredRun, result: TrialResult, *, everything: bool) -> Iterator[Line]:
    directory, _ = _record(run, result)
    found = _files(directory) if directory else []
    if not found:
        return
    yield Line(f"files      {count(len(found), 'file')}, {sum(s for _, s in found):,} bytes")
    shown = found if everything else found[:_FILES_SHOWN]
    for name, size in shown:
        yield Line(f"  {size:>12,}  {one_line(name)}")
    if len(shown) < len(found):
        yield Line(f"  ... {len(found) - len(shown)} more (--files lists all)")


def _trial_data(run: StoredRun, item: StoredTrial) -> dict[str, Any]:
    directory, missing = _record(run, item.result)
    return {
        **item.result.to_dict(),
        "earlier": [attempt.to_dict() for attempt in item.earlier],
        "record_directory": str(directory) if directory else None,
        "record_missing": missing,
        "files": [
            {"path": name, "bytes": size} for name, size in (_files(directory) if directory else ())
        ],
    }
