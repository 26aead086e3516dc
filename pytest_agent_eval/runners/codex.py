"""``runner.type: codex``: the agent is the Codex CLI, without a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.agent_tool import (
    AgentTool,
    bare_model,
    ended_execution,
    own_settings,
)
from pytest_agent_eval.runners.base import Execution, RunnerContext, Task
from pytest_agent_eval.runners.codex_story import CodexStory

__all__ = ["CodexRunner", "toml_value"]

_PROVIDERS = ("openai", "azure")


class CodexRunner:
    """Runs ``codex exec`` in the workspace, and translates what it prints.

    ``runner.settings`` are settings of its ``config.toml``. Unless they name a ``sandbox_mode``,
    the agent may write below its workspace and reach no network.

    Attributes:
        lets_others_work: it gives the baton away where it waits.

    Raises:
        RunnerError: a setting has no form in TOML.
    """

    lets_others_work = True

    def __init__(self, context: RunnerContext) -> None:
        self._tool = AgentTool.of(
            context, "codex", title="Codex", install="npm install -g @openai/codex"
        )
        settings = {"sandbox_mode": "workspace-write", **own_settings(context)}
        self._settings = [f"{name}={toml_value(item)}" for name, item in settings.items()]

    def run(self, task: Task) -> Execution:
        """Run it once.

        Raises:
            RunnerError: it is missing or refuses its arguments, or is asked nothing.
        """
        outcome, lines, notes = self._tool.run(task, list(self._arguments(task)), {})
        story = CodexStory(lines, model=bare_model(task.model, *_PROVIDERS))
        return ended_execution(task, outcome, story, notes)

    def _arguments(self, task: Task) -> Iterator[str]:
        yield from ("exec", "--json", "--ephemeral", "--skip-git-repo-check")
        if task.model:
            yield from ("--model", bare_model(task.model, *_PROVIDERS))
        for setting in self._settings:
            yield from ("--config", setting)
        if task.effort:
            yield from ("--config", f"model_reasoning_effort={toml_value(task.effort)}")
        if task.system_prompt:
            yield from ("--config", f"developer_instructions={toml_value(task.system_prompt)}")
        yield from ("--", _asked(task))


def _asked(task: Task) -> str:
    if task.skill and not task.prompt:
        return f"${task.skill.removeprefix('$')} {task.arguments}".rstrip()
    if not task.text:
        raise RunnerError(
            "Codex is asked nothing: set execution.prompt or execution.skill", lasting=True
        )
    return task.text


def toml_value(value: Any) -> str:
    """A value of YAML as one of TOML, on one line.

    Raises:
        RunnerError: TOML has no such value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # A basic string of TOML is one of JSON, but for one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{toml_value(str(key))} = {toml_value(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    raise RunnerError(f"runner.settings: {value!r} has no form in TOML", lasting=True)
