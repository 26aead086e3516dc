"""The trials of one suite in one session: what they share, and how each is carried out."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agent_eval.deadline import DeadlineExceeded, Released, Step
from pytest_agent_eval.errors import (
    AgentEvalError,
    CaseError,
    RunDirectoryError,
    RunnerError,
    TemplateError,
)
from pytest_agent_eval.evidence.reward import Reward, reward_of
from pytest_agent_eval.execution.batch import CasePlace, batch_case_steps
from pytest_agent_eval.execution.judging import judge_steps
from pytest_agent_eval.execution.leak_check import leak_checked
from pytest_agent_eval.execution.manifest import (
    CaseManifest,
    case_digest,
    case_manifest,
    changed_in,
)
from pytest_agent_eval.execution.outcome import decide
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.runtime import SuiteRuntime, secrets_of
from pytest_agent_eval.execution.suite_hooks import SuiteHooks
from pytest_agent_eval.execution.trial import trial_steps
from pytest_agent_eval.execution.usage import add_usage
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.results import FailureKind, Status, TrialResult
from pytest_agent_eval.runners.base import Execution, Runner, RunnerContext, Task
from pytest_agent_eval.runners.environment import resolve_variables
from pytest_agent_eval.runs.reuse import decide_reuse

if TYPE_CHECKING:
    from pytest_agent_eval.active_suite import ActiveSuite
    from pytest_agent_eval.cases import BrokenCase, Case
    from pytest_agent_eval.cluster.client import Cluster, RemoteSuite
    from pytest_agent_eval.deadline import Steps
    from pytest_agent_eval.runs.stored import StoredRun, StoredTrial
    from pytest_agent_eval.runs.writer import RunWriter
    from pytest_agent_eval.suite import Suite

__all__ = ["Stored", "SuiteTrials", "TrialPlace"]


class TrialPlace:
    """Where one trial is kept while it runs and afterwards.

    Attributes:
        parts: path components of its directory in the run, the trial's number last.
        workspaces: directory for its workspace (absolute).
    """

    def __init__(self, parts: tuple[str, ...], trial: int, attempt: int, workspaces: str) -> None:
        number = str(trial) if attempt == 1 else f"{trial}.{attempt}"
        self.parts = (*parts, number)
        self.workspaces = (
            workspaces if attempt == 1 else os.path.join(workspaces, f"attempt-{attempt}")
        )


class Stored(NamedTuple):
    """What a stored run gives for a trial.

    Attributes:
        result: of the trial.
        how: ``kept`` as it is stored, ``judged again``, or ``not there``.
    """

    result: TrialResult
    how: str


class SuiteTrials:
    """Carries out the trials of one suite; used from several threads at once.

    Args:
        suite: the suite.
        session: the same in all processes of a session, and in no other session.
        label: path components that tell the suite from others of the session; may be empty.
        cluster: where its agents work; None for this machine.

    Attributes:
        fixture_value: of the pytest fixture that is the suite's runner, once it is set up.
        fixture_problem: why there is no such fixture; empty where there is.
        workspaces: the directory of this process that holds workspaces (absolute).
    """

    def __init__(
        self,
        suite: ActiveSuite,
        *,
        session: str,
        label: tuple[str, ...] = (),
        cluster: Cluster | None = None,
    ) -> None:
        self.fixture_value: Any = None
        self.fixture_problem = ""
        self.workspaces = ""
        self.warm_up = suite.warm_up
        self._label = label
        self._hooks: dict[str | None, SuiteHooks | None] = {}
        self._cluster = cluster
        self._session = session
        self._remote: dict[str | None, RemoteSuite] = {}
        self._suite = suite
        self._rescores = suite.options.rescore is not None
        self._lock = threading.Lock()
        self._shared: dict[str | None, tuple[Any, SuiteRuntime]] = {}
        self._files: CaseManifest | None = None

    def steps(
        self,
        case: Case,
        *,
        variant: str | None,
        trial: int,
        place: Callable[[], TrialPlace],
        writer: RunWriter,
        cancelled: threading.Event,
    ) -> Steps[TrialResult]:
        """Carry out one trial; advanced by the engine.

        Args:
            case: the case.
            variant: name of the variant, or None.
            trial: 1-based.
            place: where it is kept; asked again for each attempt.
            writer: of the run.
            cancelled: set when the session wants the trial to end.
        """
        retries = self._suite.varied(variant).config.execution.retries
        failed: list[TrialResult] = []
        while True:
            result = yield from self._attempt(case, variant, trial, place(), writer, cancelled)
            lost = result.status == "error" and result.kind == "infrastructure"
            if not lost or result.lasting or len(failed) >= retries or cancelled.is_set():
                return self.secrets(variant).result(_together(failed, result))
            delay = min(_FIRST_DELAY_S * 2.0 ** len(failed), _LONGEST_DELAY_S)
            failed.append(result)
            with contextlib.suppress(DeadlineExceeded):  # cancelled
                yield Step(partial(cancelled.wait, delay), delay + 1)

    def _attempt(
        self,
        case: Case,
        variant: str | None,
        trial: int,
        place: TrialPlace,
        writer: RunWriter,
        cancelled: threading.Event,
    ) -> Steps[TrialResult]:
        try:
            shared = self.shared(variant, writer)
            if self._cluster is not None:
                return (
                    yield from self._elsewhere(
                        self._cluster, shared, case, trial, place, writer, cancelled
                    )
                )
        except (RunnerError, TemplateError) as error:
            lasting = not isinstance(error, RunnerError) or error.lasting
            return replace(
                self.unstarted(case, variant, trial, "error", "infrastructure", str(error)),
                lasting=lasting,
            )
        except CaseError as error:
            return self.unstarted(case, variant, trial, "error", "case", error.message)
        if not os.path.isdir(place.workspaces):  # also where an agent removed what was above it
            os.makedirs(place.workspaces, exist_ok=True)
        if shared.config.execution.mode == "batch":
            return (yield from self._batch(shared, case, trial, place, writer, cancelled))
        directory = writer.fresh_trial_directory(*place.parts)
        return (
            yield from trial_steps(
                shared,
                case,
                trial,
                directory=directory,
                record_path=writer.relative(directory),
                workspace_root=place.workspaces,
                cancelled=cancelled,
            )
        )

    def _batch(
        self,
        shared: SuiteRuntime,
        case: Case,
        trial: int,
        place: TrialPlace,
        writer: RunWriter,
        cancelled: threading.Event,
    ) -> Steps[TrialResult]:
        """Carry out the trial of one case of a batch: the first one does it for all."""
        from pytest_agent_eval.cases import Case as Usable

        cases = [
            one
            for one, variant in self._suite.selected
            if isinstance(one, Usable) and variant == shared.variant
        ]
        number = place.parts[-1]
        home = os.path.join(str(writer.path), "batch", *self._label, shared.variant or "", number)

        def place_of(one: Case) -> CasePlace:
            label = one.name if shared.variant is None else f"{one.name}[{shared.variant}]"
            directory = writer.fresh_trial_directory(*place.parts[:-2], label, number)
            return CasePlace(one, directory, writer.relative(directory))

        def directory_of_batch() -> str:
            shutil.rmtree(home, ignore_errors=True)
            os.makedirs(home)
            return home

        return (
            yield from batch_case_steps(
                shared,
                list({one.path: one for one in cases}.values()),
                case,
                trial,
                place=place_of,
                directory=directory_of_batch,
                state=f"{home}.{self._session}.json",
                workspace_root=place.workspaces,
                cancelled=cancelled,
            )
        )

    def _elsewhere(
        self,
        cluster: Cluster,
        shared: SuiteRuntime,
        case: Case,
        trial: int,
        place: TrialPlace,
        writer: RunWriter,
        cancelled: threading.Event,
    ) -> Steps[TrialResult]:
        """Carry out a trial on a cluster, and judge it here."""
        from pytest_agent_eval.cluster.client import RemoteSuite

        active, variant = self._suite, shared.variant
        begun = shared.hooks.begin(cancelled) if shared.hooks is not None else None
        with self._lock:
            remote = self._remote.get(variant)
            if remote is None:
                remote = self._remote[variant] = RemoteSuite(
                    cluster,
                    self._session,
                    shared.suite,
                    options={
                        "suite_key": active.key,
                        "run_id": writer.run_id,
                        "model": active.options.model,
                        "variant": variant,
                        "values": dict(shared.values),
                    },
                    max_output=active.options.max_output,
                    literal=active.literal,
                    rootdir=str(active.rootdir),
                    env=begun.env if begun is not None else {},
                )
        directory = writer.fresh_trial_directory(*place.parts)
        executed = yield from remote.steps(
            case,
            trial,
            directory=directory,
            record_path=writer.relative(directory),
            cancelled=cancelled,
        )
        result = replace(executed.result, execution_digest=shared.execution_digest)
        if executed.record is None:
            return result
        values = executed.record["input"]
        result = leak_checked(shared, case, directory, result, values)
        yield Released()
        return (yield from judge_steps(shared, result, executed.record, cancelled=cancelled))

    def shared(self, variant: str | None, writer: RunWriter) -> SuiteRuntime:
        """What all trials of a variant share: made once, or once for each value of a fixture.

        Raises:
            RunnerError, TemplateError: it cannot be made.
        """
        with self._lock:
            made = self._shared.get(variant)
            if made is None or made[0] is not self.fixture_value:
                made = (self.fixture_value, self._make(variant, writer))
                self._shared[variant] = made
            return made[1]

    def _make(self, variant: str | None, writer: RunWriter) -> SuiteRuntime:
        active = self._suite
        suite = active.varied(variant)
        context = self._context(suite)
        elsewhere = self._rescores or self._cluster is not None

        def make_runner(varied: Suite) -> Runner:
            if elsewhere:
                return _NoRunner()
            return self._runner(replace(context, suite=varied))

        return SuiteRuntime.of(
            suite,
            suite_key=active.key,
            runner=make_runner(suite),
            judges=active.judges[variant],
            rootdir=active.rootdir,
            run_id=writer.run_id,
            model=active.options.model,
            variant=variant,
            values=active.suite.placeholders.get(variant or "", {}),
            step_runner=make_runner,
            hooks=self._hooks_of(suite, variant, writer),
            gateway=None if elsewhere else active.gateway(suite),
        )

    def _context(self, suite: Suite) -> RunnerContext:
        active = self._suite
        return RunnerContext(
            suite=suite,
            rootdir=active.rootdir,
            fixtures={active.fixture: self.fixture_value} if active.fixture else {},
            max_output_bytes=active.options.max_output,
            literal=active.literal,
            gateway=active.gateway(suite),
        )

    def _runner(self, context: RunnerContext) -> Runner:
        runner = context.suite.config.runner
        if self.fixture_problem and runner.function == f"fixture:{self._suite.fixture}":
            raise RunnerError(self.fixture_problem, lasting=True)
        return self._suite.runner_types[runner.type](context)

    def description(self) -> str:
        """How agents are kept apart, as each variant's runner says it; empty if they are not."""
        found = []
        for variant in self._suite.variants:
            suite = self._suite.varied(variant)
            if suite.config.runner.sandbox != "none" and not self._rescores:
                with contextlib.suppress(RunnerError):  # each case will say so
                    found.append(getattr(self._runner(self._context(suite)), "description", ""))
        return ", ".join(dict.fromkeys(filter(None, found)))

    def _hooks_of(self, suite: Suite, variant: str | None, writer: RunWriter) -> SuiteHooks | None:
        """The hooks of a variant; variants that change no hook share them."""
        hooks, active = suite.config.hooks, self._suite
        if not any(getattr(hooks, phase) for phase in type(hooks).model_fields):
            return None
        key = None if hooks == active.suite.config.hooks else variant
        if key not in self._hooks:
            env, _ = resolve_variables(suite.config.execution.env, os.environ, key="execution.env")
            self._hooks[key] = SuiteHooks(
                hooks,
                suite_file=suite.file,
                rootdir=active.rootdir,
                run_directory=str(writer.path),
                run_id=writer.run_id,
                session_id=self._session,
                workspaces=self.workspaces,
                label=os.path.join("", *self._label, key or ""),
                model=active.options.model or suite.config.models.skill or "",
                env=env,
                secrets=secrets_of(suite, os.environ),
            )
        return self._hooks[key]

    def secrets(self, variant: str | None) -> Secrets:
        """What nothing that is stored or printed of a variant's trials may hold."""
        made = self._shared.get(variant)
        return made[1].secrets if made is not None else Secrets.of(os.environ)

    def stored(
        self,
        case: Case,
        *,
        variant: str | None,
        trial: int,
        run: StoredRun,
        writer: RunWriter,
        cancelled: threading.Event,
    ) -> Steps[Stored | None]:
        """What a stored run gives for a trial; None where it has to be carried out.

        A session that judges again (``--agent-eval-rescore``) always gets an answer.

        Raises:
            RunDirectoryError: the run to write to is kept elsewhere.
        """
        known = run.find(self._suite.key, case.name, variant, trial)
        shared = self.shared(variant, writer)
        if self._rescores:
            again = yield from self._judged_again(
                case, variant, trial, known, run, writer, shared, cancelled
            )
            return again._replace(result=shared.secrets.result(again.result))
        if known is None:
            return None
        path = str(case.path)
        reuse = decide_reuse(
            known.result,
            case_digest=case_digest(path, case_manifest(path)),
            execution_digest=shared.execution_digest,
            judges={judge.name: judge.digest for judge in self._suite.judges[variant]},
            recorded=_is_recorded(run, known.result),
        )
        if reuse.action == "run":
            return None
        if reuse.action == "keep" and known.result.status == _status(known.result, shared):
            reward = _reward(known.result, shared)
            if known.result.reward == reward.value:
                return Stored(known.result, "kept")
            changed = replace(known.result, reward=reward.value, reward_reason=reward.reason)
            return Stored(replace(changed, rescored=True), "judged again")
        record = Record.from_directory(str(run.record_directory(known.result)), case=case)
        verdicts = reuse.kept if reuse.action == "judge" else known.result.verdicts
        kept = {verdict.judge: verdict for verdict in verdicts}
        judged = yield from judge_steps(
            shared, known.result, record, cancelled=cancelled, kept=kept
        )
        return Stored(shared.secrets.result(replace(judged, rescored=True)), "judged again")

    def _judged_again(
        self,
        case: Case,
        variant: str | None,
        trial: int,
        known: StoredTrial | None,
        run: StoredRun,
        writer: RunWriter,
        shared: SuiteRuntime,
        cancelled: threading.Event,
    ) -> Steps[Stored]:
        if known is None or known.result.execution is None or not known.result.record:
            why = "no execution of it is stored" if known is None else known.result.reason
            reason = f"nothing to judge in {run.path.name}: {why}"
            skipped = self.unstarted(case, variant, trial, "skipped", "", reason)
            return Stored(skipped, "not there")
        result = known.result
        if result.status == "error":
            return Stored(result, "kept")
        try:
            record = Record.from_directory(str(run.record_directory(result)), case=case)
            result = replace(result, record=run.reference(result, writer.path))
        except RunDirectoryError as error:
            reason = f"nothing to judge in {run.path.name}: {error}"
            skipped = self.unstarted(case, variant, trial, "skipped", "", reason)
            return Stored(skipped, "not there")
        path = str(case.path)
        if result.case_digest != case_digest(path, case_manifest(path)):
            note = "the case has changed since the agent worked on it"
            result = replace(result, notes=(*result.notes, note))
        yield Released()
        judged = yield from judge_steps(shared, result, record, cancelled=cancelled)
        return Stored(judged, "judged again")

    # -- the dataset -----------------------------------------------------------------------

    def remember_dataset(self) -> None:
        """Take stock of the whole dataset before the first agent starts."""
        self._files = case_manifest(str(self._suite.suite.dataset_directory))

    def dataset_changes(self) -> str:
        """What has changed in the dataset since, as a sentence; empty if nothing has.

        A trial notices what its agent does to its own case. This notices the other cases.
        """
        if self._files is None:
            return ""
        in_repo = any(map(self._suite.shares_workspace, self._suite.variants))
        directory = str(self._suite.suite.dataset_directory)
        changed = changed_in(directory, self._files, was_set_back=in_repo)
        if not changed:
            return ""
        shown: Sequence[str] = changed
        if self._suite.sealed:
            told = {
                one.directory.name for one in self._suite.cases if not self._suite.is_sealed(one)
            }
            shown = [path for path in changed if Path(path).parts[0] in told]
        named = ", ".join(shown[:5]) or "files of sealed cases"
        left = len(changed) - len(shown[:5]) if shown else 0
        more = f" and {left} more" if left else ""
        return (
            f"{self._suite.key}: the dataset was changed during the run, by an agent or by hand: "
            f"{named}{more}"
        )

    # -- results of what did not run ---------------------------------------------------------

    def broken(self, case: BrokenCase, variant: str | None) -> TrialResult:
        """The result of a case that cannot be tried."""
        return TrialResult(
            suite=self._suite.key,
            case=case.name,
            variant=variant,
            split="",
            status="error",
            kind="case",
            reason=case.error.message,
        )

    def unstarted(
        self,
        case: Case,
        variant: str | None,
        trial: int,
        status: Status,
        kind: FailureKind,
        reason: str,
    ) -> TrialResult:
        """The result of a trial whose agent was not started."""
        return TrialResult(
            suite=self._suite.key,
            case=case.name,
            split=case.split,
            group=case.group,
            tags=dict(case.tags),
            category=case.category,
            trial=trial,
            variant=variant,
            status=status,
            kind=kind,
            reason=reason,
        )

    def evidence(self, case: Case, result: TrialResult, run: Path) -> dict[str, Any]:
        """What the failure block shows besides the verdicts: the input, the end of the output."""
        from pytest_agent_eval.execution.verdict import last_said

        try:
            asked: Mapping[str, Any] | None = case.input()
        except AgentEvalError:
            asked = None
        told = result.execution is not None and result.execution.detail
        tail = last_said(str(run / result.record)) if result.record and not told else ""
        return {"input": self.secrets(result.variant).value(asked), "output_tail": tail}


_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 30.0
"""Before an attempt is repeated; doubled each time."""


def _together(failed: Sequence[TrialResult], last: TrialResult) -> TrialResult:
    """The last attempt, with what the attempts before it cost."""
    if not failed:
        return last
    notes = tuple(
        f"attempt {number} failed: {one.reason}" for number, one in enumerate(failed, start=1)
    )
    usage = last.usage
    for one in failed:
        usage = add_usage(usage, one.usage)
    return replace(last, usage=usage, notes=(*notes, *last.notes))


def _status(result: TrialResult, shared: SuiteRuntime) -> Status:
    """What the stored verdicts come to now: a judge may have got a threshold, or lost it."""
    kind = result.kind or "agent"
    return decide(result.execution, result.verdicts, shared.gated, execution_kind=kind).status


def _reward(result: TrialResult, shared: SuiteRuntime) -> Reward:
    """The reward that the stored verdicts come to now."""
    return reward_of(shared.reward, result.verdicts) if shared.reward else Reward(None)


def _is_recorded(run: StoredRun, result: TrialResult) -> bool:
    try:
        run.record_directory(result)
    except RunDirectoryError:
        return False
    return True


class _NoRunner:
    """In place of a runner in a session that only judges, or lets agents work on a cluster."""

    def run(self, task: Task) -> Execution:
        raise RunnerError("this session runs no agent")
