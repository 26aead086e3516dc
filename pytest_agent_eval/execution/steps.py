"""A pipeline: several agents, or several conversations, one after the other in one workspace."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_agent_eval.cases.templates import Template, compile_template
from pytest_agent_eval.deadline import Steps
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.execution.collect import EVENTS_FILE, METRICS_FILE
from pytest_agent_eval.execution.events import event_of, has_messages, last_message, read_events
from pytest_agent_eval.execution.files import copy_file, read_file, walk
from pytest_agent_eval.execution.interaction import TrialInteraction, with_asides
from pytest_agent_eval.execution.invocation import invoke
from pytest_agent_eval.execution.metrics import merge_usage, read_metrics
from pytest_agent_eval.execution.names import clean_text, to_json
from pytest_agent_eval.execution.record import EVENTS, STDERR, STDOUT
from pytest_agent_eval.execution.redacted import redact_logs, redacted_execution
from pytest_agent_eval.execution.step_record import STEPS
from pytest_agent_eval.execution.usage import add_usage, tokens_of
from pytest_agent_eval.execution.verdict import judge_execution
from pytest_agent_eval.execution.workspace import OUTPUT, adopt, snapshot
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.results import FailureKind, Usage, Verdict
from pytest_agent_eval.runners.base import Execution, Runner, Task
from pytest_agent_eval.runners.environment import resolve_variables

if TYPE_CHECKING:
    from pytest_agent_eval.execution.suite_hooks import CaseHooks
    from pytest_agent_eval.execution.workspace import Workspace
    from pytest_agent_eval.suite import Suite
    from pytest_agent_eval.suite.models.execution import StepConfig

__all__ = ["Pipeline", "StepPlan", "Worked", "plan_steps"]

_MAX_METRICS = 1024 * 1024
_MAX_EVENTS = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step, ready to run.

    Attributes:
        config: of the step.
        runner: carries it out.
        prompt, arguments: compiled templates, or None.
        env: the step's own variables, resolved.
        effort, system_prompt: of its runner.
        timeout: seconds.
        max_budget_usd: cap of the step.
        unwanted: names of logs that the suite does not want to be kept.
    """

    config: StepConfig
    runner: Runner
    prompt: Template | None
    arguments: Template | None
    env: Mapping[str, str]
    effort: str
    system_prompt: str
    timeout: float
    max_budget_usd: float
    unwanted: tuple[str, ...] = ()


class Worked(NamedTuple):
    """What came of an agent's work.

    Attributes:
        execution: of all steps together.
        usage: of all steps together.
        failed: the verdict on the execution and its kind, if a step failed that may not; else None.
        steps: id -> what ``record.json`` keeps of each step that ran.
        workspace: with what hooks did in it taken as given.
        notes: things worth telling.
        asides: events of questions and denied calls, which the runner does not tell.
    """

    execution: Execution
    usage: Usage
    failed: tuple[Verdict, FailureKind] | None
    steps: Mapping[str, Any]
    workspace: Workspace
    notes: tuple[str, ...]
    asides: tuple[Mapping[str, Any], ...] = ()


def plan_steps(
    suite: Suite,
    runner: Runner,
    make_runner: Callable[[Suite], Runner] | None,
    caller: Mapping[str, str],
) -> tuple[tuple[StepPlan, ...], tuple[str, ...]]:
    """The steps of a suite, and notes about variables that were left out.

    Args:
        suite: the suite, as the variant changes it.
        runner: of the suite.
        make_runner: makes the runner of a suite whose ``runner`` block is that of a step.
        caller: the caller's environment.

    Raises:
        TemplateError: a template that cannot be parsed.
        RunnerError: a step's runner cannot be made.
    """
    execution, traces = suite.config.execution, suite.config.traces
    logs = ((STDOUT, traces.stdout), (STDERR, traces.stderr))
    unwanted = tuple(name for name, wanted in logs if not wanted)
    plans, notes = [], list[str]()
    for step in execution.steps:
        env, omitted = resolve_variables(step.env, caller, key=f"execution.steps.{step.id}.env")
        notes += omitted
        own, block = runner, suite.config.runner
        if step.runner is not None:
            changed = _with_runner(suite, step)
            block = changed.config.runner
            if make_runner is None:
                raise RunnerError(
                    f"step {step.id}: nothing makes runners of type {block.type}", lasting=True
                )
            own = make_runner(changed)
        plans.append(
            StepPlan(
                config=step,
                runner=own,
                prompt=compile_template(step.prompt) if step.prompt else None,
                arguments=compile_template(step.arguments) if step.arguments else None,
                env=env,
                effort=block.effort or "",
                system_prompt=block.system_prompt or "",
                timeout=execution.timeout if step.timeout is None else step.timeout,
                max_budget_usd=(
                    execution.max_budget_usd if step.max_budget_usd is None else step.max_budget_usd
                ),
                unwanted=unwanted,
            )
        )
    return tuple(plans), tuple(notes)


def _with_runner(suite: Suite, step: StepConfig) -> Suite:
    """The suite with a step's runner: of another type as it is, else merged over the suite's."""
    assert step.runner is not None
    given = step.runner.model_fields_set
    block = step.runner
    if "type" not in given or block.type == suite.config.runner.type:
        changes = {name: getattr(block, name) for name in given}
        block = suite.config.runner.model_copy(update=changes)
    return replace(suite, config=suite.config.model_copy(update={"runner": block}))


@dataclass
class Pipeline:
    """The steps of one trial.

    Args:
        plans: the steps.
        base: the task without what the steps say.
        case: name of the case, for messages.
        workspace: shared by the steps.
        outputs: each ``outputs[].path``.
        allowed: ``allow_exit_codes``.
        hooks: of the trial, or None.
        metrics, events: whether these are recorded.
        secrets: what nothing that is stored may hold.
    """

    plans: Sequence[StepPlan]
    base: Task
    case: str
    workspace: Workspace
    outputs: Sequence[str]
    allowed: Sequence[int] | Literal["any"]
    hooks: CaseHooks | None = None
    metrics: bool = True
    events: bool = True
    secrets: Secrets = field(default=NO_SECRETS, repr=False)

    def __post_init__(self) -> None:
        self.usage = Usage()
        self._notes: list[str] = []
        self._events: list[Mapping[str, Any]] = []
        self._said: dict[str, dict[str, Any]] = {}
        self._steps: dict[str, Any] = {}
        self._seconds = 0.0

    def run(self) -> Steps[Worked]:
        """Run the steps until one fails that may not.

        Raises:
            RunnerError, TemplateError, CaseError: a step's agent could not be started.
        """
        execution, failed = Execution(), None
        for index, plan in enumerate(self.plans):
            execution, failed = yield from self._step(index, plan)
            if execution.failure == "infrastructure":
                error = f"step {plan.config.id}: {execution.error}"
                execution = replace(execution, error=error)
                break
            if failed is not None and plan.config.on_failure == "fail":
                break
            if failed is not None:
                self._notes.append(f"{failed[0].rationale}, and the case went on")
                failed = None
        self._show_last_logs()
        together = replace(
            execution,
            duration_s=self._seconds,
            events=tuple(self._events),
            usage=self.usage,
            notes=(),
        )
        return Worked(together, self.usage, failed, self._steps, self.workspace, tuple(self._notes))

    def _step(
        self, index: int, plan: StepPlan
    ) -> Steps[tuple[Execution, tuple[Verdict, FailureKind] | None]]:
        name = plan.config.id
        directory = os.path.join(self.base.log_dir, STEPS, name)
        os.makedirs(directory, exist_ok=True)
        handed: Mapping[str, str] = {}
        execution: Execution | None = None
        try:
            if self.hooks is not None:
                with _Adopting(self, bool(self.hooks.config.before_step)):
                    handed = self.hooks.before_step(name, index, self.base.cancelled)
            task = self._task(plan, directory, handed)
            try:
                execution = yield from invoke(plan.runner, task)
            except RunnerError as error:  # what the steps before did and cost is kept
                execution = Execution(
                    exit_code=None,
                    failure="infrastructure",
                    error=str(error),
                    lasting=error.lasting,
                )
            redact_logs(directory, self.secrets)
            execution = redacted_execution(execution, self.secrets)
        finally:
            if self.hooks is not None:
                code = None if execution is None else execution.exit_code
                with _Adopting(self, bool(self.hooks.config.after_step)):
                    self.hooks.after_step(name, index, code)
        return execution, self._finish(plan, directory, execution)

    def _task(self, plan: StepPlan, directory: str, handed: Mapping[str, str]) -> Task:
        values, case = self.base.input, self.case

        def text(template: Template | None) -> str:
            return template.render(values, case=case, steps=self._said) if template else ""

        from pathlib import Path

        return replace(
            self.base,
            log_dir=Path(directory),
            prompt=text(plan.prompt),
            skill=plan.config.skill or "",
            arguments=text(plan.arguments),
            env={**self.base.env, **plan.env, **handed},
            timeout=plan.timeout,
            max_budget_usd=plan.max_budget_usd,
            effort=plan.effort,
            system_prompt=plan.system_prompt,
        )

    def _finish(
        self, plan: StepPlan, directory: str, execution: Execution
    ) -> tuple[Verdict, FailureKind] | None:
        """Keep what a step left, and say whether it failed."""
        name = plan.config.id
        usage, events = self._taken(name, execution)
        if events:
            with open(os.path.join(directory, EVENTS), "w", encoding="ascii") as stream:
                stream.writelines(f"{to_json(event)}\n" for event in events)
        said = execution.output
        if has_messages(events):
            said = last_message(events)
        files = self._files()
        verdict, kind = judge_execution(
            execution,
            usage=usage,
            budget=plan.max_budget_usd,
            allowed=self.allowed,
            produced=True,
            directory=directory,
        )
        self.usage = add_usage(self.usage, usage)
        self._events += events
        self._seconds += execution.duration_s
        self._notes += [f"step {name}: {note}" for note in execution.notes]
        self._said[name] = {
            "output": said.strip("\n"),
            "exit_code": execution.exit_code,
            "files": files,
        }
        self._steps[name] = {
            "exit_code": execution.exit_code,
            "timed_out": execution.timed_out,
            "duration_s": execution.duration_s,
            "cost_usd": usage.cost_usd,
            "token_usage": tokens_of(usage),
            "num_turns": usage.num_turns,
            "model": usage.model or self.base.model or None,
            "models_used": list(usage.models_used),
            "per_model_usage": dict(usage.per_model_usage),
            "output": clean_text(execution.output),
            "failure": verdict.rationale,
            "output_files": files,
        }
        if not kind:
            return None
        label = plan.config.name or name
        rationale = f"step {label}: {verdict.rationale}"
        return replace(verdict, rationale=rationale), kind

    def _taken(self, step: str, execution: Execution) -> tuple[Usage, list[dict[str, Any]]]:
        """Usage and events of a step. Their files are removed: the next step writes its own."""
        usage = execution.usage
        data = self._take(step, METRICS_FILE, _MAX_METRICS)
        if data is not None and self.metrics:
            found, notes = read_metrics(data, self.secrets)
            usage = merge_usage(usage, found)
            self._notes += [f"step {step}: {note}" for note in notes]
        events: list[dict[str, Any]] = []
        data = self._take(step, EVENTS_FILE, _MAX_EVENTS)
        if self.events and execution.events:
            events = [event_of(event, self.secrets) for event in execution.events]
        elif self.events and data is not None:
            events, told = read_events(data, secrets=self.secrets)
            self._notes += [f"step {step}: {note}" for note in told]
        interaction = self.base.interaction
        if isinstance(interaction, TrialInteraction):
            asides = [event_of(event, self.secrets) for event in interaction.take_events()]
            if asides and self.events:
                events = with_asides(events, asides)
        return usage, events

    def _take(self, step: str, path: str, limit: int) -> bytes | None:
        full = os.path.join(self.base.workspace, path)
        try:
            data = read_file(full, limit + 1)
            os.unlink(full)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._notes.append(f"step {step}: {path} was ignored: {error.strerror}")
            return None
        if len(data) > limit:
            self._notes.append(f"step {step}: {path} is larger than {limit // 1024**2} MiB")
            return None
        return data

    def _files(self) -> list[str]:
        root = str(self.base.workspace)
        return sorted(set(_paths(root, (OUTPUT, *self.outputs))))

    def _show_last_logs(self) -> None:
        """The logs of the step that ran last are those of the trial."""
        if not self._steps:
            return
        last = os.path.join(self.base.log_dir, STEPS, list(self._steps)[-1])
        for name in (STDOUT, STDERR):
            if os.path.exists(os.path.join(last, name)):
                copy_file(os.path.join(last, name), os.path.join(self.base.log_dir, name))
        for plan in self.plans:
            for name in plan.unwanted:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.base.log_dir, STEPS, plan.config.id, name))


class _Adopting:
    """What changes in a pipeline's workspace meanwhile is not the agent's."""

    def __init__(self, pipeline: Pipeline, wanted: bool) -> None:
        self._pipeline = pipeline
        self._before = snapshot(pipeline.workspace.directory) if wanted else None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self._pipeline.workspace = adopt(self._pipeline.workspace, self._before)


def _paths(root: str, below: Sequence[str]) -> Iterator[str]:
    for path in below:
        for found, _ in walk(root, below=os.path.normpath(path)):
            yield found
