"""Naming the place of a judge's problem in the suite's file."""

from __future__ import annotations

from pytest_agent_eval.errors import Problem
from pytest_agent_eval.judges.base import JudgeContext

__all__ = ["problem"]


def problem(context: JudgeContext, key: str, message: str) -> Problem:
    """A problem with one key of a judge's entry; an empty key means the entry itself."""
    path = f"{context.place}.{key}" if key else context.place
    suite = context.suite
    return Problem(message, path=path, file=suite.shown, line=suite.line(path))
