"""What the verdicts of many cases amount to: aggregates, intervals, gates. Pure functions."""

from __future__ import annotations
