"""Coding agents that are programs and print one JSON object a line: what they have in common."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.results import Usage
from pytest_agent_eval.runners.base import Execution, Failure, RunnerContext, Task
from pytest_agent_eval.runners.capped_log import read_tail
from pytest_agent_eval.runners.ending import ended_early, notes_of
from pytest_agent_eval.runners.environment import (
    agent_environment,
    caller_environment,
    resolve_variables,
)
from pytest_agent_eval.runners.process import ProcessOutcome, run_process

__all__ = [
    "AgentTool",
    "Line",
    "Story",
    "bare_model",
    "ended_execution",
    "own_settings",
    "read_lines",
    "text_of",
]

Line = Mapping[str, Any]
"""One JSON object that a tool printed."""

_SAID_BYTES = 4096
_HINT = "; no runner.type is set, and claude-code is the default"
_OURS = frozenset({"project_files", "unprotected"})
_SESSION = frozenset(
    {"CLAUDECODE", "AI_AGENT", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_CHILD_SESSION",
     "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT",
     "CODEX_CI", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID"}
)  # fmt: skip
"""What tells a tool that it was started by a coding agent, as where one runs pytest."""


class Story(Protocol):
    """What a tool's lines say about one task. Made by the tool's own module."""

    @property
    def events(self) -> tuple[Mapping[str, Any], ...]:
        """In the form that judges see."""

    @property
    def output(self) -> str:
        """The final message; empty when there is none."""

    @property
    def usage(self) -> Usage:
        """Tokens, cost, turns and models, as far as the tool tells."""

    @property
    def failure(self) -> tuple[Failure | None, str]:
        """Why the agent did not work, by what the tool says, in one sentence; (None, "")."""

    @property
    def stalled(self) -> str:
        """What kept it waiting for its provider at the end; empty when nothing did."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Things worth storing."""


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A program that carries out tasks for one suite; used from several threads.

    Make it with :meth:`of`.

    Attributes:
        program: its name, looked up in the agent's ``PATH``.
        title: its name for people.
        install: the command that installs it.
    """

    program: str
    title: str
    install: str
    _base: Mapping[str, str]
    _env: Mapping[str, str]
    _notes: tuple[str, ...]
    _cap: int
    _hint: str

    @classmethod
    def of(
        cls,
        context: RunnerContext,
        program: str,
        *,
        title: str,
        install: str,
        defaults: Mapping[str, str] | None = None,
    ) -> AgentTool:
        """The tool for a suite.

        Args:
            context: of the runner.
            program: its name.
            title: for people.
            install: the command that installs it.
            defaults: variables for it that the caller and the suite may set otherwise.
        """
        runner = context.suite.config.runner
        hidden = (str(context.suite.dataset_directory),)
        seen = caller_environment(runner.env_policy or "clean", os.environ, hidden=hidden)
        caller = os.environ if context.variables is None else context.variables
        env, notes = resolve_variables(runner.env, caller, key="runner.env")
        return cls(
            program,
            title,
            install,
            {**(defaults or {}), **{k: v for k, v in seen.items() if k not in _SESSION}},
            env,
            notes,
            context.max_output_bytes,
            "" if "type" in runner.model_fields_set else _HINT,
        )

    def run(
        self, task: Task, arguments: Sequence[str], env: Mapping[str, str]
    ) -> tuple[ProcessOutcome, list[Line], tuple[str, ...]]:
        """Run the tool once; its output is kept in the task's ``stdout.log`` and ``stderr.log``.

        Args:
            task: what to do.
            arguments: of the program.
            env: variables for it, which those of the suite override.

        Returns:
            How it ended, the JSON objects it printed, and notes.

        Raises:
            RunnerError: it is missing, could not be started, or refused its arguments.
        """
        whole = self.environment(task, env)
        path = whole.get("PATH", os.defpath)
        if shutil.which(self.program, path=path) is None:
            raise RunnerError(
                f"{self.title} is not installed: there is no {self.program} in the agent's PATH "
                f"({path}); install it with {self.install}{self._hint}",
                lasting=True,
            )
        stdout = os.path.join(task.log_dir, "stdout.log")
        stderr = os.path.join(task.log_dir, "stderr.log")
        outcome = run_process(
            [self.program, *arguments],
            cwd=str(task.workspace),
            env=whole,
            timeout=task.timeout,
            stdout_path=stdout,
            stderr_path=stderr,
            cap=self._cap,
            trial_id=task.trial_id,
            cancelled=task.cancelled,
            secrets=task.secrets,
        )
        lines = list(read_lines(stdout)) if outcome.stdout_bytes else []
        if not lines and outcome.exit_code is not None and outcome.exit_code >= 0:
            raise RunnerError(self._refusal(outcome, stdout, stderr), lasting=True)
        notes = (*self._notes, *notes_of(outcome))
        if outcome.stdout_bytes > self._cap:
            notes += (
                f"{self.program} printed {outcome.stdout_bytes:,} bytes, more than is kept: events "
                "are missing",
            )
        return outcome, lines, notes

    def environment(self, task: Task, env: Mapping[str, str]) -> dict[str, str]:
        """The agent's environment; the arguments are those of :meth:`run`."""
        return agent_environment(task, {**self._base, **env}, self._env)

    def _refusal(self, outcome: ProcessOutcome, stdout: str, stderr: str) -> str:
        said = read_tail(stderr, _SAID_BYTES).strip() or read_tail(stdout, _SAID_BYTES).strip()
        status = f"exit status {outcome.exit_code}"
        lines = said.splitlines()
        if not lines:
            return f"{self.title} printed nothing ({status})"
        # Above it may stand warnings, or the source of what complains.
        errors = [line for line in lines if line.lower().startswith("error")]
        text = f"{self.title} did no work ({status}): {(errors or lines[-1:])[0].strip()}"
        return f"{text}\n{said}" if len(lines) > 1 else text


def ended_execution(
    task: Task, outcome: ProcessOutcome, story: Story, notes: Sequence[str] = ()
) -> Execution:
    """What came of the task: of how the process ended, and of what the tool said."""
    failure, error = ended_early(outcome, task.timeout)
    if outcome.timed_out and story.stalled:
        # The agent had no time of its own: the provider did not answer.
        failure, error = "infrastructure", f"{error}, waiting for the provider: {story.stalled}"
    if failure is None:
        failure, error = story.failure
    return Execution(
        output=story.output,
        exit_code=outcome.exit_code,
        timed_out=outcome.timed_out,
        failure=failure,
        error=error,
        duration_s=outcome.duration_s,
        events=story.events,
        usage=story.usage,
        notes=(*notes, *story.notes),
        still_running=bool(outcome.survivors),
    )


def read_lines(path: str) -> Iterator[Line]:
    """The JSON objects of a log, one a line. All else in it is left out, cut lines too.

    The log's own cap bounds what is read.
    """
    with open(path, "rb") as stream:
        for raw in stream:
            if not raw.lstrip().startswith(b"{"):
                continue
            try:
                found = json.loads(raw.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield found


def text_of(content: Any) -> str:
    """The text of a message's or a result's content: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, ensure_ascii=False)
    parts = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str):
            parts.append(text)
        elif isinstance(block, dict):
            parts.append(f"[{block.get('type') or 'block'}]")
    return "\n".join(parts)


def bare_model(name: str, *providers: str) -> str:
    """A model's name without the provider that LiteLLM puts before it: ``anthropic/`` and such."""
    provider, slash, model = name.partition("/")
    return model if slash and provider in providers else name


def own_settings(context: RunnerContext) -> dict[str, Any]:
    """What of ``runner.settings`` is the tool's, not this package's or the author's (``x-``)."""
    settings = context.suite.config.runner.settings
    return {
        key: value
        for key, value in settings.items()
        if key not in _OURS and not str(key).startswith("x-")
    }
