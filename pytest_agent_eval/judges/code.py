"""``check`` judges: the body of a function of ``outputs`` and ``arguments``, in eval.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.judges.arguments import copies_of
from pytest_agent_eval.judges.base import Judge, JudgeContext
from pytest_agent_eval.suite.check_source import compile_check

__all__ = ["make_check"]


def make_check(context: JudgeContext) -> Judge:
    """Compile a check once; its line numbers are those of the suite's file.

    Raises:
        SuiteError: a syntax error, at its line.
    """
    config, suite = context.config, context.suite
    code = compile_check(
        config.check or "",
        file=os.fspath(suite.file),
        line=suite.value_line(f"{context.place}.check") or 1,
        name=config.name,
    )
    # Every check has globals of its own: nothing leaks from one judge into the next.
    namespace: dict[str, Any] = {"__name__": f"check {config.name}", "__file__": code.co_filename}
    exec(code, namespace)
    function = namespace["check"]
    arguments = copies_of(config.arguments)

    def judge(record: Mapping[str, Any]) -> Any:
        return function(record, arguments())

    return judge
