"""What calls of models took, as it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_agent_eval.llm.request import ModelReply

__all__ = ["asked_of"]


def asked_of(replies: Sequence[ModelReply]) -> dict[str, Any]:
    """``asked`` of a verdict, see :class:`~pytest_agent_eval.results.Verdict`.

    Args:
        replies: in order; at least one.
    """
    return {
        "model": replies[-1].model,
        "calls": len(replies),
        "recorded": sum(reply.recorded for reply in replies),
        "recordings": [key for reply in replies for key in reply.usage.recordings],
        **_totals(replies),
    }


def _totals(replies: Sequence[ModelReply]) -> dict[str, Any]:
    """Tokens of all calls and US dollars of those that were made now; None: unknown."""
    totals: dict[str, Any] = {}
    for key, counted in (
        ("cost_usd", [reply for reply in replies if not reply.recorded]),
        ("input_tokens", replies),
        ("output_tokens", replies),
    ):
        found = [getattr(reply.usage, key) for reply in counted]
        totals[key] = None if None in found else sum(found)
    return totals
