"""Adding up what several invocations of one trial cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_agent_eval.results import Usage

__all__ = ["add_usage", "share_of", "tokens_of"]


def add_usage(first: Usage, second: Usage) -> Usage:
    """What both cost together. What only one of them knows is taken as the sum."""
    return Usage(
        cost_usd=_plus(first.cost_usd, second.cost_usd),
        input_tokens=_plus(first.input_tokens, second.input_tokens),
        output_tokens=_plus(first.output_tokens, second.output_tokens),
        cache_read_tokens=_plus(first.cache_read_tokens, second.cache_read_tokens),
        cache_create_tokens=_plus(first.cache_create_tokens, second.cache_create_tokens),
        num_turns=_plus(first.num_turns, second.num_turns),
        model=second.model or first.model,
        models_used=tuple(dict.fromkeys((*first.models_used, *second.models_used))),
        per_model_usage=_merged(first.per_model_usage, second.per_model_usage),
        per_model_turns=_merged(first.per_model_turns, second.per_model_turns),
        recordings=tuple(dict.fromkeys((*first.recordings, *second.recordings))),
    )


def share_of(usage: Usage, index: int, count: int) -> Usage:
    """One of ``count`` parts of what was spent; counts stay whole, and all parts give the whole.

    Args:
        usage: of the whole.
        index: which part, 0-based.
        count: of parts.
    """

    def part(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: part(item) for key, item in value.items()}
        if not _is_number(value):
            return value
        if isinstance(value, int):
            return value // count + (index < value % count)
        return value / count

    return replace(
        usage,
        cost_usd=part(usage.cost_usd),
        input_tokens=part(usage.input_tokens),
        output_tokens=part(usage.output_tokens),
        cache_read_tokens=part(usage.cache_read_tokens),
        cache_create_tokens=part(usage.cache_create_tokens),
        num_turns=part(usage.num_turns),
        per_model_usage=part(usage.per_model_usage),
        per_model_turns=part(usage.per_model_turns),
    )


def tokens_of(usage: Usage) -> dict[str, int | None] | None:
    """``token_usage`` of a record: counts by kind; None when none is known."""
    tokens = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_create": usage.cache_create_tokens,
    }
    return None if set(tokens.values()) == {None} else tokens


def _plus(first: Any, second: Any) -> Any:
    """The sum of two numbers, of which one may be unknown (None)."""
    if first is None or second is None:
        return second if first is None else first
    return first + second


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(first)
    for name, value in second.items():
        known = found.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            found[name] = _merged(known, value)
        elif _is_number(known) and _is_number(value):
            found[name] = known + value
        else:
            found[name] = value
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
