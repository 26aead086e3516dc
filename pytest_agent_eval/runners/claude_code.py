"""``runner.type: claude-code``: the agent is Claude Code, without a terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.agent_tool import (
    AgentTool,
    bare_model,
    ended_execution,
    own_settings,
)
from pytest_agent_eval.runners.base import Execution, RunnerContext, Task
from pytest_agent_eval.runners.claude_interception import Interception, with_hook
from pytest_agent_eval.runners.claude_story import ClaudeStory
from pytest_agent_eval.runners.path_rules import claude_rules

__all__ = ["ClaudeCodeRunner"]

_PROVIDERS = ("anthropic", "bedrock", "vertex_ai")
_DEFAULTS = {
    "DISABLE_AUTOUPDATER": "1",  # all cases of a run meet the same version
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # and none what another one remembered
}
_LEAST_USD = 0.000001
"""Claude Code takes no budget of 0; with this one it stops after the first answer."""


class ClaudeCodeRunner:
    """Runs ``claude --print`` in the workspace, and translates what it prints.

    Attributes:
        lets_others_work: it gives the baton away where it waits.

    Raises:
        RunnerError: a plugin directory does not exist.
    """

    lets_others_work = True

    def __init__(self, context: RunnerContext) -> None:
        config = context.suite.config
        self._permission_mode = config.runner.permission_mode
        self._tool = AgentTool.of(
            context,
            "claude",
            title="Claude Code",
            install="npm install -g @anthropic-ai/claude-code",
            defaults=_DEFAULTS,
        )
        self._plugins = [
            os.path.join(context.suite.directory, os.path.expanduser(path))
            for path in config.runner.plugin_dirs
        ]
        for path in self._plugins:
            if not os.path.exists(path):  # Claude Code itself would say nothing
                raise RunnerError(f"runner.plugin_dirs: there is no {path}", lasting=True)
        settings = own_settings(context)
        rules = claude_rules(config.permissions)
        self._settings = _with_rules(settings, rules) if rules else settings

    def run(self, task: Task) -> Execution:
        """Run it once.

        Raises:
            RunnerError: it is missing or refuses its arguments, is asked nothing, does not know
                the skill, or has no hooks although the suite's handlers need one.
        """
        env = {}
        if task.subagent_model:
            env["CLAUDE_CODE_SUBAGENT_MODEL"] = bare_model(task.subagent_model, *_PROVIDERS)
        if not task.interaction.patterns:
            return self._ran(task, env, self._settings)
        if self._settings.get("disableAllHooks"):
            raise RunnerError(
                "runner.settings.disableAllHooks: the handlers of inputs.tools need a hook",
                lasting=True,
            )
        with Interception(task, self._tool.environment(task, env)) as interception:
            settings = with_hook(self._settings, interception.command, task)
            watched = replace(task, cancelled=interception.ends)
            execution = self._ran(watched, env, settings, interception)
        error = interception.error
        if error is None:
            return execution
        return replace(execution, failure="infrastructure", error=str(error), lasting=error.lasting)

    def _ran(
        self,
        task: Task,
        env: Mapping[str, str],
        settings: Mapping[str, Any],
        interception: Interception | None = None,
    ) -> Execution:
        outcome, lines, notes = self._tool.run(task, list(self._arguments(task, settings)), env)
        story = ClaudeStory(lines, interception.denied if interception is not None else ())
        command = _command(task)
        if command and story.lacks(command):
            key = "prompt" if task.prompt else "skill"
            raise RunnerError(
                f"execution.{key}: Claude Code knows no skill {command} in the workspace; list "
                "the files it is made of in dataset.workspace.files or runner.plugin_dirs",
                lasting=True,
            )
        return ended_execution(task, outcome, story, notes)

    def _arguments(self, task: Task, settings: Mapping[str, Any]) -> Iterator[str]:
        yield from ("--print", "--output-format", "stream-json", "--verbose")
        yield "--no-session-persistence"
        yield from ("--max-budget-usd", f"{max(task.max_budget_usd, _LEAST_USD):.6f}")
        if task.model:
            yield from ("--model", bare_model(task.model, *_PROVIDERS))
        if task.effort:
            yield from ("--effort", task.effort)
        if task.system_prompt:
            yield from ("--append-system-prompt", task.system_prompt)
        if self._permission_mode:
            yield from ("--permission-mode", self._permission_mode)
        for path in self._plugins:
            yield from ("--plugin-dir", path)
        if settings:
            yield from ("--settings", json.dumps(settings, ensure_ascii=False))
        if task.interaction.answers_questions:
            # It has AskUserQuestion only where somebody could answer. Nobody can on its standard
            # input, which is closed: what no hook allows is refused as it is without this.
            yield from ("--permission-prompt-tool", "stdio")
        yield from ("--", _asked(task))


def _command(task: Task) -> str:
    """The skill or command that the task names; empty where it is asked in words."""
    if task.skill and not task.prompt:
        return task.skill
    first = next(iter(task.text.split(maxsplit=1)), "")
    return first.removeprefix("/") if first.startswith("/") else ""


def _asked(task: Task) -> str:
    if task.skill and not task.prompt:
        return f"/{task.skill.removeprefix('/')} {task.arguments}".rstrip()
    if not task.text:
        raise RunnerError(
            "Claude Code is asked nothing: set execution.prompt or execution.skill", lasting=True
        )
    return task.text


def _with_rules(settings: Mapping[str, Any], rules: Mapping[str, list[str]]) -> dict[str, Any]:
    """The settings with the rules of ``permissions`` besides their own."""
    own = settings.get("permissions")
    merged: dict[str, Any] = dict(own) if isinstance(own, Mapping) else {}
    for side, found in rules.items():
        before = merged.get(side)
        merged[side] = [*(before if isinstance(before, list | tuple) else ()), *found]
    return {**settings, "permissions": merged}
