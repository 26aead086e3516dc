"""What a JUnit report says of a case besides its outcome."""

from __future__ import annotations

from pytest_agent_eval.reports.numbers import score
from pytest_agent_eval.reports.printable import printable, shortened
from pytest_agent_eval.results import TrialResult, Verdict

__all__ = ["properties"]

_LONGEST = 500


def properties(result: TrialResult) -> list[tuple[str, str]]:
    """Name and value of each property of a trial, without characters that XML forbids.

    ``agent_eval.split``, ``.group``, ``.category``, ``.variant``, ``.trial``, ``.status``,
    ``.kind``, ``.cost_usd``, ``.duration_s``, ``.record`` and, for each judge,
    ``agent_eval.verdict.<judge>`` (``true``, ``4``, ``skipped``, ``error``) and
    ``agent_eval.rationale.<judge>``. What is unknown is left out.
    """
    pairs = [
        ("split", result.split),
        ("group", result.group),
        ("category", result.category),
        ("variant", result.variant),
        ("trial", str(result.trial)),
        ("status", result.status),
        ("kind", result.kind),
        ("cost_usd", None if result.usage.cost_usd is None else f"{result.usage.cost_usd:.6g}"),
        ("duration_s", f"{result.duration_s:.3f}"),
        ("record", result.record),
    ]
    for verdict in _all_verdicts(result):
        pairs.append((f"verdict.{verdict.judge}", _said(verdict)))
        pairs.append((f"rationale.{verdict.judge}", verdict.error or verdict.rationale))
    return [
        (f"agent_eval.{printable(name)}", shortened(printable(value), _LONGEST))
        for name, value in pairs
        if value
    ]


def _all_verdicts(result: TrialResult) -> list[Verdict]:
    return [*([result.execution] if result.execution else []), *result.verdicts]


def _said(verdict: Verdict) -> str:
    if verdict.error:
        return "error"
    return "skipped" if verdict.skipped else score(verdict.value)
