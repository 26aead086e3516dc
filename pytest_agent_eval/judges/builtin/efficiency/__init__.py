"""Judges of what a trial cost."""

from __future__ import annotations
