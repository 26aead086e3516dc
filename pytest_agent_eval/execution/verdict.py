"""The verdict named ``execution``: whether the agent itself worked."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from typing import Literal

from pytest_agent_eval.execution.names import clean_text
from pytest_agent_eval.execution.record import RECORD, STDERR, STDOUT
from pytest_agent_eval.results import FailureKind, Usage, Verdict
from pytest_agent_eval.runners.base import Execution
from pytest_agent_eval.runners.capped_log import read_tail

__all__ = ["EXECUTION", "judge_execution", "last_lines", "last_said"]

EXECUTION = "execution"

_NOTHING = "produced nothing: no output, no file in output/, no changed file"
_LINES = 20
_BYTES = 8192


def judge_execution(
    execution: Execution,
    *,
    usage: Usage,
    budget: float,
    allowed: Sequence[int] | Literal["any"],
    produced: bool,
    directory: str,
) -> tuple[Verdict, FailureKind]:
    """The verdict, and whose fault it is when it fails.

    Args:
        execution: of the runner.
        usage: its usage, completed by the metrics file.
        budget: ``max_budget_usd``.
        allowed: ``allow_exit_codes``.
        produced: there is output text, an output file or an edit.
        directory: of the trial, which holds the logs.
    """
    kind, why = _fault(execution, usage, budget, allowed, produced)
    if not kind:
        return Verdict(EXECUTION, value=True, passed=True), ""
    summary, _, more = why.partition("\n")
    parts = (more.strip("\n"), last_lines(directory))
    detail = "\n\n".join(part for part in parts if part)
    verdict = Verdict(
        EXECUTION,
        value=False,
        passed=False,
        rationale=clean_text(summary),
        detail=clean_text(detail),
    )
    return verdict, kind


def _fault(
    execution: Execution,
    usage: Usage,
    budget: float,
    allowed: Sequence[int] | Literal["any"],
    produced: bool,
) -> tuple[FailureKind, str]:
    if execution.failure:
        return execution.failure, execution.error or f"the agent failed ({execution.failure})"
    if execution.timed_out:
        return "timeout", execution.error or "timed out"
    code = execution.exit_code
    if code is None and allowed != "any":
        return "agent", execution.error or "ended without an exit status"
    if code is not None and allowed != "any" and code not in allowed:
        return "agent", _exit(code)
    if usage.cost_usd is not None and usage.cost_usd > budget:
        spent = f"reported cost ${usage.cost_usd:.2f}"
        if f"{usage.cost_usd:.2f}" == f"{budget:.2f}":  # a cent is too coarse to show it
            spent = f"reported cost ${usage.cost_usd:g}"
        return "budget", f"{spent} is over the budget of ${budget:.2f}"
    return ("", "") if produced else ("agent", _NOTHING)


def _exit(code: int) -> str:
    if code >= 0:
        return f"exited with status {code}"
    try:
        return f"killed by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"killed by signal {-code}"


def last_lines(directory: str) -> str:
    """The last lines of stderr and of stdout, each under its name; empty without output."""
    parts = []
    for name in (STDOUT, STDERR):
        lines = read_tail(os.path.join(directory, name), _BYTES).strip("\n").splitlines()[-_LINES:]
        if lines:
            parts.append("\n".join((f"{name.partition('.')[0]}:", *lines)))
    return "\n".join(parts)


def last_said(directory: str) -> str:
    """The last lines of the logs; of the final message where a runner leaves no logs."""
    lines = last_lines(directory)
    if lines:
        return lines
    try:
        with open(os.path.join(directory, RECORD), encoding="utf-8") as stream:
            output = json.load(stream)["output"]
    except (OSError, ValueError, KeyError):
        return ""
    return "\n".join(str(output).splitlines()[-_LINES:])
