"""Mode batch: one invocation of the agent for all selected cases, then a record for each case."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from pytest_agent_eval.deadline import Released, Steps
from pytest_agent_eval.errors import CaseError, DocumentError, RunnerError, TemplateError
from pytest_agent_eval.execution.batch_outputs import Attribution, BatchOutput, attribute
from pytest_agent_eval.execution.collect import (
    EVENTS_FILE,
    FILES,
    METRICS_FILE,
    MODIFIED,
    Collected,
    collect,
)
from pytest_agent_eval.execution.files import walk
from pytest_agent_eval.execution.hooks import Handed
from pytest_agent_eval.execution.invocation import invoke
from pytest_agent_eval.execution.judging import judge_steps
from pytest_agent_eval.execution.leak_check import leak_checked
from pytest_agent_eval.execution.manifest import (
    CaseManifest,
    case_digest,
    case_manifest,
    changed_in,
)
from pytest_agent_eval.execution.metrics import merge_usage
from pytest_agent_eval.execution.names import plain
from pytest_agent_eval.execution.once import once_steps
from pytest_agent_eval.execution.record import EVENTS, STDERR, STDOUT, Record
from pytest_agent_eval.execution.redacted import redact_logs, redacted_execution
from pytest_agent_eval.execution.runtime import SuiteRuntime
from pytest_agent_eval.execution.steps import Worked
from pytest_agent_eval.execution.trial import Attempt, Executed, dataset_changed, make_task
from pytest_agent_eval.execution.usage import share_of
from pytest_agent_eval.execution.verdict import EXECUTION, judge_execution
from pytest_agent_eval.execution.workspace import (
    OUTPUT,
    Workspace,
    create_shared_workspace,
    workspace_name,
)
from pytest_agent_eval.results import FailureKind, TrialResult, Usage, Verdict
from pytest_agent_eval.runners.base import Execution

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case

__all__ = ["BATCH", "CASE_ORDER", "CasePlace", "batch_case_steps", "execute_batch"]

BATCH = "batch.yaml"
CASE_ORDER = "case_order.yaml"
CASE = "case"
"""Key of the case's name in each entry of ``batch.yaml``."""


class CasePlace(NamedTuple):
    """A case of a batch and where its trial is stored.

    Attributes:
        case: the case.
        directory: of the trial (absolute); exists and is empty.
        record: the same relative to the run's directory, with slashes.
    """

    case: Case
    directory: str
    record: str


def batch_case_steps(
    shared: SuiteRuntime,
    cases: Sequence[Case],
    case: Case,
    trial: int,
    *,
    place: Callable[[Case], CasePlace],
    directory: Callable[[], str],
    state: str,
    workspace_root: str,
    cancelled: threading.Event,
) -> Steps[TrialResult]:
    """The trial of one case of a batch.

    Whichever case of the batch comes first, in whichever process of the session, has the agent
    work on all of them; the others wait for it and read what is stored.

    Args:
        shared: of the suite.
        cases: all selected cases of the suite, in dataset order.
        case: one of them.
        trial: 1-based; each trial is a batch of its own.
        place: makes the place of a case's trial.
        directory: makes the directory of the batch itself (absolute; empty), for logs and files.
        state: path of a file that no other session and no other batch has (absolute).
        workspace_root: an existing directory for workspaces (absolute).
        cancelled: ends the trial early when set.
    """

    def work() -> Steps[Mapping[str, Any]]:
        places = [place(one) for one in cases]
        executed = yield from execute_batch(
            shared,
            places,
            trial,
            directory=directory(),
            workspace_root=workspace_root,
            cancelled=cancelled,
        )
        if cancelled.is_set():
            raise RunnerError("cancelled: the session stops")
        return {
            where.case.name: {
                "result": plain(one.result.to_dict()),
                "directory": where.directory if one.record is not None else "",
            }
            for where, one in zip(places, executed, strict=True)
        }

    attempt = Attempt(shared, case, trial, "", "")
    try:
        done = yield from once_steps(state, work, cancelled=cancelled)
    except RunnerError as error:
        return attempt.refuse("infrastructure", str(error), lasting=error.lasting).result
    known = done.value.get(case.name)
    if known is None:
        return attempt.refuse("infrastructure", "the batch was made without this case").result
    result = TrialResult.from_dict(known["result"])
    if not known["directory"]:
        return result
    record = Record.from_directory(known["directory"], case=case)
    result = leak_checked(shared, case, known["directory"], result)
    yield Released()
    return (yield from judge_steps(shared, result, record, cancelled=cancelled))


def execute_batch(
    shared: SuiteRuntime,
    places: Sequence[CasePlace],
    trial: int,
    *,
    directory: str,
    workspace_root: str,
    cancelled: threading.Event,
) -> Steps[list[Executed]]:
    """Let the agent work once on all cases, and store a record for each.

    What goes wrong is in the results, not raised.

    Args:
        shared: of the suite.
        places: the cases, in the order of ``batch.yaml``; at least one.
        trial: 1-based.
        directory: for the logs and files of the whole batch (absolute); exists and is empty.
        workspace_root: an existing directory for workspaces (absolute).
        cancelled: ends the agent early when set.

    Returns:
        One for each case, in that order.
    """
    batch = _Batch(shared, places, trial, directory)
    try:
        yield from batch.carry_out(workspace_root, cancelled)
    except (CaseError, TemplateError, DocumentError) as error:
        batch.refuse("case", str(error))
    except RunnerError as error:
        batch.refuse("infrastructure", str(error), lasting=error.lasting)
    except OSError as error:
        batch.refuse("infrastructure", f"the trial cannot be stored: {error}")
    return batch.results()


@dataclass(frozen=True, slots=True)
class _Member:
    """A case that takes part: its trial, its input, and its files before the agent began."""

    attempt: Attempt
    values: dict[str, Any]
    before: CaseManifest

    @property
    def case(self) -> Case:
        return self.attempt.case


class _Batch:
    """One batch under way."""

    def __init__(
        self, shared: SuiteRuntime, places: Sequence[CasePlace], trial: int, directory: str
    ) -> None:
        self._shared = shared
        self._directory = directory
        self._trial = trial
        self._attempts = [
            Attempt(shared, place.case, trial, place.directory, place.record) for place in places
        ]
        self._members: list[_Member] = []
        self._asides: tuple[Mapping[str, Any], ...] = ()
        self._done: dict[str, Executed] = {}

    def results(self) -> list[Executed]:
        """One for each case."""
        return [self._done[attempt.case.name] for attempt in self._attempts]

    def carry_out(self, workspace_root: str, cancelled: threading.Event) -> Steps[None]:
        shared = self._shared
        self._read_cases()
        if not self._members:
            return
        begun = shared.hooks.begin(cancelled) if shared.hooks is not None else Handed()
        name = workspace_name(
            shared.run_id, shared.suite_key, "\0batch", shared.variant, self._trial
        )
        workspace = create_shared_workspace(
            os.path.join(workspace_root, name), self._files(), shared.contents
        )
        notes = list(workspace.notes)
        if shared.hooks is not None:
            notes += shared.hooks.notes()
        self._secrets = shared.secrets.and_of(begun.env)
        first = self._members[0]
        # Told once, as the notes are. No case's answers are those of the batch.
        interaction = first.attempt.interaction = shared.interactions.of_case(None)
        execution = yield from invoke(
            shared.runner,
            make_task(
                shared,
                {"batch": self._entries()},
                workspace=workspace.directory,
                log_dir=self._directory,
                prompt=(
                    shared.prompt.render(first.values, case=first.case.name)
                    if shared.prompt
                    else ""
                ),
                # As it is written: no case's input is that of the batch.
                arguments=shared.arguments.source if shared.arguments else "",
                env=begun.env,
                cancelled=cancelled,
                secrets=self._secrets,
                trial=self._trial,
                interaction=interaction,
            ),
        )
        redact_logs(self._directory, self._secrets)
        self._asides = tuple(interaction.take_events())
        execution = redacted_execution(execution, self._secrets)
        for member in self._members:
            member.attempt.where = workspace.directory
            member.attempt.handed = begun
        self._tell(*notes, *execution.notes)
        if execution.failure == "infrastructure":
            lasting = execution.lasting
            self.refuse("infrastructure", execution.error, execution, lasting=lasting)
        else:
            self._divide(execution, workspace)

    def refuse(
        self,
        kind: FailureKind,
        reason: str,
        execution: Execution | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        """Nothing can be said about the agent: that is the result of each case without one."""
        for attempt in self._attempts:
            if attempt.case.name not in self._done:
                self._done[attempt.case.name] = attempt.refuse(kind, reason, lasting=lasting)
        if execution is not None:
            for index, member in enumerate(self._members):
                share = self._share(execution, execution.usage, index)
                self._done[member.case.name] = member.attempt.refuse(
                    kind, reason, share, lasting=lasting
                )

    def _tell(self, *notes: str) -> None:
        """Once, not once for each case."""
        self._members[0].attempt.notes += notes

    # -- before ----------------------------------------------------------------------------

    def _read_cases(self) -> None:
        """Read the inputs. A case that cannot be used is left out, and its result is an error."""
        for attempt in self._attempts:
            case = attempt.case
            before = case_manifest(case.path)
            attempt.digest = case_digest(case.path, before)
            try:
                values = case.input()
                if values.get(CASE, case.name) != case.name:
                    said = f"has a field {CASE}, which is the name of a case in {BATCH}"
                    raise CaseError(case.name, f"{case.input_name} {said}; rename the field")
            except CaseError as error:
                self._done[case.name] = attempt.refuse("case", error.message)
                continue
            self._members.append(_Member(attempt, values, before))

    def _entries(self) -> list[dict[str, Any]]:
        return [{CASE: member.case.name, **member.values} for member in self._members]

    def _files(self) -> dict[str, str]:
        order = [{"case_id": member.case.name, "entry_count": 1} for member in self._members]
        return {BATCH: _yaml(self._entries()), CASE_ORDER: _yaml(order)}

    # -- after -----------------------------------------------------------------------------

    def _divide(self, execution: Execution, workspace: Workspace) -> None:
        """Give each case what is its own, and store its record."""
        shared, config = self._shared, self._shared.config
        collected = collect(
            workspace,
            self._directory,
            shared.contents.outputs,
            metrics=config.traces.metrics,
            events=config.traces.events,
            secrets=self._secrets,
        )
        self._tell(*collected.notes)
        usage = merge_usage(execution.usage, collected.usage)
        produced = bool(execution.output.strip() or collected.files or collected.modified)
        verdict, kind = judge_execution(
            execution,
            usage=usage,
            budget=config.execution.max_budget_usd,
            allowed=config.execution.allow_exit_codes,
            produced=produced,
            directory=self._directory,
        )
        changed = [
            f"{member.case.name}/{path}"
            for member in self._members
            for path in changed_in(member.case.path, member.before)
        ]
        if changed:
            verdict, kind = dataset_changed(changed, verdict), "agent"
        try:
            found = self._attribute(collected)
        except CaseError as error:
            if not kind:
                self.refuse("case", error.message, replace(execution, usage=usage))
                return
            # An agent that failed left what it left; its failure is what has to be told.
            self._tell(error.message)
            found = Attribution([[] for _ in self._members])
        whole = Worked(execution, usage, None, {}, workspace, (), self._asides)
        for index, member in enumerate(self._members):
            concluded = self._case(index, whole, collected, (verdict, kind), found)
            self._done[member.case.name] = concluded

    def _attribute(self, collected: Collected) -> Attribution:
        outputs = [
            BatchOutput(output.path, output.batch_pattern)
            for output in self._shared.config.outputs
            if output.path
        ]
        left = (METRICS_FILE, EVENTS_FILE)
        files = [
            path
            for path, _ in walk(os.path.join(self._directory, FILES))
            if path not in left and not path.startswith(f"{MODIFIED}/")
        ]
        names = [member.case.name for member in self._members]
        return attribute(files, outputs or [BatchOutput(OUTPUT)], names)

    def _case(
        self,
        index: int,
        whole: Worked,
        collected: Collected,
        judged: tuple[Verdict, FailureKind],
        found: Attribution,
    ) -> Executed:
        member, own = self._members[index], found.own[index]
        said = whole.execution.output.strip()
        self._hand_out(member.attempt.directory, (*own, *found.shared))
        if any(found.own) and not own and not judged[1]:
            why = "left nothing for this case of the batch"
            judged = Verdict(EXECUTION, value=False, passed=False, rationale=why), "agent"
        share = self._share(whole.execution, whole.usage, index)
        return member.attempt.conclude(
            whole._replace(execution=share, usage=share.usage),
            share.usage,
            judged,
            collected,
            member.values,
            produced=bool(own or found.shared or said or collected.modified),
        )

    def _share(self, execution: Execution, usage: Usage, index: int) -> Execution:
        """What a case has of an execution: its part of time, tokens and cost, and all it said."""
        count = len(self._members)
        return replace(
            execution,
            usage=share_of(usage, index, count),
            duration_s=execution.duration_s / count,
            notes=(),
        )

    def _hand_out(self, directory: str, files: Sequence[str]) -> None:
        """Give a case its files, what was changed elsewhere, and the logs."""
        source = os.path.join(self._directory, FILES)
        modified = (path for path, _ in walk(source, below=MODIFIED))
        for path in (*files, *modified):
            _link(os.path.join(source, path), os.path.join(directory, FILES, path))
        for name in (STDOUT, STDERR, EVENTS):
            _link(os.path.join(self._directory, name), os.path.join(directory, name))


def _link(source: str, target: str) -> None:
    """The same file under another name, or a copy where that cannot be."""
    if not os.path.exists(source):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _yaml(value: Any) -> str:
    return yaml.safe_dump(plain(value), allow_unicode=True, sort_keys=False)
