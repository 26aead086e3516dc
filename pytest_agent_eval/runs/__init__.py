"""The run directory: what a run knew, written as it goes, read by everything that comes later."""

from __future__ import annotations
