"""``permissions``: which tools a rule on paths can be about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.runner import runner_type
from pytest_agent_eval.suite.findings import Findings, block, entries
from pytest_agent_eval.suite.messages import nearest

__all__ = ["PATH_TOOLS", "check_permissions"]

PATH_TOOLS = ("Read", "Edit", "Write", "Grep", "Glob")


def check_permissions(data: Mapping[str, Any], findings: Findings) -> None:
    """Note path rules about tools that have no path."""
    permissions = block(data, "permissions")
    if runner_type(block(data, "runner")) == "codex" and any(permissions.values()):
        message = "ignored: codex has no such rules; runner.settings.sandbox_mode is its fence"
        findings.warn(("permissions",), message)
    for side in ("allow", "deny"):
        for index, rule in entries(permissions, side):
            tools = rule.get("tools")
            if not isinstance(tools, list):
                continue
            place = ("permissions", side, index, "tools")
            if not tools:
                findings.problem(place, f"must name at least one of {', '.join(PATH_TOOLS)}")
            for number, tool in enumerate(tools):
                if not isinstance(tool, str) or not tool.strip() or tool in PATH_TOOLS:
                    continue
                if tool == "Bash":
                    if side == "allow":
                        message = "Bash has no path: an allow rule with one cannot cover it"
                        findings.problem((*place, number), message)
                    continue
                known = (*PATH_TOOLS, "Bash") if side == "deny" else PATH_TOOLS
                fits = nearest(tool, known, what="path rules are about")
                message = f"a path rule cannot be about {tool!r}{fits}"
                findings.problem((*place, number), message)
