"""Runners: the only place where an agent is touched.

:mod:`.base` is the contract, :mod:`.process` the one place that starts processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_agent_eval.runners.base import (
    Execution,
    Failure,
    Runner,
    RunnerContext,
    RunnerType,
    Task,
)

__all__ = ["BUILTIN", "Execution", "Failure", "Runner", "RunnerContext", "RunnerType", "Task"]


def _command(context: RunnerContext) -> Runner:
    from pytest_agent_eval.runners.command import CommandRunner

    return CommandRunner(context)


def _python(context: RunnerContext) -> Runner:
    from pytest_agent_eval.runners.python import PythonRunner

    return PythonRunner(context)


def _claude_code(context: RunnerContext) -> Runner:
    from pytest_agent_eval.runners.claude_code import ClaudeCodeRunner

    return ClaudeCodeRunner(context)


def _codex(context: RunnerContext) -> Runner:
    from pytest_agent_eval.runners.codex import CodexRunner

    return CodexRunner(context)


def _litellm(context: RunnerContext) -> Runner:
    from pytest_agent_eval.runners.litellm import LitellmRunner

    return LitellmRunner(context)


def _responses(context: RunnerContext) -> Runner:
    from pytest_agent_eval.runners.responses_api import ResponsesRunner

    return ResponsesRunner(context)


BUILTIN: Mapping[str, RunnerType] = MappingProxyType(
    {
        "cli": _command,
        "python": _python,
        "claude-code": _claude_code,
        "codex": _codex,
        "litellm": _litellm,
        "responses-api": _responses,
    }
)
"""Name of ``runner.type`` -> what makes the runner. Imported when a suite asks for it."""
