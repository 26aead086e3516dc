"""What a task cost whose model was asked several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_agent_eval.llm import ModelReply
from pytest_agent_eval.results import Usage

__all__ = ["total_usage"]

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_create_tokens")


def total_usage(replies: Sequence[ModelReply]) -> Usage:
    """The usage of all replies together.

    A sum is None where one of its parts is unknown, except for tokens of caches: a provider that
    does not count them says nothing.

    Args:
        replies: in order; may be empty.
    """
    if not replies:
        return Usage()
    turns = [reply.usage for reply in replies]
    models: dict[str, list[Usage]] = {}
    for turn in turns:
        models.setdefault(turn.model or "", []).append(turn)
    models.pop("", None)
    return Usage(
        cost_usd=_sum(turns, "cost_usd"),
        **{name: _sum(turns, name, partly=name.startswith("cache")) for name in _COUNTS},
        num_turns=len(turns),
        model=turns[-1].model,
        models_used=tuple(models),
        per_model_usage={
            model: {
                "input": _sum(own, "input_tokens"),
                "output": _sum(own, "output_tokens"),
                "cost_usd": _sum(own, "cost_usd"),
            }
            for model, own in models.items()
        },
        per_model_turns={model: len(own) for model, own in models.items()},
        recorded_usd=_recorded(replies),
        recordings=tuple(key for turn in turns for key in turn.recordings),
    )


def _recorded(replies: Sequence[ModelReply]) -> float | None:
    """US dollars; None where nothing was read from a recording, or the whole cost is unknown."""
    known = [reply.usage.cost_usd for reply in replies if reply.recorded]
    if not known or any(reply.usage.cost_usd is None for reply in replies):
        return None
    return sum(cost for cost in known if cost is not None)


def _sum(turns: Sequence[Usage], name: str, *, partly: bool = False) -> Any:
    values = [getattr(turn, name) for turn in turns]
    known = [value for value in values if value is not None]
    return sum(known) if known and (partly or len(known) == len(values)) else None
