"""Judges of how the agent worked."""

from __future__ import annotations
