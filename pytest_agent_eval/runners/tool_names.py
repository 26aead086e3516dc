"""Tools that an agent may use, named as Claude Code names them, in the words of each runner."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["MODEL_TOOLS", "claude_permissions", "model_tools"]

MODEL_TOOLS = {
    "read": ("read",),
    "grep": ("read", "list"),
    "glob": ("list",),
    "ls": ("list",),
    "list": ("list",),
    "write": ("write",),
    "edit": ("write",),
    "bash": ("bash",),
}
"""Name in lower case -> tools of a model that do the same."""

_CLAUDE = (
    "Bash",
    "Read",
    "Grep",
    "Glob",
    "NotebookEdit",
    "WebFetch",
    "WebSearch",
    "Agent",
    "Task",
    "Skill",
)
"""Tools of Claude Code that are taken away unless they are allowed."""

_READERS = frozenset({"Read", "Grep", "Glob"})
_EDITORS = frozenset({"Write", "Edit"})


def model_tools(names: Sequence[str]) -> tuple[str, ...]:
    """The tools of a model (litellm, responses-api) that do what these do; others are left out."""
    found: dict[str, None] = {}
    for name in names:
        found.update(dict.fromkeys(MODEL_TOOLS.get(_bare(name).lower(), ())))
    return tuple(found)


def claude_permissions(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What Claude Code is to allow and to deny an agent with these tools: (allow, deny).

    It may write below ``output/`` in any case, and read only below its working directory unless a
    pattern names another place: what it reads there needs no rule. Other names and patterns
    (``Bash(make test)``, ``mcp__docs``) are passed on as they are.
    """
    allowed = {_bare(name) for name in names}
    if "Agent" in allowed or "Task" in allowed:  # two names of one tool
        allowed |= {"Agent", "Task"}
    allow: dict[str, None] = {}
    for name in names:
        if name in _EDITORS:
            allow["Edit(./**)"] = None
        elif name not in _READERS:
            allow[name] = None
    allow["Edit(./output/**)"] = None
    return tuple(allow), tuple(name for name in _CLAUDE if name not in allowed)


def _bare(name: str) -> str:
    return name.partition("(")[0].strip()
