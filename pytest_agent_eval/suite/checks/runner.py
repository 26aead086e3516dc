"""``runner``: the type exists and has what it needs; also for runners of steps and judges."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.environment import check_environment
from pytest_agent_eval.suite.findings import Findings, Place
from pytest_agent_eval.suite.known import BUILTIN_RUNNER_TYPES, Known
from pytest_agent_eval.suite.messages import nearest
from pytest_agent_eval.suite.models.runner import EFFORTS

__all__ = ["check_runner", "runner_type"]

_CLAUDE_ONLY = {"permission_mode": "permission modes", "plugin_dirs": "plugin directories"}
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*\Z")


def runner_type(runner: Mapping[str, Any]) -> str:
    """The type a runner's block asks for; empty if it is no string."""
    value = runner.get("type")
    return "claude-code" if value is None else value if isinstance(value, str) else ""


def check_runner(runner: Mapping[str, Any], place: Place, findings: Findings, known: Known) -> None:
    """Check one runner's block."""
    kind = runner_type(runner)
    if kind.strip() and kind not in known.runner_types:
        types = ", ".join(sorted(known.runner_types))
        message = f"unknown runner type {kind!r}{nearest(kind, known.runner_types)}"
        message += f"{'' if message.endswith('?') else ';'} there are {types}"
        findings.problem((*place, "type"), message)
    _check_command(runner, kind, place, findings)
    _check_function(runner, kind, place, findings)
    effort, efforts = runner.get("effort"), EFFORTS.get(kind)
    if isinstance(effort, str) and efforts and effort.strip() and effort not in efforts:
        message = f"{kind} has the efforts {', '.join(efforts)}, not {effort!r}"
        findings.problem((*place, "effort"), message)
    if kind == "codex" and runner.get("workspace_mode") == "repo":
        findings.problem((*place, "workspace_mode"), "codex cannot run with workspace_mode repo")
    if kind in BUILTIN_RUNNER_TYPES and kind != "claude-code":
        for key, what in _CLAUDE_ONLY.items():
            if runner.get(key):
                message = f"ignored: only claude-code has {what}; the type here is {kind}"
                findings.warn((*place, key), message)
    check_environment(runner.get("env"), (*place, "env"), findings)


def _check_command(runner: Mapping[str, Any], kind: str, place: Place, findings: Findings) -> None:
    command = runner.get("command")
    if command is None:
        if kind == "cli":
            findings.problem((*place, "command"), "missing; type cli needs the command to run")
    elif kind in BUILTIN_RUNNER_TYPES and kind != "cli":
        findings.problem((*place, "command"), f"only for type cli; the type here is {kind}")
    elif isinstance(command, str) and kind == "cli":
        try:
            shlex.split(command)
        except ValueError as error:
            message = f"cannot be split into words: {str(error).lower()}"
            findings.problem((*place, "command"), message)


def _check_function(runner: Mapping[str, Any], kind: str, place: Place, findings: Findings) -> None:
    function = runner.get("function")
    if function is None:
        if kind == "python":
            message = "missing; type python needs package.module:callable or fixture:NAME"
            findings.problem((*place, "function"), message)
    elif kind in BUILTIN_RUNNER_TYPES and kind != "python":
        findings.problem((*place, "function"), f"only for type python; the type here is {kind}")
    elif kind == "python" and _is_misspelt(function):
        message = f"must be package.module:callable or fixture:NAME, not {function!r}"
        findings.problem((*place, "function"), message)


def _is_misspelt(function: Any) -> bool:
    # An empty one, or no string, is reported by the model.
    return isinstance(function, str) and bool(function.strip()) and not _FUNCTION.match(function)
