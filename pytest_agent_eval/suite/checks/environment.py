"""``env``: names that can be set."""

from __future__ import annotations

from typing import Any

from pytest_agent_eval.suite.findings import Findings, Place

__all__ = ["check_environment"]


def check_environment(env: Any, place: Place, findings: Findings) -> None:
    """Note names and values no process can be given; types are the models' business."""
    if not isinstance(env, dict):
        return
    for name, value in env.items():
        if isinstance(name, str) and (not name or "=" in name or "\0" in name):
            findings.problem((*place, name), f"{name!r} is no name of a variable")
        if isinstance(value, str) and "\0" in value:
            findings.problem((*place, name), "must not hold a NUL character")
