"""The rows of the table of cases: what is known without opening a record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.evidence.summary import SuiteSummary
from pytest_agent_eval.reports.failure import verdict_state
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.reports.printable import one_line, shortened
from pytest_agent_eval.results import TrialResult, Verdict

__all__ = ["cell", "row"]

_REASON = 240
"""Characters of a reason; all of it is on the page of the case."""
_WORST = ("error", "failed", "recorded", "passed", "skipped")


def row(run: FinishedRun, number: int, suite: SuiteSummary, case: CaseOutcome) -> dict[str, Any]:
    """One row. Keys are short, as there may be thousands.

    Returns:
        ``s`` suite, ``n`` label, ``h`` split, ``st`` status, ``r`` reason, ``g`` group, ``c``
        category, ``t`` tags, ``k`` trials, ``usd``, ``sec``, ``v`` a cell for each judge of the
        suite, ``o`` the same of the baseline.
    """
    told = case.told
    judges = [judge.name for judge in suite.info.judges]
    data: dict[str, Any] = {
        "s": number,
        "n": case.label,
        "h": case.split,
        "st": case.status,
        "v": _cells(case.trials, judges),
    }
    if case.reason:
        data["r"] = shortened(one_line(case.reason[: 4 * _REASON]), _REASON)
    if len(case.trials) > 1:
        data["k"] = len(case.trials)
    for key, value in (("g", told.group), ("c", told.category), ("t", dict(told.tags))):
        if value:
            data[key] = value
    started = [trial for trial in case.trials if trial.execution is not None]
    if started:
        data["sec"] = round(math.fsum(trial.duration_s for trial in started), 3)
    costs = [t.usage.cost_usd for t in started if t.usage.cost_usd is not None]
    if costs:
        data["usd"] = math.fsum(costs)
    if run.baseline is not None:
        old = [
            found.result
            for trial in case.trials
            if (found := run.baseline_trial(trial.suite, trial.case, trial.variant, trial.trial))
        ]
        if old:
            data["o"] = _cells(old, judges)
    return data


def _cells(trials: Sequence[TrialResult], judges: Sequence[str]) -> list[Any]:
    found: dict[str, list[Verdict]] = {}
    for trial in trials:
        for verdict in trial.verdicts:
            found.setdefault(verdict.judge, []).append(verdict)
    return [cell(found.get(judge, ())) for judge in judges]


def cell(verdicts: Sequence[Verdict]) -> Any:
    """What one judge said about a case: 0 for nothing, else a list: the first letter of the state,
    the value (a boolean, or a number; None without one), and of several trials how many passed and
    how many there are.

    With several trials the state is that of the worst, and the value their mean.
    """
    if not verdicts:
        return 0
    states = {verdict_state(verdict) for verdict in verdicts}
    state = next(state for state in _WORST if state in states)
    if len(verdicts) == 1:
        return [state[0], _number(verdicts[0].value)]
    values = [verdict.value for verdict in verdicts if verdict.value is not None]
    if values and all(isinstance(value, bool) for value in values):
        passed = sum(value is True for value in values)
        return [state[0], passed / len(values), passed, len(values)]
    numbers = [value for value in map(_number, values) if value is not None]
    mean = _number(sum(map(float, numbers)) / len(numbers)) if numbers else None
    return [state[0], mean]


def _number(value: Any) -> bool | int | float | None:
    """A value as JSON has it; None where it is not finite."""
    if value is None or isinstance(value, bool):
        return value
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number):
        return None
    return value if isinstance(value, int) else float(f"{number:.6g}")
