"""Judges of what the agent produced."""

from __future__ import annotations
