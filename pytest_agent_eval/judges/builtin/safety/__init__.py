"""Judges of harm."""

from __future__ import annotations
