"""One trial, from the case on disk to its result."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agent_eval.deadline import DeadlineThread, Released, Steps
from pytest_agent_eval.errors import (
    AgentEvalError,
    CaseError,
    DocumentError,
    RunnerError,
    TemplateError,
)
from pytest_agent_eval.execution.collect import Collected, collect
from pytest_agent_eval.execution.events import event_of
from pytest_agent_eval.execution.hooks import Handed
from pytest_agent_eval.execution.interaction import TrialInteraction, with_asides
from pytest_agent_eval.execution.invocation import invoke
from pytest_agent_eval.execution.judging import judge_steps
from pytest_agent_eval.execution.leak_check import leak_checked
from pytest_agent_eval.execution.manifest import case_digest, case_manifest, changed_in
from pytest_agent_eval.execution.metrics import merge_usage
from pytest_agent_eval.execution.names import clean_text, plain, printable, to_json
from pytest_agent_eval.execution.record import EVENTS, STDERR, STDOUT, Record, fresh
from pytest_agent_eval.execution.redacted import redact_logs, redacted_execution
from pytest_agent_eval.execution.repo import Checkout, Stay, checkout_directory, take_turn
from pytest_agent_eval.execution.runtime import SuiteRuntime
from pytest_agent_eval.execution.steps import Pipeline, Worked
from pytest_agent_eval.execution.suite_hooks import CaseHooks
from pytest_agent_eval.execution.usage import tokens_of
from pytest_agent_eval.execution.verdict import EXECUTION, judge_execution
from pytest_agent_eval.execution.workspace import (
    OUTPUT,
    Contents,
    Workspace,
    adopt,
    create_workspace,
    snapshot,
    workspace_name,
)
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.results import FailureKind, TrialResult, Usage, Verdict
from pytest_agent_eval.runners.base import Execution, Task
from pytest_agent_eval.runners.interaction import UNATTENDED

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case

__all__ = [
    "Attempt",
    "Executed",
    "dataset_changed",
    "execute_steps",
    "make_task",
    "run_trial",
    "trial_steps",
]


class Executed(NamedTuple):
    """A trial whose agent has ended.

    Attributes:
        result: without verdicts of judges; ``kind`` says why ``execution`` failed, if it did.
        record: what judges see; None when nothing can be said about the agent and ``result`` is
            final.
    """

    result: TrialResult
    record: Record | None


def run_trial(
    shared: SuiteRuntime,
    case: Case,
    trial: int,
    *,
    directory: str,
    record_path: str,
    workspace_root: str,
    cancelled: threading.Event,
) -> TrialResult:
    """Carry out one trial in a thread of its own and wait for it; see :func:`trial_steps`."""
    steps = trial_steps(
        shared,
        case,
        trial,
        directory=directory,
        record_path=record_path,
        workspace_root=workspace_root,
        cancelled=cancelled,
    )
    return DeadlineThread("agent-eval-trial").drive(steps, cancelled=cancelled)


def trial_steps(
    shared: SuiteRuntime,
    case: Case,
    trial: int,
    *,
    directory: str,
    record_path: str,
    workspace_root: str,
    cancelled: threading.Event,
) -> Steps[TrialResult]:
    """Carry out one trial and judge it.

    Code of the suite's author (a Python agent, the judges) is yielded as steps with a time limit;
    :class:`~pytest_agent_eval.deadline.Released` is yielded between the agent and the judges.
    What the case, the agent, the runner or a judge does wrong is in the result, not raised.

    Args:
        shared: of the suite.
        case: the case.
        trial: 1-based.
        directory: where the trial is stored (absolute); made when it does not exist.
        record_path: the same relative to the run's directory, with slashes.
        workspace_root: an existing directory for workspaces (absolute).
        cancelled: ends the trial early when set.
    """
    try:
        turn = _turn(shared, cancelled)
    except RunnerError as error:
        attempt = Attempt(shared, case, trial, directory, record_path)
        return attempt.refuse("infrastructure", str(error), lasting=error.lasting).result
    try:
        executed = yield from execute_steps(
            shared,
            case,
            trial,
            directory=directory,
            record_path=record_path,
            workspace_root=workspace_root,
            cancelled=cancelled,
        )
        if executed.record is None:
            return executed.result
        values = executed.record["input"]
        result = leak_checked(shared, case, directory, executed.result, values)
        if turn is None:
            yield Released()
        return (yield from judge_steps(shared, result, executed.record, cancelled=cancelled))
    finally:
        if turn is not None:
            os.close(turn)


def _turn(shared: SuiteRuntime, cancelled: threading.Event) -> int | None:
    """Wait for the checkout where agents work in it, also while judges may read files there."""
    if shared.config.runner.workspace_mode != "repo":
        return None
    return take_turn(checkout_directory(shared.suite.directory, shared.rootdir), cancelled)


def execute_steps(
    shared: SuiteRuntime,
    case: Case,
    trial: int,
    *,
    directory: str,
    record_path: str,
    workspace_root: str,
    cancelled: threading.Event,
) -> Steps[Executed]:
    """Let the agent work and store what came of it; the part of a trial that needs no judge."""
    attempt = Attempt(shared, case, trial, directory, record_path)
    try:
        return (yield from attempt.carry_out(workspace_root, cancelled))
    except CaseError as error:
        return attempt.refuse("case", error.message)
    except (TemplateError, DocumentError) as error:
        return attempt.refuse("case", str(error))
    except RunnerError as error:
        return attempt.refuse("infrastructure", str(error), lasting=error.lasting)
    except OSError as error:
        return attempt.refuse("infrastructure", f"the trial cannot be stored: {error}")


class Attempt:
    """One trial under way.

    Attributes:
        notes: things worth telling so far.
        workspace: directory that belongs to the trial alone, and may be removed with it; or empty.
        where: directory in which the agent works.
        digest: of the case.
        handed: what hooks have handed over.
        spent: on steps before one that could not be carried out.
        interaction: answers the agent.
    """

    def __init__(
        self, shared: SuiteRuntime, case: Case, trial: int, directory: str, record_path: str
    ) -> None:
        self.shared = shared
        self.case = case
        self.directory = directory
        self.notes: list[str] = list(shared.notes)
        self.workspace = ""
        self.where = ""
        self.digest = ""
        self.started = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        self.trial = trial
        self.record_path = record_path
        self.hooks: CaseHooks | None = None
        self.handed = Handed()
        self.spent = Usage()
        self.interaction: TrialInteraction | None = None

    def carry_out(self, workspace_root: str, cancelled: threading.Event) -> Steps[Executed]:
        """Everything but the judging; raises what the case or the runner does wrong."""
        case_directory = self.case.path
        files = case_manifest(case_directory)
        values = self.case.input()
        self.interaction = self.shared.interactions.of_case(self.case)
        hooks = self.shared.hooks
        begun = hooks.begin(cancelled) if hooks is not None else Handed()
        name = workspace_name(
            self.shared.run_id,
            self.shared.suite_key,
            self.case.name,
            self.shared.variant,
            self.trial,
        )
        workspace = self._workspace(os.path.join(workspace_root, name))
        self.digest = case_digest(case_directory, files, self._copied(workspace))
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory)
        stay = self._enter(workspace, workspace_root)
        left, still_running = None, False
        try:
            if hooks is not None:
                self.notes += hooks.notes()
                self.hooks = hooks.of_case(self.case, self.where, self.directory, begun)
            try:
                workspace = self._prepared(workspace, stay, cancelled)
                # A Python agent may change what it is given; judges see the input as it was.
                task = self._task(fresh(values), cancelled)
                worked = self._redacted((yield from self._work(task, workspace)))
                execution = worked.execution
                still_running = execution.still_running
                self.notes += worked.notes
                lost = execution.failure == "infrastructure"
                if stay is None and not lost:
                    collected = self._collect(worked.workspace)
            finally:
                if self.hooks is not None:
                    if stay is not None:
                        stay.agent_ended()
                    self.hooks.after_each()
                    self.notes += self.hooks.notes
                    self.handed = self.hooks.handed
        finally:
            if stay is not None:
                left = stay.leave(still_running=still_running)
                self.notes += left.notes
        if lost:
            # Nobody judges it, and what was done and spent is worth knowing.
            self._store(worked, worked.usage, Collected(), values, produced=False)
            return self.refuse(
                "infrastructure", execution.error, execution, lasting=execution.lasting
            )
        if left is not None:
            collected = self._collect(left.workspace)
            collected = collected._replace(modified=collected.modified + len(left.deleted))
        changed = changed_in(case_directory, files, was_set_back=self._is_in_repo)
        return self._executed(worked, collected, values, changed)

    @property
    def secrets(self) -> Secrets:
        """What nothing of this trial that is stored may hold."""
        handed = self.hooks.handed if self.hooks is not None else self.handed
        return self.shared.secrets.and_of(handed.env)

    def _redacted(self, worked: Worked) -> Worked:
        """Without secrets, also where a runner knows nothing of them."""
        secrets = self.secrets
        if not secrets:
            return worked
        redact_logs(self.directory, secrets)
        return worked._replace(
            execution=redacted_execution(worked.execution, secrets),
            usage=secrets.usage(worked.usage),
            steps=secrets.value(worked.steps),
            notes=tuple(map(secrets.text, worked.notes)),
        )

    def _workspace(self, directory: str) -> Workspace:
        """The trial's own directory, in which its agent works unless it works in the checkout."""
        contents, in_repo = self.shared.contents, self._is_in_repo
        workspace = create_workspace(
            directory,
            case=self.case.name,
            case_directory=self.case.path,
            input_name=self.case.input_name,
            contents=Contents() if in_repo else contents,
        )
        if in_repo and (contents.files or contents.project_files):
            self.notes.append("workspace_mode repo: only the input file was copied")
        self.where = workspace.directory
        # The session removes the directory of a result, which must never be the checkout.
        self.workspace = "" if in_repo else workspace.directory
        self.notes += workspace.notes
        return workspace

    def _copied(self, workspace: Workspace) -> dict[str, int]:
        """The hash of the input, which was made when it was copied; of a link none is known."""
        name = self.case.input_name
        known = workspace.manifest.files.get(name)
        linked = os.path.islink(os.path.join(self.case.path, name))
        return {name: known[-1]} if known is not None and not linked else {}

    @property
    def _is_in_repo(self) -> bool:
        return self.shared.config.runner.workspace_mode == "repo"

    def _enter(self, workspace: Workspace, workspace_root: str) -> Stay | None:
        """Begin to work in the checkout, where the suite wants that."""
        shared = self.shared
        if not self._is_in_repo:
            return None
        rootdir, suite_directory = str(shared.rootdir), str(shared.suite.directory)
        run_directory = Path(self.directory).parents[self.record_path.count("/")]
        checkout = Checkout(
            checkout_directory(suite_directory, rootdir),
            ours=(
                str(run_directory.parent),
                workspace_root,
                os.path.join(rootdir, ".agent-eval"),
                os.path.join(rootdir, ".pytest_cache"),
                os.path.join(suite_directory, "recordings"),
            ),
            unprotected=shared.config.runner.settings.get("unprotected") or (),
        )
        stay = checkout.enter(
            workspace,
            outputs=shared.contents.outputs,
            trial=self.record_path,
        )
        self.where = stay.directory
        return stay

    def _prepared(
        self, workspace: Workspace, stay: Stay | None, cancelled: threading.Event
    ) -> Workspace:
        """The workspace after ``before_each``; what that left in it is not the agent's work."""
        hooks = self.hooks
        if hooks is None or not hooks.config.before_each:
            return workspace
        if stay is not None:
            hooks.before_each(cancelled)
            stay.agent_begins()
            return workspace
        before = snapshot(workspace.directory)
        hooks.before_each(cancelled)
        return adopt(workspace, before)

    def _work(self, task: Task, workspace: Workspace) -> Steps[Worked]:
        shared = self.shared
        traces = shared.config.traces
        if not shared.steps:
            execution = yield from invoke(shared.runner, task)
            notes = execution.notes
            asides = tuple(self.interaction.take_events()) if self.interaction else ()
            return Worked(execution, execution.usage, None, {}, workspace, notes, asides)
        pipeline = Pipeline(
            shared.steps,
            task,
            self.case.name,
            workspace,
            shared.contents.outputs,
            shared.config.execution.allow_exit_codes,
            hooks=self.hooks,
            metrics=traces.metrics,
            events=traces.events,
            secrets=self.secrets,
        )
        try:
            return (yield from pipeline.run())
        except AgentEvalError:
            self.spent = self.secrets.usage(pipeline.usage)
            raise

    def _task(self, values: Mapping[str, Any], cancelled: threading.Event) -> Task:
        shared, case = self.shared, self.case.name
        return make_task(
            shared,
            values,
            workspace=self.where,
            log_dir=self.directory,
            prompt=shared.prompt.render(values, case=case) if shared.prompt else "",
            arguments=shared.arguments.render(values, case=case) if shared.arguments else "",
            env=self.hooks.handed.env if self.hooks else {},
            cancelled=cancelled,
            secrets=self.secrets,
            trial=self.trial,
            interaction=self.interaction,
        )

    def _executed(
        self,
        worked: Worked,
        collected: Collected,
        values: Mapping[str, Any],
        dataset_changes: Sequence[str],
    ) -> Executed:
        config, execution = self.shared.config, worked.execution
        usage = merge_usage(worked.usage, collected.usage)
        said = (execution.output, *(step["output"] for step in worked.steps.values()))
        produced = bool("".join(said).strip() or collected.files or collected.modified)
        # Of steps each was judged by itself, as each has a budget of its own.
        stepwise = bool(self.shared.steps)
        verdict, kind = worked.failed or judge_execution(
            replace(execution, failure=None, timed_out=False) if stepwise else execution,
            usage=Usage() if stepwise else usage,
            budget=config.execution.max_budget_usd,
            allowed="any" if stepwise else config.execution.allow_exit_codes,
            produced=produced,
            directory=self.directory,
        )
        if dataset_changes:
            verdict, kind = dataset_changed(dataset_changes, verdict), "agent"
        return self.conclude(worked, usage, (verdict, kind), collected, values, produced=produced)

    def conclude(
        self,
        worked: Worked,
        usage: Usage,
        judged: tuple[Verdict, FailureKind],
        collected: Collected,
        values: Mapping[str, Any],
        *,
        produced: bool,
    ) -> Executed:
        """Store the record of an agent that has ended.

        Args:
            worked: what came of its work.
            usage: of it.
            judged: the verdict on the execution, and why it failed if it did.
            collected: of what it left; copied into the trial's directory already.
            values: the case's input.
            produced: whether it left anything.
        """
        (verdict, kind), execution = judged, worked.execution
        record = self._store(worked, usage, collected, values, produced)
        result = self._result(
            status="failed" if kind else "passed",
            kind=kind,
            reason=verdict.rationale,
            execution=verdict,
            exit_code=execution.exit_code,
            timed_out=execution.timed_out,
            duration_s=execution.duration_s,
            usage=usage,
        )
        return Executed(result, record)

    def _collect(self, workspace: Workspace) -> Collected:
        traces = self.shared.config.traces
        collected = collect(
            workspace,
            self.directory,
            self.shared.contents.outputs,
            metrics=traces.metrics,
            events=traces.events,
            secrets=self.secrets,
        )
        self.notes += collected.notes
        return collected

    def _store(
        self,
        worked: Worked,
        usage: Usage,
        collected: Collected,
        values: Mapping[str, Any],
        produced: bool,
    ) -> Record:
        """Write what is not yet in the trial's directory, and open its record."""
        execution, traces, secrets = worked.execution, self.shared.config.traces, self.secrets
        told = execution.events if execution.events and traces.events else collected.events
        events: Sequence[Mapping[str, Any]] = told
        if worked.asides and traces.events:
            events = with_asides(events, worked.asides)
        if events:
            path = os.path.join(self.directory, EVENTS)
            if os.path.lexists(path):
                os.unlink(path)  # it may be shared by the cases of a batch
            with open(path, "x", encoding="ascii") as stream:
                stream.writelines(f"{to_json(event_of(event, secrets))}\n" for event in events)
        data = {**self._data(execution, usage), "produced": produced}
        if worked.steps:
            data["steps"] = worked.steps
        if self.handed.data:
            data["hook_outputs"] = plain(self.handed.data)
        for wanted, name in ((traces.stdout, STDOUT), (traces.stderr, STDERR)):
            path = os.path.join(self.directory, name)
            if not wanted and os.path.exists(path):
                os.unlink(path)
        stored = Record.write(self.directory, data, secrets)
        listing = None if secrets else collected.stored
        return Record(self.directory, stored, self.case, values, listing)

    def _data(self, execution: Execution, usage: Usage) -> dict[str, Any]:
        return {
            "format": 1,
            "suite": self.shared.suite_key,
            "case": self.case.name,
            "trial": self.trial,
            "variant": self.shared.variant,
            "exit_code": execution.exit_code,
            "timed_out": execution.timed_out,
            "duration_s": execution.duration_s,
            "cost_usd": usage.cost_usd,
            "token_usage": tokens_of(usage),
            "num_turns": usage.num_turns,
            "model": usage.model or self.shared.model or None,
            "models_used": list(usage.models_used),
            "per_model_usage": dict(usage.per_model_usage),
            "workspace": self.where,
            "output": clean_text(execution.output),
            "outputs": list(self.shared.contents.outputs),
            "tools": list(self.shared.tools),
        }

    def refuse(
        self,
        kind: FailureKind,
        reason: str,
        execution: Execution | None = None,
        *,
        lasting: bool = False,
    ) -> Executed:
        """The result of a trial in which nothing can be said about the agent."""
        if kind == "infrastructure":
            reason = reason.replace("{case}", self.case.name)
        summary, _, detail = clean_text(reason).partition("\n")
        summary = summary or "the runner failed"
        result = self._result(
            status="error",
            kind=kind,
            reason=summary,
            lasting=lasting,
            execution=(
                Verdict(EXECUTION, error=summary, detail=detail) if execution or detail else None
            ),
            exit_code=execution.exit_code if execution else None,
            duration_s=execution.duration_s if execution else 0.0,
            usage=execution.usage if execution else self.spent,
        )
        return Executed(result, None)

    def _result(self, **values: Any) -> TrialResult:
        case, interaction = self.case, self.interaction
        notes = self.notes
        if interaction is not None:
            notes = [*notes, *map(self.secrets.text, interaction.notes)]
            asked = interaction.asked
            if asked:
                execution = values["execution"] or Verdict(EXECUTION, error=values["reason"])
                values["execution"] = replace(execution, asked=asked)
        return TrialResult(
            suite=self.shared.suite_key,
            case=case.name,
            split=case.split,
            group=case.group,
            tags=dict(case.tags),
            category=case.category,
            trial=self.trial,
            variant=self.shared.variant,
            started=self.started,
            workspace=self.workspace,
            record=self.record_path,
            notes=tuple(clean_text(note) for note in notes),
            case_digest=self.digest,
            execution_digest=self.shared.execution_digest,
            **values,
        )


def make_task(
    shared: SuiteRuntime,
    values: Mapping[str, Any],
    *,
    workspace: str,
    log_dir: str,
    prompt: str,
    arguments: str,
    env: Mapping[str, str],
    cancelled: threading.Event,
    secrets: Secrets = NO_SECRETS,
    trial: int = 1,
    interaction: TrialInteraction | None = None,
) -> Task:
    """What the runner of a suite is asked to do.

    Its ``trial_id`` is another one each time, also where the same trial is carried out again: what
    an attempt leaves running is found, and ended, by this mark, and a new attempt may have begun.

    Args:
        shared: of the suite.
        values: the input.
        workspace: the directory the agent works in (absolute).
        log_dir: of its logs (absolute).
        prompt: rendered.
        arguments: rendered.
        env: variables that come on top of ``execution.env``.
        cancelled: ends it early when set.
        secrets: what nothing that is stored may hold.
        trial: 1-based.
        interaction: answers the agent.
    """
    config = shared.config
    return Task(
        input=values,
        workspace=Path(workspace),
        output_dir=Path(workspace, OUTPUT),
        log_dir=Path(log_dir),
        prompt=prompt,
        skill=config.execution.skill or "",
        arguments=arguments,
        env={**shared.env, **env} if env else shared.env,
        timeout=config.execution.timeout,
        max_budget_usd=config.execution.max_budget_usd,
        model=shared.model,
        subagent_model=config.models.subagent or "",
        effort=config.runner.effort or "",
        system_prompt=config.runner.system_prompt or "",
        trial_id=token_hex(8),
        trial=trial,
        values=shared.values,
        cancelled=cancelled,
        secrets=secrets,
        interaction=interaction or UNATTENDED,
    )


def dataset_changed(paths: Sequence[str], verdict: Verdict) -> Verdict:
    """The verdict on an execution during which files of the dataset were changed."""
    shown = ", ".join(printable(path) for path in paths[:5])
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    said = f"the dataset was changed by the run: {shown}{more}"
    also = "\n\n".join(part for part in (verdict.rationale, verdict.detail) if part)
    return Verdict(EXECUTION, value=False, passed=False, rationale=said, detail=also)
