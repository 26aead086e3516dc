"""The contract of a runner: one :class:`Task` in, one :class:`Execution` out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.results import Usage

if TYPE_CHECKING:
    from pytest_agent_eval.deadline import Steps
    from pytest_agent_eval.llm import Gateway
    from pytest_agent_eval.suite import Suite

__all__ = ["Execution", "Failure", "Runner", "RunnerContext", "RunnerType", "SteppedRunner", "Task"]

Failure = Literal["agent", "timeout", "budget", "infrastructure"]


@dataclass(frozen=True, slots=True)
class Task:
    """What a runner is asked to do once. Nothing in it tells the agent which case it is.

    Attributes:
        input: the case's input, parsed.
        workspace: the directory the agent works in (absolute); holds the input file and the
            whitelisted files.
        output_dir: ``workspace/output``; exists.
        log_dir: where the runner may leave ``stdout.log``, ``stderr.log``, ``events.jsonl``
            (absolute; outside the workspace; exists).
        prompt: rendered ``execution.prompt``, or empty.
        skill: ``execution.skill``, or empty.
        arguments: rendered ``execution.arguments``, or empty.
        env: variables to set for the agent on top of what the runner's ``env_policy`` lets
            through, already resolved.
        timeout: seconds of wall clock.
        max_budget_usd: cap of this invocation.
        model, subagent_model, effort, system_prompt: as configured; empty when unset.
        trial_id: opaque identifier of this attempt at a trial, also in ``AGENT_EVAL_TRIAL``; no
            other attempt has the same.
        trial: 1-based number of the execution of the case; another attempt at it has the same.
        values: extra command placeholders (of a variant).
        secrets: what no file that the runner leaves in ``log_dir`` may hold.
        cancelled: set when the session wants the trial to end; a runner that can end early should.
    """

    input: Mapping[str, Any]
    workspace: Path
    output_dir: Path
    log_dir: Path
    prompt: str = ""
    skill: str = ""
    arguments: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 3600.0
    max_budget_usd: float = 100.0
    model: str = ""
    subagent_model: str = ""
    effort: str = ""
    system_prompt: str = ""
    trial_id: str = ""
    trial: int = 1
    values: Mapping[str, str] = field(default_factory=dict)
    secrets: Secrets = field(default=NO_SECRETS, repr=False)
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def text(self) -> str:
        """What the agent is told: the prompt, or the skill's arguments."""
        return self.prompt or self.arguments


@dataclass(frozen=True, slots=True)
class Execution:
    """The outcome of one trial as the runner saw it.

    Attributes:
        output: the agent's final message; empty when its output is only in files.
        exit_code: of the process; 0 for a callable that returned; None when it never ended by
            itself.
        timed_out: its time ran out and it was ended.
        failure: by evidence, not by exit status alone; None when the agent worked (a non-zero
            exit status is judged by the caller, who knows ``allow_exit_codes``).
        error: one sentence for ``failure``; may hold more lines (a traceback of the user's code).
            In that of an infrastructure failure ``{case}`` becomes the case's name, which a runner
            does not know.
        lasting: of an infrastructure failure: it would be the same again, so that it is not tried
            again.
        duration_s: seconds of wall clock.
        events: in the form documented for judges, or empty. ``events.jsonl`` in the output
            directory is read by the caller when this is empty.
        usage: tokens and cost. ``metrics.json`` in the output directory is merged by the caller.
        notes: warnings worth storing.
        still_running: the agent could not be ended and may still be changing files.
        recorded: how many of its models' answers were read from recordings, and cost nothing now.
        paid_usd: where some were, US dollars of the others; None when unknown.
    """

    output: str = ""
    exit_code: int | None = 0
    timed_out: bool = False
    failure: Failure | None = None
    error: str = ""
    duration_s: float = 0.0
    events: tuple[Mapping[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    still_running: bool = False
    lasting: bool = False
    recorded: int = 0
    paid_usd: float | None = None


class Runner(Protocol):
    """Carries out tasks; used from several threads at once, so it keeps no state of a task.

    What a runner may have besides:

    - ``is_async``, a bool: its agent is awaited in the event loop.
    - ``lets_others_work``, a bool: it gives the baton away wherever it waits, and so is called with
      the baton held. While any other runner is at work the baton is with others.
    - ``replays``, a bool: it asks models by the gateway alone. Only such a runner may judge where
      nothing is to be asked live.
    """

    def run(self, task: Task) -> Execution:
        """Carry out one task. Returns also when the agent failed.

        Raises:
            RunnerError: the agent could not be started (a missing command, no such function).
        """
        ...


class SteppedRunner(Runner, Protocol):
    """A runner that runs code in this process, and lets its caller watch the time."""

    def steps(self, task: Task) -> Steps[Execution]:
        """What ``run`` does, with the code as a step that has a time limit."""
        ...


@dataclass(frozen=True, slots=True)
class RunnerContext:
    """What a runner type gets to make a runner for one suite.

    Attributes:
        suite: the suite; ``suite.config.runner`` is the runner's own block.
        rootdir: importable beside the suite's directory.
        fixtures: name -> value of the pytest fixtures that the suite's runner asked for.
        max_output_bytes: cap of each of stdout and stderr.
        literal: names in braces of ``runner.command`` that no case's input provides: they are
            left as they are written.
        variables: the caller's environment, where ``$NAME`` is looked up; None for that of this
            process.
        gateway: by which models are asked; None for one of the runner's own.
    """

    suite: Suite
    rootdir: Path
    fixtures: Mapping[str, Any] = field(default_factory=dict)
    max_output_bytes: int = 16 * 1024 * 1024
    literal: frozenset[str] = frozenset()
    variables: Mapping[str, str] | None = None
    gateway: Gateway | None = None


RunnerType = Callable[[RunnerContext], Runner]
"""Makes a runner for a suite. Raises RunnerError when it cannot be made."""
