"""The trial cost no more than a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.judges.budget import within


def judge(outputs: Mapping[str, Any], max_cost_usd: float = 1.0) -> tuple[bool, str]:
    """Pass if ``cost_usd <= max_cost_usd`` (US dollars); an unknown cost fails."""
    return within(outputs["cost_usd"], max_cost_usd, what="cost", unit=" USD")
