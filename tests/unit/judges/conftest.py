from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RecordFactory = Callable[..., dict[str, Any]]


@pytest.fixture
def record() -> RecordFactory:
    """A record with every key a judge of this room reads; keywords replace values."""

    def make(**values: Any) -> dict[str, Any]:
        return {
            "files": {},
            "main_content": "",
            "main_file": None,
            "tool_calls": [],
            "events": [],
            "annotations": {},
            "input": {},
            "cost_usd": None,
            "token_usage": None,
            "duration_s": 1.0,
            "num_turns": None,
            "case": "case-001",
            "split": "dev",
            "tags": {},
            "group": None,
            "trial": 1,
            "variant": None,
            "case_dir": "/nowhere/cases/case-001",
            "workspace": "/nowhere/workspace",
            **values,
        }

    return make
