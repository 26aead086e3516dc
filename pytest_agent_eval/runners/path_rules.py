"""``permissions``, in the words of Claude Code."""

from __future__ import annotations

from pytest_agent_eval.suite.models.agent import PathRule, PermissionsConfig

__all__ = ["claude_rules"]

_EDITS = frozenset({"Edit", "Write"})
_READS = frozenset({"Read", "Grep", "Glob"})


def claude_rules(permissions: PermissionsConfig) -> dict[str, list[str]]:
    """``allow`` and ``deny`` as Claude Code's settings have them; a side without rules is absent.

    Claude Code decides about paths by the rules of two tools only: ``Edit(path)`` for all that
    changes files, ``Read(path)`` for all that reads them. So a rule on Write is one on Edit. A rule
    on Grep or Glob denies Read; it allows nothing, because it would allow more than it says.
    """
    found: dict[str, list[str]] = {}
    for side in ("allow", "deny"):
        rules: dict[str, None] = {}
        for rule in getattr(permissions, side):
            if isinstance(rule, PathRule):
                rules.update(dict.fromkeys(_of_path(rule, denies=side == "deny")))
            else:
                rules[rule] = None
        if rules:
            found[side] = list(rules)
    return found


def _of_path(rule: PathRule, *, denies: bool) -> list[str]:
    tools = set(rule.tools)
    found = []
    if "Read" in tools or (denies and tools & (_READS | {"Bash"})):
        found.append("Read")
    if tools & _EDITS or (denies and "Bash" in tools):
        found.append("Edit")
    return [f"{tool}({_pattern(rule.path)})" for tool in found]


def _pattern(path: str) -> str:
    """A path as the rules take it: from the working directory, from a home, or from the root."""
    if path.endswith("/"):
        path += "**"
    if path.startswith("/"):
        return f"//{path.lstrip('/')}"
    if path.startswith("~/"):
        return path
    return f"./{path.removeprefix('./')}"
