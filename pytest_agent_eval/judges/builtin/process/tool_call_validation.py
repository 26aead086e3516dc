"""No tool call ended in an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.judges.calls import calls_of
from pytest_agent_eval.judges.verdict import shorten


def judge(outputs: Mapping[str, Any], include_subagents: bool = True) -> tuple[bool, str]:
    """Pass if no tool call's result is marked as an error; the text of a result does not count.

    Args:
        outputs: the record.
        include_subagents: judge the calls of subagents too.
    """
    calls = calls_of(outputs, include_subagents=include_subagents)
    failed = [call for call in calls if call.failed]
    if not calls:
        return True, "no tool calls: nothing to verify"
    if not failed:
        return True, f"none of {len(calls)} tool calls ended in an error"
    shown = "; ".join(
        f"{call.name}: {shorten(' '.join(call.result.split()) or 'no text', 120)}"
        for call in failed[:5]
    )
    more = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
    return False, f"{len(failed)} of {len(calls)} tool calls ended in an error: {shown}{more}"
