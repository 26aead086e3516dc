"""What people and other tools read of a run. Pure: values in, text out."""

from __future__ import annotations
