"""Names of run directories."""

from __future__ import annotations

import secrets
import time

__all__ = ["new_run_name"]


def new_run_name() -> str:
    """``<UTC time>-<4 hex>``: sorts by time, and differs for runs of the same second."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
