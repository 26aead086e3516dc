"""Which tools a text speaks of: the handlers of ``inputs.tools`` are matched by prose."""

from __future__ import annotations

import re

__all__ = ["QUESTION_TOOL", "TOOLS", "tools_in"]

QUESTION_TOOL = "AskUserQuestion"
"""The tool by which an agent asks its user."""

TOOLS = frozenset(
    {
        *(QUESTION_TOOL, "Agent", "Bash", "BashOutput", "Edit", "EnterPlanMode", "EnterWorktree"),
        *("ExitPlanMode", "ExitWorktree", "Glob", "Grep", "KillBash", "KillShell", "LS"),
        *("ListMcpResourcesTool", "MultiEdit", "NotebookEdit", "NotebookRead", "Read"),
        *("ReadMcpResourceTool", "Skill", "SlashCommand", "Task", "TaskCreate", "TaskGet"),
        *("TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch"),
        *("WebFetch", "WebSearch", "Write"),
    }
)
"""Names of Claude Code's tools; other runners' tools go by them as well."""

_WORD = re.compile(r"mcp__[A-Za-z0-9_-]+\*?|[A-Za-z]+(?:-[A-Za-z]+)*")
_QUESTION = re.compile(r"\b(?:question|ask)", re.IGNORECASE)


def tools_in(prose: str) -> tuple[str, ...]:
    """The tools that a text names, in its order, or patterns for them; empty where it names none.

    A name counts as a whole word in its own letter case: *read-only access* names no tool. A text
    that names none and speaks of questions, or of asking, means ``AskUserQuestion``.

    Args:
        prose: such as ``questions about the deployment`` or ``calls of mcp__tickets__*``.
    """
    words = (word.rstrip("-") for word in _WORD.findall(prose))
    named = dict.fromkeys(word for word in words if word in TOOLS or word.startswith("mcp__"))
    if not named and _QUESTION.search(prose):
        return (QUESTION_TOOL,)
    return tuple(named)
