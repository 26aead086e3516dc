"""Numbers as people read them."""

from __future__ import annotations

from pytest_agent_eval.evidence.intervals import Interval
from pytest_agent_eval.results import Value

__all__ = ["count", "estimate", "money", "score", "seconds", "tokens"]

_MOST_DECIMALS = 6


def estimate(value: float, interval: Interval | None) -> str:
    """``3.72 [3.41, 4.02]``, with as many decimals as it takes to keep the ends apart.

    An interval is never printed with zero width, nor a value outside of it.
    """
    if interval is None:
        return f"{value:.2f}"
    decimals = 2
    while decimals < _MOST_DECIMALS and (
        f"{interval.low:.{decimals}f}" == f"{interval.high:.{decimals}f}"
    ):
        decimals += 1
    return f"{value:.{decimals}f} [{interval.low:.{decimals}f}, {interval.high:.{decimals}f}]"


def score(value: Value) -> str:
    """A verdict's value: ``true``, ``4``, ``3.75``."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def count(number: int, noun: str) -> str:
    """``1 case``, ``40 cases``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def money(usd: float) -> str:
    """``$1.23``, with more decimals below ten cents."""
    return f"${usd:,.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def seconds(duration: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if duration < 10:
        return f"{duration:.1f} s"
    whole = round(duration)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def tokens(number: int) -> str:
    """``950``, ``12.3k``, ``4.6M``."""
    if number < 1000:
        return str(number)
    if number < 999_950:
        return f"{number / 1000:.1f}k"
    return f"{number / 1e6:.1f}M"
