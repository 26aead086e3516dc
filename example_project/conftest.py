"""Fixtures of the example: the agent that ``evals/triage.eval.yaml`` names as its function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agent.triage import Triage

from pytest_agent_eval import Task


@pytest.fixture(scope="session")
def triage() -> Callable[[Task], Awaitable[dict[str, Any]]]:
    """Set up once and called for every case, several at a time."""
    desk = Triage()

    async def run(task: Task) -> dict[str, Any]:
        return await desk.sort(task.input["message"])

    return run
