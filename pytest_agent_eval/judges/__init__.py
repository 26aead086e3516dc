"""Judges: a record in, a verdict out."""

from __future__ import annotations

from pytest_agent_eval.judges.base import Judge, JudgeContext, JudgeKind
from pytest_agent_eval.judges.bound import BoundJudge
from pytest_agent_eval.judges.builtin_files import builtin_names
from pytest_agent_eval.judges.registry import make_judges
from pytest_agent_eval.judges.verdict import to_verdict

__all__ = [
    "BoundJudge",
    "Judge",
    "JudgeContext",
    "JudgeKind",
    "builtin_names",
    "make_judges",
    "to_verdict",
]
