"""``agent-eval recordings prune``: delete the recordings that no run uses any more."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_agent_eval.cli.places import recordings_directory, runs_directory
from pytest_agent_eval.cli.terminal import print_lines
from pytest_agent_eval.errors import SelectionError
from pytest_agent_eval.evidence.summary import SuiteInfo
from pytest_agent_eval.llm.recordings import Recordings
from pytest_agent_eval.reports.numbers import count
from pytest_agent_eval.reports.printable import one_line
from pytest_agent_eval.reports.terminal import Line
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.finding import find_run
from pytest_agent_eval.runs.stored import StoredRun
from pytest_agent_eval.suite.known import PAIRWISE
from pytest_agent_eval.suite.recognise import is_suite

__all__ = ["prune_recordings"]

_OTHER_CALLS = {"variants": "--agent-eval-variant", "model": "--agent-eval-model"}
"""Options with which a session asks what one without them does not, or not all of it."""

_NAMED = 3


def prune_recordings(
    place: str, runs: Sequence[str], *, directory: str | None = None, dry_run: bool = False
) -> int:
    """Delete the recordings beside a suite that none of the runs used.

    Every suite in that directory has to have run as a whole in one of them: what a case uses that
    did not run is not known.

    Args:
        place: a suite's file, its directory, or the directory of the recordings.
        runs: what :func:`~pytest_agent_eval.runs.finding.find_run` takes; empty for the latest.
        directory: of the runs; None to look for it.
        dry_run: only say what would be deleted.

    Returns:
        0.

    Raises:
        SelectionError: nothing is recorded there, or the runs do not tell what is used.
        RunDirectoryError: a run cannot be found or read.
    """
    shown = recordings_directory(place)
    recordings = Recordings(shown.absolute())
    where = runs_directory(directory)
    stored = [StoredRun.open(find_run(where, name)) for name in runs or [""]]
    used = _used(recordings.directory.parent, stored)
    unused = [path for path in recordings.all() if path.stem not in used]
    leftovers = [*recordings.leftovers()]
    if unused and not any(recordings.path(key).is_file() for key in used):
        names = ", ".join(run.path.name for run in stored)
        raise SelectionError(
            f"{shown}: {names} used none of these recordings (with "
            "--agent-eval-llm live none is read); nothing was deleted"
        )
    size = sum(path.stat().st_size for path in unused)
    if not dry_run:
        for path in (*unused, *leftovers):
            path.unlink(missing_ok=True)
        recordings.remove_empty()
    kept = sum(1 for path in recordings.all() if path.stem in used)
    did = "would be deleted" if dry_run else "deleted"
    text = f"{count(len(unused), 'recording')} {did} ({size / 1000:,.0f} kB), {kept:,} used"
    lines = [Line(f"{one_line(str(shown))}: {text}")]
    if dry_run:
        lines += [Line(f"  {path.relative_to(recordings.directory)}") for path in unused]
    print_lines(lines)
    return 0


def _used(directory: Path, runs: Sequence[StoredRun]) -> set[str]:
    """The keys that the runs used of the recordings in a directory.

    Raises:
        SelectionError: they do not tell, with all reasons.
    """
    reasons: list[str] = []
    keys: set[str] = set()
    shown = {run.path: [*_runs_of(directory, run)] for run in runs}
    for suite in _suites(directory):
        views = [view for run in runs for view in shown[run.path] if view.file == suite]
        wholly = {view.info.variant for view in views if not view.reason}
        missing = [view for view in views if view.info.variant not in wholly]
        if not views:
            names = ", ".join(run.path.name for run in runs)
            reasons.append(f"{suite.name} did not run in {names}")
        reasons += [f"{view.info.label}, {view.run}: {view.reason}" for view in missing]
        for view in views:
            keys.update(view.keys)
    if reasons:
        raise SelectionError(
            "\n".join(
                [
                    "nothing was deleted, as it is not known what is used:",
                    *(f"  {reason}" for reason in reasons),
                    "name a run of all cases (--run NAME, repeatable), or make one: pytest "
                    "--agent-eval",
                ]
            )
        )
    return keys


@dataclass(frozen=True, slots=True)
class _View:
    """What one run tells of one suite, or of one variant of it."""

    run: str
    file: Path
    info: SuiteInfo
    reason: str
    keys: frozenset[str]


def _runs_of(directory: Path, run: StoredRun) -> Iterator[_View]:
    """What a run tells of the suites in a directory."""
    entries = run.header.get("suites")
    files = {os.fspath(file): file for file in _suites(directory)}
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or not {"key", "name"} <= entry.keys():
            continue  # it was closed before it was known what would run
        info = SuiteInfo.from_dict(entry)
        # A run does not know where its root directory is: it may have been copied.
        for name, file in files.items():
            if name == info.key or name.endswith(f"{os.sep}{info.key.replace('/', os.sep)}"):
                results = [
                    result
                    for result in run.results
                    if (result.suite, result.variant) == (info.key, info.variant)
                ]
                keys = frozenset(_keys((*results, *run.superseded)))
                yield _View(run.path.name, file, info, _reason(run, info, results), keys)


def _reason(run: StoredRun, info: SuiteInfo, results: Sequence[TrialResult]) -> str:
    """Why the run does not tell all that the suite uses; empty when it does."""
    options = run.header.get("options") or {}
    for key, option in _OTHER_CALLS.items():
        if options.get(key):
            return f"it ran with {option}"
    if not info.baseline and any(judge.kind == PAIRWISE for judge in info.judges):
        return f"it ran without --agent-eval-baseline, so that {PAIRWISE} asked nothing"
    if dict(info.selected) != dict(info.total):
        ran, all_ = sum(info.selected.values()), sum(info.total.values())
        return f"{ran} of {count(all_, 'case')} ran"
    if not run.complete:
        return "it did not end"
    unknown = [result.case for result in results if _is_unknown(result)]
    if unknown:
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        names = ", ".join(dict.fromkeys(unknown[:_NAMED]))
        return f"{count(len(unknown), 'trial')} ended before all was asked ({names}{more})"
    return ""


def _is_unknown(result: TrialResult) -> bool:
    if result.status == "skipped":
        return False
    return not result.verdicts or any(verdict.error for verdict in result.verdicts)


def _keys(results: Sequence[TrialResult]) -> Iterator[str]:
    for result in results:
        yield from result.usage.recordings
        execution = () if result.execution is None else (result.execution,)
        for verdict in (*execution, *result.verdicts):
            yield from verdict.asked.get("recordings", ())


def _suites(directory: Path) -> list[Path]:
    """The suites whose recordings are in a directory."""
    files = sorted(path for path in directory.iterdir() if path.suffix in (".yaml", ".yml"))
    return [path for path in files if path.is_file() and is_suite(path).suite]
