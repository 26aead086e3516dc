"""What a task cost whose model was asked several times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_agent_eval.results import Usage

__all__ = ["total_usage"]

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_create_tokens")


def total_usage(turns: Sequence[Usage]) -> Usage:
    """The usage of all turns together.

    A sum is None where one of its parts is unknown, except for tokens of caches: a provider that
    does not count them says nothing.

    Args:
        turns: of one reply each, in order; may be empty.
    """
    if not turns:
        return Usage()
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
        recordings=tuple(key for turn in turns for key in turn.recordings),
    )


def _sum(turns: Sequence[Usage], name: str, *, partly: bool = False) -> Any:
    values = [getattr(turn, name) for turn in turns]
    known = [value for value in values if value is not None]
    return sum(known) if known and (partly or len(known) == len(values)) else None
