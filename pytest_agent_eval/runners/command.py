"""``runner.type: cli``: the agent is a command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.cases.templates import command_words
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.base import Execution, RunnerContext, Task
from pytest_agent_eval.runners.capped_log import read_tail
from pytest_agent_eval.runners.ending import ended_early, notes_of
from pytest_agent_eval.runners.environment import (
    agent_environment,
    caller_environment,
    resolve_variables,
)
from pytest_agent_eval.runners.process import run_process
from pytest_agent_eval.runners.sandbox import may_pass, sandbox_of
from pytest_agent_eval.runners.starting import cannot_start

__all__ = ["PLACEHOLDERS", "CommandRunner"]

PLACEHOLDERS = frozenset(
    {
        "agent",
        "workspace",
        "output_dir",
        "model",
        "subagent_model",
        "timeout",
        "max_budget_usd",
        "effort",
        "system_prompt",
        "args",
        "prompt",
        "config_dir",
    }
)
"""Names in a command that are not fields of the input."""

MAX_MESSAGE_BYTES = 1024 * 1024
"""The final message is the end of stdout, at most this much of it."""


class CommandRunner:
    """Runs ``runner.command`` in the workspace; exit status 0 means that it worked.

    The command is looked up in the agent's ``PATH``. One given with a relative path
    (``tools/agent``, ``./agent.sh``) is taken from the suite's directory when it is there, and
    else from the workspace.

    Attributes:
        lets_others_work: it gives the baton away where it waits.

    Raises:
        RunnerError: the suite names no command, or asks for a sandbox that does not work here.
    """

    lets_others_work = True

    def __init__(self, context: RunnerContext) -> None:
        runner = context.suite.config.runner
        if not runner.command:
            raise RunnerError("runner.command is missing: runner.type cli needs it", lasting=True)
        self._command = runner.command
        # ${HOME} or awk's {print}: braces of another language stay as they are written.
        self._literal = {name: f"{{{name}}}" for name in context.literal}
        self._config_dir = str(context.suite.directory)
        self._cap = context.max_output_bytes
        hidden = (str(context.suite.dataset_directory),)
        self._base = caller_environment(runner.env_policy or "inherit", os.environ, hidden=hidden)
        caller = os.environ if context.variables is None else context.variables
        self._env, self._notes = resolve_variables(runner.env, caller, key="runner.env")
        self._sandbox = sandbox_of(context, {**self._base, **self._env})

    @property
    def description(self) -> str:
        """How agents are kept apart, for people: ``sandbox: bubblewrap``; empty without one."""
        return self._sandbox.description

    def run(self, task: Task) -> Execution:
        """Run the command once.

        Raises:
            RunnerError: it cannot be started.
            TemplateError: a placeholder of the command cannot be filled.
        """
        argv = command_words(self._command, self._values(task))
        if argv:
            argv[0] = self._locate(argv[0])
        stdout = os.path.join(task.log_dir, "stdout.log")
        stderr = os.path.join(task.log_dir, "stderr.log")
        env = agent_environment(task, self._base, self._env)
        outcome = run_process(
            self._sandboxed(argv, task, env),
            cwd=str(task.workspace),
            env=env,
            timeout=task.timeout,
            stdout_path=stdout,
            stderr_path=stderr,
            cap=self._cap,
            trial_id=task.trial_id,
            cancelled=task.cancelled,
            secrets=task.secrets,
            wrapped=bool(self._sandbox),
        )
        if self._sandbox and outcome.exit_code == 1 and not outcome.stdout_bytes:
            problem = self._sandbox.failure(read_tail(stderr, MAX_MESSAGE_BYTES))
            if problem:
                raise RunnerError(problem, lasting=not may_pass(problem))
        failure, error = ended_early(outcome, task.timeout)
        return Execution(
            output=read_tail(stdout, MAX_MESSAGE_BYTES) if outcome.stdout_bytes else "",
            exit_code=outcome.exit_code,
            timed_out=outcome.timed_out,
            failure=failure,
            error=error,
            duration_s=outcome.duration_s,
            notes=(*self._notes, *notes_of(outcome)),
            still_running=bool(outcome.survivors),
        )

    def _sandboxed(self, argv: list[str], task: Task, env: Mapping[str, str]) -> list[str]:
        if not self._sandbox or not argv or not argv[0]:
            return argv
        workspace = str(task.workspace)
        try:
            return self._sandbox.wrap(
                argv, workspace=workspace, log_dir=str(task.log_dir), path=env.get("PATH", "")
            )
        except OSError as error:
            raise cannot_start(error, argv, workspace, env) from None

    def _values(self, task: Task) -> dict[str, Any]:
        """Fields of the input, under the variant's values, under the names of the contract."""
        return {
            **task.input,
            **task.values,
            "agent": task.skill,
            "workspace": str(task.workspace),
            "output_dir": str(task.output_dir),
            "model": task.model,
            "subagent_model": task.subagent_model,
            "timeout": _number(task.timeout),
            "max_budget_usd": _number(task.max_budget_usd),
            "effort": task.effort,
            "system_prompt": task.system_prompt,
            "args": task.arguments or task.prompt,
            "prompt": task.prompt,
            "config_dir": self._config_dir,
            **{name: text for name, text in self._literal.items() if name not in task.input},
        }

    def _locate(self, command: str) -> str:
        if "/" in command and not os.path.isabs(command):
            candidate = os.path.join(self._config_dir, command)
            if os.path.isfile(candidate):
                return os.path.normpath(candidate)
        return command


def _number(value: float) -> str:
    """``60`` for 60.0: commands often take whole numbers only."""
    return str(int(value)) if value == int(value) else str(value)
