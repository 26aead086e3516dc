"""``runner.type: litellm``: the agent is a model, with or without a few tools.

The model is asked through the gateway, so a run is recorded and replayed without a network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from pytest_agent_eval.deadline import DeadlineExceeded, DeadlineThread, Step, Steps
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.llm import Gateway, ModelReply, ModelRequest, ToolCall, provider_name
from pytest_agent_eval.llm.errors import ModelError
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.runners.base import Execution, Failure, RunnerContext, Task
from pytest_agent_eval.runners.environment import caller_environment, resolve_variables
from pytest_agent_eval.runners.model_tools import (
    MAX_RESULT_BYTES,
    Shell,
    ToolResult,
    WorkspaceTools,
    tool_descriptions,
)
from pytest_agent_eval.runners.model_usage import total_usage
from pytest_agent_eval.runners.sandbox import Sandbox, sandbox_of

__all__ = ["MAX_TURNS", "PARAMETERS", "LitellmRunner"]

MAX_TURNS = 50
"""Questions to the model in one task, where ``runner.settings.max_turns`` says nothing."""

PARAMETERS = ("max_tokens", "seed", "stop", "temperature", "top_p")
"""Settings that are passed on to the model."""

_ASKER = "the agent"


class LitellmRunner:
    """Asks a model to do the task, which may call ``runner.settings.tools`` until it is done.

    Without tools it is asked once. ``execution.prompt`` is the user's message,
    ``runner.system_prompt`` the system message; nothing is added to them.

    Attributes:
        replays: it asks models by the gateway alone.

    Raises:
        RunnerError: the suite asks for a sandbox that does not work here.
    """

    replays = True

    def __init__(self, context: RunnerContext) -> None:
        suite = context.suite
        runner, settings = suite.config.runner, suite.config.runner.settings
        self._gateway = context.gateway or Gateway(
            suite.directory,
            api_base=suite.config.models.api_base or "",
            secrets=Secrets.of(os.environ),
        )
        self._parameters = {
            name: settings[name] for name in PARAMETERS if settings.get(name) is not None
        }
        self._tools: tuple[str, ...] = tuple(settings.get("tools") or ())
        self._descriptions = tool_descriptions(self._tools)
        self._max_turns: int = settings.get("max_turns") or MAX_TURNS
        dataset = str(suite.dataset_directory)
        # In a checkout these are below the workspace, and answers are in all of them.
        self._hidden = (
            dataset,
            str(self._gateway.recordings.directory),
            str(context.rootdir / ".agent-eval"),
        )
        base = caller_environment(runner.env_policy or "clean", os.environ, hidden=(dataset,))
        caller = os.environ if context.variables is None else context.variables
        env, self._notes = resolve_variables(runner.env, caller, key="runner.env")
        # Files are kept to the workspace in any case: only commands need a sandbox.
        fenced = "bash" in self._tools
        sandbox = sandbox_of(context, {**base, **env}) if fenced else Sandbox()
        cap = min(context.max_output_bytes, MAX_RESULT_BYTES)
        self._shell = Shell(base, env, sandbox, cap)
        self._thread = DeadlineThread("agent-eval-litellm")

    @property
    def description(self) -> str:
        """How commands are kept apart, for people; empty where they are not."""
        return self._shell.sandbox.description

    def run(self, task: Task) -> Execution:
        """Let the model work on one task.

        Raises:
            RunnerError: no model is named, or it cannot be asked and never will.
        """
        return self._thread.drive(self.steps(task), cancelled=task.cancelled)

    def steps(self, task: Task) -> Steps[Execution]:
        """What :meth:`run` does, for a caller that watches the time itself."""
        talk = self._talk(task)
        while True:
            left = talk.deadline - time.monotonic()
            if task.cancelled.is_set():
                return talk.cancelled()
            if left <= 0:
                return talk.timed_out()
            ask = partial(self._gateway.ask, talk.request(), asker=_ASKER, timeout=left)
            try:
                reply: ModelReply = yield Step(ask, left)
            except DeadlineExceeded as exceeded:
                return talk.cancelled() if exceeded.cancelled else talk.timed_out()
            except ModelError as error:
                if error.lasting:
                    raise RunnerError(str(error), lasting=True) from None
                if time.monotonic() >= talk.deadline:
                    return talk.timed_out()
                return talk.failed("infrastructure", str(error))
            ended = talk.take(reply)
            if ended is not None:
                return ended

    def _talk(self, task: Task) -> _Talk:
        if not task.model:
            message = "no model is named for the agent: set models.skill, or --agent-eval-model"
            raise RunnerError(message, lasting=True)
        if not task.text.strip():
            message = "the agent is asked nothing: set execution.prompt"
            raise RunnerError(message, lasting=True)
        messages = [{"role": "user", "content": task.text}]
        if task.system_prompt:
            messages.insert(0, {"role": "system", "content": task.system_prompt})
        effort = {"reasoning_effort": task.effort} if task.effort else {}
        first = ModelRequest(
            provider_name(task.model),
            tuple(messages),
            tools=self._descriptions,
            parameters={**self._parameters, **effort},
            sample=task.trial - 1,
        )
        started = time.monotonic()
        deadline = started + task.timeout
        tools = WorkspaceTools(
            task, self._tools, shell=self._shell, hidden=self._hidden, deadline=deadline
        )
        return _Talk(task, first, tools, started, self._max_turns, self._notes)


class _Talk:
    """One task under way: what was said, done and spent."""

    def __init__(
        self,
        task: Task,
        first: ModelRequest,
        tools: WorkspaceTools,
        started: float,
        max_turns: int,
        notes: tuple[str, ...],
    ) -> None:
        self.deadline = started + task.timeout
        self._task = task
        self._first = first
        self._messages: list[Mapping[str, Any]] = [*first.messages]
        self._tools = tools
        self._started = started
        self._max_turns = max_turns
        self._notes = [*notes]
        self._replies: list[ModelReply] = []
        self._events: list[Mapping[str, Any]] = []
        self._ids: set[str] = set()
        self._survivors = False

    def request(self) -> ModelRequest:
        """The next question."""
        first = self._first
        return ModelRequest(
            first.model,
            tuple(self._messages),
            tools=first.tools,
            parameters=first.parameters,
            sample=first.sample,
        )

    def take(self, reply: ModelReply) -> Execution | None:
        """Do what the model asks for; the execution when it has ended, else None."""
        task = self._task
        self._replies.append(reply)
        if reply.text:
            self._events.append({"type": "message", "agent": "root", "text": reply.text})
        spent = sum(one.usage.cost_usd or 0.0 for one in self._replies)
        if spent > task.max_budget_usd:
            error = f"${spent:.4g} were spent, over the budget of ${task.max_budget_usd:.2f}"
            return self.failed("budget", error)
        if not reply.tool_calls or not self._first.tools:
            if reply.finish == "length":
                self._notes.append("the model's last answer was cut off at its longest length")
            return self._execution(output=reply.text, exit_code=0)
        if len(self._replies) >= self._max_turns:
            turns = "1 turn" if self._max_turns == 1 else f"{self._max_turns} turns"
            return self.failed("agent", f"not done after {turns} (runner.settings.max_turns)")
        return self._carry_out(reply)

    def cancelled(self) -> Execution:
        """Of a task that the session ended."""
        return self.failed("infrastructure", "cancelled before it ended")

    def timed_out(self) -> Execution:
        """Of a task whose time is up."""
        return self.failed("timeout", f"timed out after {self._task.timeout:g} s")

    def failed(self, failure: Failure, error: str) -> Execution:
        """Of a task that did not come to its end."""
        return self._execution(failure=failure, error=error, timed_out=failure == "timeout")

    def _carry_out(self, reply: ModelReply) -> Execution | None:
        calls = [self._named(call) for call in reply.tool_calls]
        said = len(self._messages)
        self._messages.append({})  # what was called, once it is known what of it is JSON
        shown = []
        for call in calls:
            if self._task.cancelled.is_set():
                return self.cancelled()
            result = self._tools.call(call)
            self._tell(call, result)
            # Some providers take no arguments that are not an object.
            arguments = call.arguments if isinstance(result.input, dict) else "{}"
            function = {"name": call.name, "arguments": arguments or "{}"}
            shown.append({"id": call.id, "type": "function", "function": function})
            outcome = result.outcome
            if outcome is not None:
                if outcome.survivors:
                    self._survivors = True
                    self._notes.append("a process that the agent started could not be ended")
                if outcome.unwatched and outcome.unwatched not in self._notes:
                    self._notes.append(outcome.unwatched)
                if outcome.cancelled:
                    return self.cancelled()
                if outcome.timed_out:
                    return self.timed_out()
        self._messages[said] = {
            "role": "assistant",
            "content": reply.text or None,
            "tool_calls": shown,
        }
        return None

    def _tell(self, call: ToolCall, result: ToolResult) -> None:
        about = {"agent": "root", "name": call.name, "id": call.id}
        self._events.append({"type": "tool_call", **about, "input": result.input})
        told = {"type": "tool_result", **about, "text": result.text, "is_error": result.is_error}
        self._events.append(told)
        self._messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})

    def _named(self, call: ToolCall) -> ToolCall:
        """The call with an id that no other call of the task has."""
        name, number = call.id, len(self._ids) + 1
        while not name or name in self._ids:
            name, number = f"call_{number}", number + 1
        self._ids.add(name)
        return ToolCall(name, call.name, call.arguments)

    def _execution(
        self,
        *,
        output: str = "",
        exit_code: int | None = None,
        failure: Failure | None = None,
        error: str = "",
        timed_out: bool = False,
    ) -> Execution:
        paid = [reply.usage for reply in self._replies if not reply.recorded]
        return Execution(
            output=output,
            exit_code=exit_code,
            timed_out=timed_out,
            failure=failure,
            error=error,
            duration_s=time.monotonic() - self._started,
            events=tuple(self._events),
            usage=total_usage([reply.usage for reply in self._replies]),
            notes=tuple(self._notes),
            still_running=self._survivors,
            recorded=len(self._replies) - len(paid),
            paid_usd=total_usage(paid).cost_usd if paid else 0.0,
        )
