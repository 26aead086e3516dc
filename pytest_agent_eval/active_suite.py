"""A suite as one pytest session has opened it: its cases, judges and runner."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.errors import (
    AgentEvalError,
    Problem,
    RunnerError,
    SuiteError,
    TemplateError,
)
from pytest_agent_eval.results import TrialResult

if TYPE_CHECKING:
    from pytest_agent_eval.cases import BrokenCase, Case
    from pytest_agent_eval.cases.conditions import Condition
    from pytest_agent_eval.deadline import Steps
    from pytest_agent_eval.evidence.summary import SuiteInfo
    from pytest_agent_eval.execution.manifest import CaseManifest
    from pytest_agent_eval.execution.runtime import SuiteRuntime
    from pytest_agent_eval.judges import BoundJudge
    from pytest_agent_eval.judges.base import JudgeKind
    from pytest_agent_eval.options import Options
    from pytest_agent_eval.runners.base import RunnerType
    from pytest_agent_eval.runs.writer import RunWriter
    from pytest_agent_eval.suite import Suite

__all__ = ["ActiveSuite"]

HALVES = ("dev", "holdout")


class ActiveSuite:
    """What all cases of one suite share during one session.

    Attributes:
        suite: the parsed suite.
        key: its file relative to the root directory, with slashes.
        asked: its cases run; otherwise they are collected and skipped.
        cases: the cases that belong to the dataset, after :meth:`read_cases`.
        selected: those of them that the selection left.
        half: the split that was asked for, or None.
        notes: things worth telling once, such as warnings of the suite.
    """

    def __init__(
        self,
        suite: Suite,
        *,
        key: str,
        asked: bool,
        options: Options,
        rootdir: Path,
        runner_types: Mapping[str, RunnerType],
        judge_kinds: Mapping[str, JudgeKind],
    ) -> None:
        self.suite = suite
        self.key = key
        self.asked = asked
        self.cases: Sequence[Case | BrokenCase] = ()
        self.selected: Sequence[Case | BrokenCase] = ()
        self.half: str | None = None
        self.notes = [str(warning) for warning in suite.warnings]
        self._options = options
        self._rootdir = rootdir
        self._runner_types = runner_types
        self._judge_kinds = judge_kinds
        self._runtime: tuple[Any, SuiteRuntime] | None = None
        self._judges: tuple[BoundJudge, ...] = ()
        self._literal: frozenset[str] = frozenset()
        self._files: CaseManifest | None = None
        self._conditions = self._early_conditions()
        self._answers: defaultdict[tuple[str, str], list[bool | None]] = defaultdict(list)

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        key: str,
        asked: bool,
        options: Options,
        rootdir: Path,
        runner_types: Mapping[str, RunnerType],
        judge_kinds: Mapping[str, JudgeKind],
    ) -> ActiveSuite:
        """Read and check a suite; make its judges if it is to run.

        Raises:
            SuiteError: all problems of the file, or all that is not supported.
        """
        from pytest_agent_eval.judges import builtin_names
        from pytest_agent_eval.runners import BUILTIN
        from pytest_agent_eval.suite import (
            BUILTIN_RUNNER_TYPES,
            Known,
            load_suite,
            unsupported,
        )
        from pytest_agent_eval.suite.known import both_forms

        files = builtin_names(options.judge_dirs)
        own = both_forms(frozenset(files))
        asking = both_forms(frozenset(name for name, file in files.items() if file.endswith(".md")))
        known = Known(
            runner_types=BUILTIN_RUNNER_TYPES | frozenset(runner_types),
            judge_kinds=frozenset(judge_kinds),
            builtins=Known().builtins | own,
            llm_builtins=Known().llm_builtins | asking,
        )
        suite = load_suite(path, rootdir=rootdir, known=known)
        self = cls(
            suite,
            key=key,
            asked=asked,
            options=options,
            rootdir=rootdir,
            runner_types={**BUILTIN, **runner_types},
            judge_kinds=judge_kinds,
        )
        if asked and not suite.config.judges:
            self.notes.append("there are no judges: a case passes when the agent worked")
        if asked:
            problems = unsupported(suite)
            if problems:
                raise SuiteError(*problems)
            self._judges = self._make_judges()
        return self

    # -- cases -----------------------------------------------------------------------------

    def read_cases(self) -> Sequence[Case | BrokenCase]:
        """Read the cases that belong to the dataset, as the suite filters it.

        Raises:
            AgentEvalError: no such directory, no case in it, or a placeholder no case provides.
        """
        from pytest_agent_eval.cases import Split, dataset_cases, read_cases

        dataset = self.suite.config.dataset
        split = Split(dataset.split.holdout, dataset.split.by, dataset.split.salt)
        rules = [
            ("include", rule.include) if rule.include else ("exclude", rule.exclude or "")
            for rule in dataset.cases
        ]
        self.cases = dataset_cases(
            read_cases(self.suite.dataset_directory, split), rules, dataset.if_
        )
        if self.asked:
            self._check_placeholders()
            self._find_literal_placeholders()
        return self.cases

    def applicable(self, case: Case) -> list[str]:
        """Names of the judges whose condition does not exclude the case at collection."""
        from pytest_agent_eval.cases.coverage import holds

        names = []
        for name, condition in self._conditions:
            answer = None if condition is None else holds(condition, case)
            if condition is not None:
                self._answers[condition.source, name].append(answer)
            if answer is not False:
                names.append(name)
        return names

    def note_one_sided_conditions(self) -> None:
        """Note each condition that is true for every case, or for none; after all were asked."""
        for (source, name), answers in self._answers.items():
            true, false = answers.count(True), answers.count(False)
            if self.asked and true + false > 1 and not (true and false):
                which = "every case" if true else "no case"
                self.notes.append(
                    f"judge {name}: its condition is true for {which}, so one branch is untested: "
                    f"{source}"
                )

    def headline(self) -> str:
        """``agent-eval: support inbox: 24 cases (12 dev, 12 holdout)``."""
        counts = self._counts(self.selected)
        halves = ", ".join(f"{count} {half}" for half, count in counts.items() if count)
        total = len(self.selected)
        noun = "case" if total == 1 else "cases"
        return f"agent-eval: {self.suite.name}: {total} {noun}" + (f" ({halves})" if halves else "")

    def info(self) -> SuiteInfo:
        """What the summary needs to know of this suite."""
        from pytest_agent_eval.evidence.aggregate import JudgeInfo
        from pytest_agent_eval.evidence.summary import SuiteInfo

        config = self.suite.config
        judges = tuple(
            JudgeInfo(
                judge.name,
                judge.kind,
                (judge.score_range[0], judge.score_range[1]) if judge.score_range else None,
                judge.name in config.thresholds,
            )
            for judge in config.judges
        )
        grouped = config.dataset.split.by != "name"
        return SuiteInfo(
            key=self.key,
            name=self.suite.name,
            file=self.key,
            digest=self.suite.digest,
            judges=judges,
            thresholds={
                name: threshold.model_dump(exclude_none=True)
                for name, threshold in config.thresholds.items()
            },
            total=self._counts(self.cases),
            selected=self._counts(self.selected),
            half=self.half,
            without_group=sum(_groupless(case) for case in self.cases) if grouped else 0,
        )

    def is_gated(self, judge: str) -> bool:
        """Whether a judge has a threshold."""
        return judge in self.suite.config.thresholds

    # -- running ---------------------------------------------------------------------------

    @property
    def fixture(self) -> str:
        """Name of the fixture that is the runner's callable; empty for every other runner."""
        kind, _, name = (self.suite.config.runner.function or "").partition(":")
        return name if self.suite.config.runner.type == "python" and kind == "fixture" else ""

    def steps(
        self,
        case: Case,
        *,
        parts: tuple[str, ...],
        attempt: int,
        fixture: Any,
        writer: RunWriter,
        workspaces: str,
        cancelled: threading.Event,
    ) -> Steps[TrialResult]:
        """Carry out one case; advanced in the engine's thread.

        Args:
            case: the case.
            parts: path components of its directory in the run, before the trial's number.
            attempt: from 2 on where another plugin runs the case again: what the attempts before
                left stays as it is.
            fixture: value of :attr:`fixture`.
            writer: of the run.
            workspaces: directory for workspaces (absolute).
            cancelled: set when the session wants the trial to end.
        """
        from pytest_agent_eval.execution.trial import trial_steps

        try:
            shared = self._shared(fixture, writer.run_id)
        except (RunnerError, TemplateError) as error:
            return self.unstarted(case, "infrastructure", str(error))
        number = "1" if attempt == 1 else f"1.{attempt}"
        if attempt > 1:
            workspaces = os.path.join(workspaces, f"attempt-{attempt}")
        if not os.path.isdir(workspaces):  # also where an agent removed what was above its own
            os.makedirs(workspaces)
        steps = trial_steps(
            shared,
            case,
            1,
            directory=writer.trial_directory(*parts, number),
            record_path="/".join(("cases", *parts, number)),
            workspace_root=workspaces,
            cancelled=cancelled,
        )
        return (yield from steps)

    def remember_dataset(self) -> None:
        """Take stock of the whole dataset before the first agent starts."""
        from pytest_agent_eval.execution.manifest import case_manifest

        self._files = case_manifest(str(self.suite.dataset_directory))

    def dataset_changes(self) -> str:
        """What has changed in the dataset since, as a sentence; empty if nothing has.

        A trial notices what its agent does to its own case. This notices the other cases.
        """
        from pytest_agent_eval.execution.manifest import changed_in

        if self._files is None:
            return ""
        changed = changed_in(str(self.suite.dataset_directory), self._files)
        if not changed:
            return ""
        more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
        return (
            f"{self.key}: the dataset was changed during the run, by an agent or by hand: "
            f"{', '.join(changed[:5])}{more}"
        )

    def broken(self, case: BrokenCase) -> TrialResult:
        """The result of a case that cannot be tried."""
        return TrialResult(
            suite=self.key,
            case=case.name,
            split="",
            status="error",
            kind="case",
            reason=case.error.message,
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
        return {"input": asked, "output_tail": tail}

    def unstarted(self, case: Case, kind: Any, reason: str) -> TrialResult:
        """The result of a case whose agent could not be started."""
        return TrialResult(
            suite=self.key,
            case=case.name,
            split=case.split,
            group=case.group,
            tags=dict(case.tags),
            category=case.category,
            status="error",
            kind=kind,
            reason=reason,
        )

    # -- inside ----------------------------------------------------------------------------

    def _make_judges(self) -> tuple[BoundJudge, ...]:
        from pytest_agent_eval.judges import make_judges

        return make_judges(
            self.suite,
            rootdir=self._rootdir,
            kinds=self._judge_kinds,
            builtin_dirs=self._options.judge_dirs,
        )

    def _shared(self, fixture: Any, run_id: str) -> SuiteRuntime:
        """What all trials share: made once, or once for each value of a fixture.

        Raises:
            RunnerError, TemplateError: it cannot be made.
        """
        if self._runtime is None or self._runtime[0] is not fixture:
            self._runtime = (fixture, self._make_runtime(fixture, run_id))
        return self._runtime[1]

    def _make_runtime(self, fixture: Any, run_id: str) -> SuiteRuntime:
        from pytest_agent_eval.execution.runtime import SuiteRuntime
        from pytest_agent_eval.runners.base import RunnerContext

        context = RunnerContext(
            suite=self.suite,
            rootdir=self._rootdir,
            fixtures={self.fixture: fixture} if self.fixture else {},
            max_output_bytes=self._options.max_output,
            literal=self._literal,
        )
        return SuiteRuntime.of(
            self.suite,
            suite_key=self.key,
            runner=self._runner_types[self.suite.config.runner.type](context),
            judges=self._judges,
            rootdir=self._rootdir,
            run_id=run_id,
            model=self._options.model,
        )

    def _early_conditions(self) -> list[tuple[str, Condition | None]]:
        """Each judge with its condition, if that can be decided without running anything."""
        from pytest_agent_eval.cases import JUDGE_NAMES, compile_condition
        from pytest_agent_eval.cases.coverage import is_early

        found: list[tuple[str, Condition | None]] = []
        for judge in self.suite.config.judges:
            condition = compile_condition(judge.if_, JUDGE_NAMES) if judge.if_ else None
            early = condition is not None and is_early(condition)
            found.append((judge.name, condition if early else None))
        return found

    def _check_placeholders(self) -> None:
        """Find a placeholder that no case's input provides now, not when the first case runs.

        Raises:
            SuiteError: names each of them.
        """
        from pytest_agent_eval.cases.templates import compile_template

        execution = self.suite.config.execution
        templates = {
            "execution.prompt": execution.prompt,
            "execution.arguments": execution.arguments,
        }
        problems = [
            Problem(f"{{{name}}}: no case's input has this field", place, self.key, line)
            for place, source in templates.items()
            if source
            for line in [self.suite.line(place)]
            for name in sorted(self._provided_by_none(compile_template(source).missing))
        ]
        if problems:
            raise SuiteError(*problems)

    def _find_literal_placeholders(self) -> None:
        """Leave ``${HOME}`` and the like in a command alone, and say so."""
        from pytest_agent_eval.cases.templates import Template, placeholders
        from pytest_agent_eval.runners.command import PLACEHOLDERS

        command = self.suite.config.runner.command
        if not command or not placeholders(command) - PLACEHOLDERS:
            return
        names = " ".join(f"{{{name}}}" for name in placeholders(command) - PLACEHOLDERS)
        self._literal = self._provided_by_none(Template(names).missing)
        text = command if isinstance(command, str) else " ".join(map(str, command))
        for name in sorted(self._literal):
            if f"{{{name}}}" not in text.replace(f"${{{name}}}", ""):
                continue  # a variable of the shell
            near = get_close_matches(name, self._field_names() | PLACEHOLDERS, n=1)
            hint = f"; did you mean {{{near[0]}}}?" if near else ""
            self.notes.append(
                f"runner.command: {{{name}}} is left as it is: no case's input has this field{hint}"
            )

    def _field_names(self) -> set[str]:
        """Fields of the first input that can be read, for suggestions."""
        from pytest_agent_eval.cases import Case

        for case in self.cases:
            if isinstance(case, Case):
                with contextlib.suppress(AgentEvalError):
                    return set(case.input())
        return set()

    def _provided_by_none(
        self, missing: Callable[[Mapping[str, Any]], frozenset[str]]
    ) -> frozenset[str]:
        """What is missing from the input of every case; reads as few inputs as it can."""
        from pytest_agent_eval.cases import Case

        left: frozenset[str] | None = None
        for case in self.cases:
            if not isinstance(case, Case):
                continue
            try:
                found = missing(case.input())
            except AgentEvalError:
                continue  # its own error when it runs
            left = found if left is None else left & found
            if not left:
                break
        return left or frozenset()

    def _counts(self, cases: Sequence[Case | BrokenCase]) -> dict[str, int]:
        counts = Counter(getattr(case, "split", "") for case in cases)
        return {half: counts[half] for half in HALVES}


def _groupless(case: Case | BrokenCase) -> bool:
    return getattr(case, "group", "") is None
