"""The trial took no more turns than a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.judges.budget import within


def judge(outputs: Mapping[str, Any], max_turns: int) -> tuple[bool, str]:
    """Pass if ``num_turns <= max_turns``; an unknown number fails."""
    return within(outputs["num_turns"], max_turns, what="turns", unit="")
