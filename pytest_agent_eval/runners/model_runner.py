"""Runners whose agent is a model: it is asked through the gateway until the task has ended.

What they have in common, whatever the protocol: tools, time, money, recordings, failures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from pytest_agent_eval.deadline import DeadlineExceeded, DeadlineThread, Step, Steps
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.llm import Gateway, ModelReply, ModelRequest
from pytest_agent_eval.llm.errors import ModelError
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.runners.base import Execution, RunnerContext, Task
from pytest_agent_eval.runners.environment import caller_environment, resolve_variables
from pytest_agent_eval.runners.model_skill import skill_text
from pytest_agent_eval.runners.model_talk import Limits, Talk, Voice
from pytest_agent_eval.runners.model_tools import (
    ASK,
    MAX_RESULT_BYTES,
    SKILL_TOOLS,
    Shell,
    WorkspaceTools,
)
from pytest_agent_eval.runners.sandbox import Sandbox, sandbox_of
from pytest_agent_eval.suite.tool_handlers import HANDLERS

__all__ = ["MAX_TURNS", "ModelRunner"]

MAX_TURNS = 50
"""Questions to the model in one task, where ``runner.settings.max_turns`` says nothing."""

_ASKER = "case {case}, the agent"


class ModelRunner:
    """Asks a model to do the task, which may call tools until it is done.

    A subclass says in which protocol: it makes the first question, and the voice that understands
    the replies. Without tools the model is asked once.

    Attributes:
        replays: it asks models by the gateway alone.
        settings: ``runner.settings``.
        tools: names of the tools of the workspace; those of a skill where none are set.

    Raises:
        RunnerError: the suite asks for a sandbox that does not work here.
    """

    replays = True
    max_tokens = "max_tokens"

    def __init__(self, context: RunnerContext) -> None:
        suite = context.suite
        runner = suite.config.runner
        self.settings: Mapping[str, Any] = runner.settings
        self._gateway = context.gateway or Gateway(
            suite.directory,
            api_base=suite.config.models.api_base or "",
            secrets=Secrets.of(os.environ),
        )
        listed = self.settings.get("tools")
        steps = [step.skill for step in suite.config.execution.steps]
        if listed is None and (suite.config.execution.skill or any(steps)):
            listed = SKILL_TOOLS
        self.tools = tuple(name for name in listed or () if isinstance(name, str))
        self._limits = Limits(self.settings.get("max_turns") or MAX_TURNS, self.max_tokens)
        dataset = str(suite.dataset_directory)
        # In a checkout these are below the workspace, and answers are in all of them.
        self._hidden = (
            dataset,
            str(self._gateway.recordings.directory),
            str(context.rootdir / ".agent-eval"),
            str(suite.directory / HANDLERS),
        )
        base = caller_environment(runner.env_policy or "clean", os.environ, hidden=(dataset,))
        caller = os.environ if context.variables is None else context.variables
        env, self._notes = resolve_variables(runner.env, caller, key="runner.env")
        # Files are kept to the workspace in any case: only commands need a sandbox.
        fenced = "bash" in self.tools
        sandbox = sandbox_of(context, {**base, **env}) if fenced else Sandbox()
        cap = min(context.max_output_bytes, MAX_RESULT_BYTES)
        self._shell = Shell(base, env, sandbox, cap)
        self._thread = DeadlineThread(f"agent-eval-{runner.type}")

    @property
    def description(self) -> str:
        """How commands are kept apart, for people; empty where they are not."""
        return self._shell.sandbox.description

    def tools_of(self, task: Task) -> tuple[str, ...]:
        """Names of the tools in a task: also the one for questions, where these are answered."""
        return (*self.tools, ASK) if task.interaction.answers_questions else self.tools

    @property
    def voice(self) -> Voice:
        """That understands the replies."""
        raise NotImplementedError

    def question(self, task: Task, text: str) -> ModelRequest:
        """The first question of a task, whose ``model`` is as the task names it.

        Args:
            task: the task.
            text: what the user says.
        """
        raise NotImplementedError

    def run(self, task: Task) -> Execution:
        """Let the model work on one task.

        Raises:
            RunnerError: no model is named, it is asked nothing, or it cannot be asked at all.
        """
        return self._thread.drive(self.steps(task), cancelled=task.cancelled)

    def steps(self, task: Task) -> Steps[Execution]:
        """What :meth:`run` does, for a caller that watches the time itself."""
        talk, begun = self._talk(task), False
        base = str(self.settings.get("base_url") or "")
        while True:
            left = talk.deadline - time.monotonic()
            if task.cancelled.is_set():
                return talk.cancelled()
            if left <= 0:
                return talk.timed_out()
            ask = partial(
                self._gateway.ask,
                talk.request(),
                asker=_ASKER,
                case="{case}",
                timeout=left,
                api_base=base,
            )
            try:
                reply: ModelReply = yield Step(ask, left)
                begun = True
                ended = talk.take(reply)
            except DeadlineExceeded as exceeded:
                return talk.cancelled() if exceeded.cancelled else talk.timed_out()
            except ModelError as error:
                if error.unfit:
                    return talk.failed("agent", str(error))
                if not error.lasting and time.monotonic() >= talk.deadline:
                    return talk.timed_out()
                if error.lasting and not begun:
                    raise RunnerError(str(error), lasting=True) from None
                return talk.failed("infrastructure", str(error), lasting=error.lasting)
            except RunnerError as error:  # what was said and spent so far is kept
                return talk.failed("infrastructure", str(error), lasting=error.lasting)
            if ended is not None:
                return ended

    def _talk(self, task: Task) -> Talk:
        started = time.monotonic()
        tools = WorkspaceTools(
            task,
            self.tools_of(task),
            shell=self._shell,
            hidden=self._hidden,
            deadline=started + task.timeout,
        )
        text = skill_text(task, tools) if task.skill and not task.prompt else task.text
        if not text.strip():
            message = "the agent is asked nothing: set execution.prompt or execution.skill"
            raise RunnerError(message, lasting=True)
        first = self.question(task, text)
        if not first.model:
            message = "no model is named for the agent: set models.skill, or --agent-eval-model"
            raise RunnerError(message, lasting=True)
        return Talk(
            task,
            self.voice,
            first,
            tools,
            limits=self._limits,
            notes=self._notes,
            started=started,
        )
