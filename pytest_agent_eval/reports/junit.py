"""What a JUnit report says of a case besides its outcome."""

from __future__ import annotations

import functools
import math

from pytest_agent_eval.evidence.aggregate import Aggregate
from pytest_agent_eval.evidence.calibration import Calibration
from pytest_agent_eval.evidence.comparison import Comparison
from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.reports.calibration import calibration_text
from pytest_agent_eval.reports.comparison import comparison_text
from pytest_agent_eval.reports.numbers import score
from pytest_agent_eval.reports.printable import printable, shortened
from pytest_agent_eval.reports.terminal import aggregate_text
from pytest_agent_eval.results import TrialResult, Verdict

__all__ = ["calibration_property", "comparison_property", "pairwise_property", "properties"]

_LONGEST = 500


def properties(outcome: CaseOutcome) -> list[tuple[str, str]]:
    """Name and value of each property of a case, without characters that XML forbids.

    ``agent_eval.split``, ``.group``, ``.category``, ``.variant``, ``.trial``, ``.status``,
    ``.kind``, ``.cost_usd``, ``.duration_s``, ``.record``, ``.reward`` and, for each judge,
    ``agent_eval.verdict.<judge>`` (``true``, ``4``, ``skipped``, ``error``) and
    ``agent_eval.rationale.<judge>``. What is unknown is left out. Of a case with several trials
    ``.trial`` lists their numbers, ``.status`` is the case's, cost and duration are sums, and what
    each trial has of its own has the trial's number behind its name: ``.record.2``.
    """
    first, several = outcome.trials[0], len(outcome.trials) > 1
    costs = [t.usage.cost_usd for t in outcome.trials if t.usage.cost_usd is not None]
    pairs: list[tuple[str, str | None]] = [
        ("split", first.split),
        ("group", first.group),
        ("category", first.category),
        ("variant", first.variant),
        ("trial", ",".join(str(trial.trial) for trial in outcome.trials)),
        ("status", outcome.status),
        ("kind", outcome.told.kind),
        ("cost_usd", f"{math.fsum(costs):.6g}" if costs else None),
        ("duration_s", f"{math.fsum(trial.duration_s for trial in outcome.trials):.3f}"),
    ]
    for trial in outcome.trials:
        behind = f".{trial.trial}" if several else ""
        pairs.append((f"record{behind}", trial.record))
        reward = None if trial.reward is None else f"{trial.reward:.6g}"
        pairs.append((f"reward{behind}", reward))
        for verdict in _all_verdicts(trial):
            pairs.append((f"verdict.{verdict.judge}{behind}", _said(verdict)))
            said = verdict.error or verdict.rationale
            pairs.append((f"rationale.{verdict.judge}{behind}", said))
    return [(_full(name), shortened(printable(value), _LONGEST)) for name, value in pairs if value]


def calibration_property(suite: str, found: Calibration) -> tuple[str, str]:
    """``agent_eval.calibration.<suite>.<judge>`` and what its human labels say of it: a property of
    the whole report, as no case by itself shows whether a judge is validated.
    """
    name = printable(f"agent_eval.calibration.{suite}.{found.judge}")
    return name, printable(calibration_text(found))


def pairwise_property(suite: str, found: Aggregate, baseline: str) -> tuple[str, str]:
    """``agent_eval.pairwise.<suite>`` and what comparing it with the baseline came to."""
    text = aggregate_text(found, baseline=baseline)
    return printable(f"agent_eval.pairwise.{suite}"), printable(text)


def comparison_property(suite: str, found: Comparison, baseline: str) -> tuple[str, str]:
    """``agent_eval.comparison.<suite>.<judge>`` and how the judge's values compare with those of
    the baseline.
    """
    name = printable(f"agent_eval.comparison.{suite}.{found.judge}")
    return name, printable(f"{comparison_text(found)}, against {baseline}")


@functools.cache
def _full(name: str) -> str:
    """One string for all cases: pytest keeps the properties of all of them to its end."""
    return f"agent_eval.{printable(name)}"


def _all_verdicts(result: TrialResult) -> list[Verdict]:
    return [*([result.execution] if result.execution else []), *result.verdicts]


def _said(verdict: Verdict) -> str:
    if verdict.error:
        return "error"
    return "skipped" if verdict.skipped else score(verdict.value)
