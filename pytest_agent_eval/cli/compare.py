"""``agent-eval compare``: stored runs against one of them, or the variants of one run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_agent_eval.cli.places import runs_directory
from pytest_agent_eval.cli.stored_summary import stored_summary
from pytest_agent_eval.cli.terminal import print_lines, width
from pytest_agent_eval.errors import SelectionError
from pytest_agent_eval.evidence.changes import changes
from pytest_agent_eval.evidence.comparison import adjusted, compare
from pytest_agent_eval.evidence.sealing import sealed
from pytest_agent_eval.evidence.summary import SuiteSummary, Summary, titles
from pytest_agent_eval.reports.comparison import comparison_lines
from pytest_agent_eval.reports.line import Line
from pytest_agent_eval.reports.printable import one_line
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.finding import find_run
from pytest_agent_eval.runs.lines import sanitised
from pytest_agent_eval.runs.stored import StoredRun

__all__ = ["compare_runs"]


@dataclass(frozen=True, slots=True)
class _Found:
    """One suite of one run, or one variant of it, with its comparisons."""

    title: str
    run: str
    suite: SuiteSummary


def compare_runs(
    runs: Sequence[str],
    *,
    variants: Sequence[str] | None = None,
    suite: str | None = None,
    directory: str | None = None,
    as_json: bool = False,
    verbosity: int = 0,
) -> int:
    """Compare the second and each further run with the first one, or variants of one run with the
    first of them.

    Args:
        runs: what :func:`~pytest_agent_eval.runs.finding.find_run` takes.
        variants: names of variants of the only run, empty for all of them; None to compare runs.
        suite: the name or the file of a suite, to leave out the others.
        directory: of the runs; None to look for it.
        as_json: print JSON.
        verbosity: from 1 on each half too, and all names of cases.

    Returns:
        1 where a judge got worse, else 0.

    Raises:
        RunDirectoryError: no such run, or it cannot be read.
        SelectionError: too few runs or variants, or no such suite or variant.
    """
    place = runs_directory(directory)
    if variants is None:
        if len(runs) < 2:
            raise SelectionError("needs two runs, or one with --variants")
        baseline, *others = [StoredRun.open(find_run(place, run)) for run in runs]
        found = [one for other in others for one in _of_runs(baseline, other, suite)]
    else:
        if len(runs) != 1:
            raise SelectionError("--variants needs one run")
        found = _of_variants(StoredRun.open(find_run(place, runs[0])), variants, suite)
    if as_json:
        print(json.dumps(sanitised([_data(one) for one in found]), indent=2))
    else:
        print_lines(_lines(found, verbosity))
    worse = any(c.outcome == "worse" for one in found for c in one.suite.comparisons)
    return 1 if worse else 0


def _of_runs(baseline: StoredRun, run: StoredRun, suite: str | None) -> list[_Found]:
    summary = sealed(stored_summary(run, baseline))
    names = titles(one.info for one in summary.suites)
    chosen = _chosen(summary.suites, suite, run)
    return [_Found(names[s.info.key, s.info.variant], run.path.name, s) for s in chosen]


def _chosen(
    suites: Sequence[SuiteSummary], wanted: str | None, run: StoredRun
) -> list[SuiteSummary]:
    found = [s for s in suites if wanted in (None, s.info.key, s.info.name)]
    if not found:
        there = ", ".join(dict.fromkeys(s.info.name for s in suites)) or "none"
        raise SelectionError(f"no suite {wanted} in the run {run.path.name}; there is {there}")
    return found


def _of_variants(run: StoredRun, wanted: Sequence[str], suite: str | None) -> list[_Found]:
    summary = stored_summary(run)
    by_key: dict[str, list[SuiteSummary]] = {}
    for one in _chosen(summary.suites, suite, run):
        if one.info.variant is not None:
            by_key.setdefault(one.info.key, []).append(one)
    found = []
    for parts in by_key.values():
        names = [str(part.info.variant) for part in parts]
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise SelectionError(f"no variant {unknown[0]}; there is {', '.join(names)}")
        ordered = [parts[names.index(name)] for name in wanted] if wanted else parts
        if len(ordered) < 2:
            raise SelectionError(f"needs two variants; there is {', '.join(names)}")
        found += _against_first(ordered, run)
    if not found:
        raise SelectionError(f"the run {run.path.name} has no variants")
    return found


def _against_first(variants: Sequence[SuiteSummary], run: StoredRun) -> list[_Found]:
    first, *others = variants
    old = _results(first)
    several = [
        compare(_results(other), old, other.info.judges, unvalidated=other.unvalidated)
        for other in others
    ]
    compared = [
        replace(
            other,
            info=replace(other.info, baseline=f"variant {first.info.variant}"),
            comparisons=comparisons,
            changes=changes(_results(other), old, {}, {}),
        )
        for other, comparisons in zip(others, adjusted(several), strict=True)
    ]
    shown = sealed(Summary(tuple(map(_unvaried, compared)))).suites
    return [_Found(one.info.label, run.path.name, one) for one in shown]


def _unvaried(suite: SuiteSummary) -> SuiteSummary:
    """With cases that are named as the comparisons name them."""
    return replace(suite, cases=tuple(replace(c, label=c.trials[0].case) for c in suite.cases))


def _results(suite: SuiteSummary) -> list[TrialResult]:
    """The trials of a variant, to be paired with those of another by the case's name."""
    return [replace(trial, variant=None) for case in suite.cases for trial in case.trials]


def _lines(found: Sequence[_Found], verbosity: int) -> list[Line]:
    lines: list[Line] = []
    for one in found:
        if lines:
            lines.append(Line(""))
        lines.append(Line(f"{one_line(one.title)}, {one_line(one.run)}", "bold"))
        shown = comparison_lines(one.suite, width(), verbosity)
        lines += shown or [Line("  nothing to compare")]
    return lines


def _data(found: _Found) -> dict[str, Any]:
    return {
        "suite": found.suite.info.key,
        "name": found.suite.info.name,
        "variant": found.suite.info.variant,
        "run": found.run,
        **found.suite.comparison_dict(),
    }
