"""The few numbers of a summary by which a list of runs tells them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["run_totals"]


def run_totals(summary: Mapping[str, Any]) -> dict[str, Any]:
    """``{cases, gates_missed, cost_usd}`` of what ``summary.yaml`` holds.

    ``cases`` is status -> cases; ``cost_usd`` is None where no cost is known.
    """
    several = summary.get("suites")
    suites = list(several.values()) if isinstance(several, Mapping) else [summary]
    cases: dict[str, int] = {}
    for suite in suites:
        for status, number in suite.get("status", {}).items():
            cases[status] = cases.get(status, 0) + number
    missed = sum(
        gate.get("outcome") == "missed" for suite in suites for gate in suite.get("gates", ())
    )
    costs = [
        cost for suite in suites if (cost := suite.get("usage", {}).get("cost_usd")) is not None
    ]
    return {
        "cases": cases,
        "gates_missed": missed,
        "cost_usd": math.fsum(costs) if costs else None,
    }
