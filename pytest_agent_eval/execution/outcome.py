"""Verdicts -> the outcome of a case: the one place where printed verdict and status come from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from pytest_agent_eval.results import FailureKind, Status, Verdict
from pytest_agent_eval.suite.known import PAIRWISE

__all__ = ["Outcome", "decide"]

_MAX_NAMES = 6
"""Judges named in a reason; the failure block names all."""


class Outcome(NamedTuple):
    """What a trial came to.

    Attributes:
        status: passed, failed, tolerated, skipped or error.
        kind: whose fault it is; empty when passed or skipped.
        reason: one sentence; empty when passed.
    """

    status: Status
    kind: FailureKind
    reason: str


def decide(
    execution: Verdict | None,
    verdicts: Sequence[Verdict],
    gated: Collection[str],
    *,
    execution_kind: FailureKind = "agent",
) -> Outcome:
    """The outcome of one trial.

    The agent comes first: when it did not work, nothing its judges say makes the trial pass.
    Then judge errors and failing verdicts of judges without a threshold; the same of judges with
    one are tolerated, as their gate decides. Verdicts that assert nothing fail nothing.

    Args:
        execution: the verdict named ``execution``; None when the agent was not started, which
            the caller reports by itself.
        verdicts: one for each judge, in the suite's order.
        gated: names of the judges that have a threshold.
        execution_kind: why a failing ``execution`` failed: agent, timeout, budget or
            infrastructure (which is an error of the case and no verdict on the agent).
    """
    if execution is not None and (execution.error or execution.passed is False):
        status: Status = "error" if execution_kind == "infrastructure" else "failed"
        return Outcome(status, execution_kind, _execution_reason(execution, execution_kind))
    errors = [verdict for verdict in verdicts if verdict.error]
    failures = [verdict for verdict in verdicts if not verdict.error and verdict.passed is False]
    judged = len(verdicts) - sum(verdict.skipped for verdict in verdicts)
    # A comparison says nothing of the case by itself: with or without one it comes to the same.
    own = [verdict for verdict in verdicts if verdict.judge != PAIRWISE]
    strict_errors = [verdict for verdict in errors if verdict.judge not in gated]
    strict_failures = [verdict for verdict in failures if verdict.judge not in gated]
    if strict_errors or strict_failures:
        kind: FailureKind = "verdict" if strict_failures else "judge"
        return Outcome("failed", kind, _reason(failures, errors, judged))
    if errors or failures:
        kind = "verdict" if failures else "judge"
        return Outcome("tolerated", kind, _reason(failures, errors, judged))
    if own and all(verdict.skipped for verdict in own):
        return Outcome("skipped", "", _skip_reason(own))
    return Outcome("passed", "", "")


def _execution_reason(execution: Verdict, kind: FailureKind) -> str:
    said = _first_line(execution.error or execution.rationale)
    return said or f"the execution failed ({kind})"


def _reason(failures: Sequence[Verdict], errors: Sequence[Verdict], judged: int) -> str:
    """``2 of 5 judges failed: tone, schema; judge error: cost: KeyError: 'x'``."""
    parts = []
    if failures:
        noun = "judge" if judged == 1 else "judges"
        parts.append(f"{len(failures)} of {judged} {noun} failed: {_names(failures)}")
    if len(errors) == 1:
        parts.append(f"judge error: {errors[0].judge}: {_first_line(errors[0].error)}")
    elif errors:
        first = f"{errors[0].judge}: {_first_line(errors[0].error)}"
        parts.append(f"{len(errors)} judge errors: {_names(errors)} ({first})")
    return "; ".join(parts)


def _names(verdicts: Sequence[Verdict]) -> str:
    names = [verdict.judge for verdict in verdicts[:_MAX_NAMES]]
    more = len(verdicts) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _skip_reason(verdicts: Sequence[Verdict]) -> str:
    reasons = [f"{verdict.judge} ({_first_line(verdict.rationale)})" for verdict in verdicts]
    shown = ", ".join(reasons[:_MAX_NAMES])
    more = len(reasons) - _MAX_NAMES
    return f"every judge was skipped: {shown}" + (f" and {more} more" if more > 0 else "")


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0].strip()
