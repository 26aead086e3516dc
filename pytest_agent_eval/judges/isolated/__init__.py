"""Programs that run produced code away from this process; each runs with ``python -I``."""

from __future__ import annotations
