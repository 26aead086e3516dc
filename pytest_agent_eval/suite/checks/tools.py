"""``inputs.tools``: one answer a handler, and a runner that can intercept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.runner import runner_type
from pytest_agent_eval.suite.findings import Findings, block, entries

__all__ = ["check_tools"]


def check_tools(data: Mapping[str, Any], findings: Findings) -> None:
    """Check what concerns more than one key of ``inputs``."""
    inputs = block(data, "inputs")
    for index, tool in entries(inputs, "tools"):
        if tool.get("prompt") is not None and tool.get("prompt_file") is not None:
            findings.problem(
                ("inputs", "tools", index), "prompt and prompt_file exclude each other"
            )
    if inputs.get("tools") and runner_type(block(data, "runner")) == "codex":
        findings.problem(("inputs", "tools"), "codex cannot intercept tool calls")
