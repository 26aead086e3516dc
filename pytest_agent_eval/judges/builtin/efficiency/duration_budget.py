"""The trial took no longer than a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.judges.budget import within


def judge(outputs: Mapping[str, Any], max_seconds: float) -> tuple[bool, str]:
    """Pass if ``duration_s <= max_seconds``; an unknown duration fails."""
    return within(outputs["duration_s"], max_seconds, what="duration", unit=" s")
