"""A skill for a model that knows none: its text is what the model is told."""

from __future__ import annotations

import re

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.base import Task
from pytest_agent_eval.runners.model_tools import WorkspaceTools

__all__ = ["PLACES", "skill_text"]

PLACES = (".agents/skills", ".claude/skills", ".skills", "skills")
"""Directories of the workspace in which a skill is looked for, in this order."""

_NAME = re.compile(r"[^/\\\0]+\Z")


def skill_text(task: Task, tools: WorkspaceTools) -> str:
    """What the user says to have a skill followed.

    Raises:
        RunnerError: there is no such skill in the workspace.
    """
    name = task.skill.removeprefix("/")
    if _NAME.match(name) and name not in (".", ".."):
        for place in PLACES:
            text = tools.text(f"{place}/{name}/SKILL.md")
            if text is not None:
                asked = f"\n\nArguments: {task.arguments}" if task.arguments else ""
                return f"Follow the skill {name}. Its files are in {place}/{name}.\n\n{text}{asked}"
    places = ", ".join(f"{place}/{name}" for place in PLACES)
    raise RunnerError(
        f"execution.skill: there is no skill {name} in the workspace (looked for SKILL.md in "
        f"{places}); list its directory in dataset.workspace.files or in project_files of "
        "runner.settings",
        lasting=True,
    )
