"""``inputs.tools``: one answer a handler, and a runner that can intercept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.runner import runner_type
from pytest_agent_eval.suite.findings import Findings, Place, block, entries

__all__ = ["check_interception", "check_tools"]

_CAN = ("claude-code", "litellm", "python")
_CANNOT = frozenset({"codex", "responses-api"})


def check_tools(data: Mapping[str, Any], findings: Findings) -> None:
    """Check what concerns more than one key of ``inputs``."""
    inputs = block(data, "inputs")
    for index, tool in entries(inputs, "tools"):
        if tool.get("prompt") is not None and tool.get("prompt_file") is not None:
            findings.problem(
                ("inputs", "tools", index), "prompt and prompt_file exclude each other"
            )


def check_interception(data: Mapping[str, Any], findings: Findings, place: Place) -> None:
    """Check that the runners of a suite with handlers can intercept what an agent calls.

    Args:
        data: of the suite.
        findings: of the suite.
        place: of the handlers, or of what stands for them.
    """
    kinds = [runner_type(block(data, "runner"))]
    for _, step in entries(block(data, "execution"), "steps"):
        own = block(step, "runner")
        kinds += [runner_type(own)] if own.get("type") is not None else []
    for kind in dict.fromkeys(kinds):
        if kind in _CANNOT:
            message = f"{kind} cannot intercept tool calls; {', '.join(_CAN)} can"
            findings.problem(place, message)
        elif kind == "cli":
            message = "a command's tool calls cannot be intercepted: these handlers are not used"
            findings.warn(place, message)
