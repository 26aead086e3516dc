"""Comparing what a trial used with what it may use."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["within"]


def within(used: Any, limit: float, *, what: str, unit: str) -> tuple[bool, str]:
    """Whether ``used <= limit``; an unknown amount fails, as nothing shows that it is within.

    Args:
        used: a number, or None when unknown.
        limit: inclusive.
        what: what is counted, such as ``cost``.
        unit: follows the numbers, such as `` USD``.
    """
    if used is None or isinstance(used, bool) or not isinstance(used, (int, float)):
        return False, f"{what} unknown: the runner reported none, so the limit cannot be checked"
    if not math.isfinite(used):
        return False, f"{what} unknown: the runner reported {used}"
    sign = "<=" if used <= limit else ">"
    return used <= limit, f"{what} {used:,.6g}{unit} {sign} {limit:,.6g}{unit}"
