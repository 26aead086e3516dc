"""The builtin judges, one file each, in directories by category."""

from __future__ import annotations
