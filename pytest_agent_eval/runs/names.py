"""Names of run directories."""

from __future__ import annotations

import time

__all__ = ["new_run_name"]


def new_run_name() -> str:
    """``<UTC time>-<4 hex>``: names sort by time, as the digits are the fraction of the second
    (in 65,536ths). Runs of one moment can have one name; who makes the directory notices.
    """
    whole, rest = divmod(time.time_ns(), 1_000_000_000)
    fraction = (rest << 16) // 1_000_000_000
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(whole))}-{fraction:04x}"
