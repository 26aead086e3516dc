"""A suite as one pytest session has opened it: its cases, judges and runner."""

from __future__ import annotations

import contextlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.errors import (
    AgentEvalError,
    Problem,
    SelectionError,
    SuiteError,
)
from pytest_agent_eval.suite.known import PAIRWISE

if TYPE_CHECKING:
    from pytest_agent_eval.cases import BrokenCase, Case
    from pytest_agent_eval.cases.conditions import Condition
    from pytest_agent_eval.evidence.summary import SuiteInfo
    from pytest_agent_eval.judges import BoundJudge
    from pytest_agent_eval.judges.base import BaselineRecords, CasePlace, JudgeKind
    from pytest_agent_eval.llm import Gateway, ModelProcess
    from pytest_agent_eval.options import Options
    from pytest_agent_eval.reports.mlflow_log import MlflowPlan
    from pytest_agent_eval.runners.base import RunnerType
    from pytest_agent_eval.runs.baseline import Baseline
    from pytest_agent_eval.suite import JudgeConfig, Suite

__all__ = ["ActiveSuite"]

HALVES = ("dev", "holdout")


class ActiveSuite:
    """What all cases of one suite share during one session.

    Attributes:
        suite: the parsed suite.
        key: its file relative to the root directory, with slashes.
        asked: its cases run; otherwise they are collected and skipped.
        cases: the cases that belong to the dataset, after :meth:`read_cases`.
        selected: those of them that the selection left, each with the variant in which it runs.
        half: the split that was asked for, or None.
        variants: names of the variants that run; ``(None,)`` where the suite has none.
        baseline: the run that the session is compared with, or None.
        sealed: results of its holdout half are shown as aggregates only.
        one_at_a_time: why its cases run one by one although it allows more; empty if they do not.
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
        models: Callable[[], ModelProcess],
    ) -> None:
        self._models = models
        self.suite = suite
        self.key = key
        self.asked = asked
        self.cases: Sequence[Case | BrokenCase] = ()
        self.selected: Sequence[tuple[Case | BrokenCase, str | None]] = ()
        self.half: str | None = None
        self.variants: tuple[str | None, ...] = tuple(suite.variants) or (None,)
        self.baseline: Baseline | None = None
        self.sealed = suite.config.dataset.split.sealed and not options.reveal
        self._opaque: dict[str, str] | None = None
        self.one_at_a_time = ""
        self.notes = [str(warning) for warning in suite.warnings]
        self.options = options
        self.rootdir = rootdir
        self.runner_types = runner_types
        self._judge_kinds = judge_kinds
        self.judges: Mapping[str | None, tuple[BoundJudge, ...]] = {}
        self._gateways: dict[str, Gateway] = {}
        self._places: Mapping[str, CasePlace] = {}
        self.literal: frozenset[str] = frozenset()
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
        models: Callable[[], ModelProcess],
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
        from pytest_agent_eval.suite.runner_models import unasked

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
            models=models,
        )
        if asked and not suite.config.judges:
            self.notes.append("there are no judges: a case passes when the agent worked")
        if asked:
            problems = (*unsupported(suite), *self._mlflow_problems())
            if options.rescore is None:
                variants = [self.varied(name) for name in suite.variants] or [suite]
                found = [one for varied in variants for one in unasked(varied, options.model)]
                problems = (*problems, *dict.fromkeys(found))
            if problems:
                raise SuiteError(*problems)
            self.judges = self._make_judges()
        return self

    def compare_with(self, baseline: Baseline) -> None:
        """Let the judges that compare runs compare with this one; after :meth:`read_cases`.

        Raises:
            SuiteError: such a judge cannot be made.
        """
        self.baseline = baseline
        configs = (self.suite.config, *self.suite.variants.values())
        if any(judge.kind == PAIRWISE for config in configs for judge in config.judges):
            self.judges = self._make_judges()

    def pick_variants(self, names: Sequence[str]) -> None:
        """Let only these variants run."""
        self.variants = tuple(name for name in self.suite.variants if name in names)

    def shares_workspace(self, variant: str | None) -> str:
        """Why the cases of a variant cannot run side by side; empty if they can."""
        config = self.varied(variant).config
        if config.execution.mode == "batch":
            return "mode: batch"
        return "workspace_mode: repo" if config.runner.workspace_mode == "repo" else ""

    def varied(self, variant: str | None) -> Suite:
        """The suite as a variant changes it."""
        if variant is None:
            return self.suite
        return replace(self.suite, config=self.suite.variants[variant])

    # -- cases -----------------------------------------------------------------------------

    def read_cases(self) -> Sequence[Case | BrokenCase]:
        """Read the cases that belong to the dataset, as the suite filters it.

        Raises:
            AgentEvalError: no such directory, no case in it, or a placeholder no case provides.
        """
        from pytest_agent_eval.cases import Case, Split, dataset_cases, read_cases
        from pytest_agent_eval.judges.base import CasePlace

        dataset = self.suite.config.dataset
        split = Split(dataset.split.holdout, dataset.split.by, dataset.split.salt)
        rules = [
            ("include", rule.include) if rule.include else ("exclude", rule.exclude or "")
            for rule in dataset.cases
        ]
        every = read_cases(self.suite.dataset_directory, split)
        try:
            self.cases = dataset_cases(every, rules, dataset.if_)
        except SelectionError:
            if not self.sealed:
                raise  # it names cases
            message = "dataset.cases and dataset.if leave no case"
            raise SelectionError(f"{message}; --agent-eval-reveal says more") from None
        if self.asked:
            places = {
                case.name: CasePlace(case.split, case.group)
                for case in every
                if isinstance(case, Case)
            }
            self._places = places
            told = {case.name for case in every if not self.is_sealed(case)}
            self._check_labels({case.name for case in every}, told)
            self._note_examples()
            self._check_placeholders()
            self._find_literal_placeholders()
        return self.cases

    def is_sealed(self, case: Case | BrokenCase) -> bool:
        """Whether nothing may be shown of a case by itself. One that cannot be read is sealed
        unless its name alone says that it is of the dev half.
        """
        if not self.sealed:
            return False
        if self._opaque is not None:
            return case.path in self._opaque
        split = self.suite.config.dataset.split
        half = getattr(case, "split", "")
        if not half and split.by == "name":
            from pytest_agent_eval.cases import Split

            half = Split(split.holdout, split.by, split.salt).half(case.name)
        return bool(half != "dev")

    def in_order(self, session_id: str) -> list[Case | BrokenCase]:
        """The cases as they are collected: in dataset order; behind them those that are sealed, in
        an order that is another one in each session, so that a place tells nothing.
        """
        if not self.sealed:
            return [*self.cases]
        import xxhash

        sealed = [case for case in self.cases if self.is_sealed(case)]

        def place(case: Case | BrokenCase) -> int:
            key = f"{session_id}\0{case.path}".encode("utf-8", "surrogatepass")
            return xxhash.xxh3_128_intdigest(key)

        sealed.sort(key=place)
        hidden = {case.path for case in sealed}
        taken = {case.name for case in self.cases if case.path not in hidden}
        names = (name for number in count(1) if (name := f"sealed-{number}") not in taken)
        self._opaque = {case.path: name for case, name in zip(sealed, names, strict=False)}
        return [*(case for case in self.cases if case.path not in hidden), *sealed]

    def shown_name(self, case: Case | BrokenCase) -> str:
        """What a case is called wherever something is shown; after :meth:`in_order`."""
        return (self._opaque or {}).get(case.path, case.name)

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

    def headline(self, title: str) -> str:
        """``agent-eval: support inbox: 24 cases (12 dev, 12 holdout)``; ``title``: what tells the
        suite from others.
        """
        cases = [*{case.path: case for case, _ in self.selected}.values()]
        halves = ", ".join(f"{n} {half}" for half, n in _counts(cases).items() if n)
        noun = "case" if len(cases) == 1 else "cases"
        said = f"agent-eval: {title}: {len(cases)} {noun}"
        said += f" ({halves})" if halves else ""
        variants = len({variant for _, variant in self.selected if variant is not None})
        if variants:
            said += f", {variants} {'variant' if variants == 1 else 'variants'}"
        return said + (f", one at a time ({self.one_at_a_time})" if self.one_at_a_time else "")

    def infos(self) -> list[SuiteInfo]:
        """What the summary needs to know of this suite: of each of its variants that run."""
        return [self._info(variant) for variant in self.variants]

    def _info(self, variant: str | None) -> SuiteInfo:
        from pytest_agent_eval.evidence.aggregate import JudgeInfo
        from pytest_agent_eval.evidence.summary import SuiteInfo

        config = self.varied(variant).config
        judges = tuple(
            JudgeInfo(
                judge.name,
                judge.kind,
                _scale(judge),
                judge.name in config.thresholds,
                self.suite.labels[judge.labels].values if judge.labels else None,
                self._taught(judge),
            )
            for judge in config.judges
        )
        grouped = config.dataset.split.by != "name"
        return SuiteInfo(
            key=self.key,
            name=self.suite.name,
            variant=variant,
            file=self.key,
            digest=self.suite.digest,
            judges=judges,
            thresholds={
                name: threshold.model_dump(exclude_none=True)
                for name, threshold in config.thresholds.items()
            },
            total=_counts(self.cases),
            selected=_counts([case for case, one in self.selected if one == variant]),
            half=self.half,
            without_group=sum(_groupless(case) for case in self.cases) if grouped else 0,
            pass_rule=config.execution.pass_,
            baseline=self.baseline.name if self.baseline is not None else "",
            sealed=self.sealed,
            revealed=config.dataset.split.sealed and not self.sealed,
            ledger=self._ledger(),
            pairs=_pairs(self.cases),
            runner=config.runner.type,
            model=self.options.model or config.models.skill or "",
        )

    def _ledger(self) -> str:
        """The file of its looks relative to the root directory; empty where it has none."""
        if not self.suite.config.dataset.split.ledger:
            return ""
        from pytest_agent_eval.runs.ledger import ledger_of

        path = ledger_of(self.suite.dataset_directory)
        return os.path.relpath(path, self.rootdir).replace(os.sep, "/")

    def mlflow_plans(self) -> list[MlflowPlan]:
        """How the suite, or each of its variants that run, is logged to MLflow; most are not."""
        found: list[MlflowPlan] = []
        for variant in self.variants:
            block = self.varied(variant).config.mlflow
            if block is not None:
                from pytest_agent_eval.reports.mlflow_log import MlflowPlan

                tags = {str(name): str(value) for name, value in block.tags.items()}
                experiment = block.experiment or self.suite.name
                plan = MlflowPlan(self.key, variant, experiment, block.tracking_uri, tags)
                found.append(plan)
        return found

    def _mlflow_problems(self) -> list[Problem]:
        """That MLflow is not installed, which is no surprise for the end of a run."""
        plans = self.mlflow_plans()
        if not plans:
            return []
        from pytest_agent_eval.reports.mlflow_log import what_is_missing

        found = dict.fromkeys(what_is_missing(plan, os.environ) for plan in plans)
        line = self.suite.line("mlflow") or 1
        return [Problem(text, "mlflow", self.suite.shown, line) for text in found if text]

    def is_gated(self, judge: str, variant: str | None) -> bool:
        """Whether a judge has a threshold."""
        return judge in self.varied(variant).config.thresholds

    @property
    def fixture(self) -> str:
        """Name of the fixture that is the runner's callable; empty for every other runner."""
        for variant in self.variants:
            runner = self.varied(variant).config.runner
            kind, _, name = (runner.function or "").partition(":")
            if runner.type == "python" and kind == "fixture":
                return name
        return ""

    @property
    def fixture_place(self) -> str:
        """File, line and key that name the fixture, e.g. ``eval.yaml:3: runner.function``."""
        wanted = f"fixture:{self.fixture}"
        for variant in self.variants:
            place = ("variants", variant or "", "runner", "function")
            if self.varied(variant).config.runner.function == wanted:
                from pytest_agent_eval.documents import format_place

                path = format_place(place if place in self.suite.positions else place[2:])
                return f"{self.suite.shown}:{self.suite.line(path) or 1}: {path}"
        return self.suite.shown

    # -- inside ----------------------------------------------------------------------------

    def _make_judges(self) -> dict[str | None, tuple[BoundJudge, ...]]:
        """The judges of each variant; variants that change no judge share them."""
        from pytest_agent_eval.judges import make_judges

        agents = None
        every = (self.suite.config, *self.suite.variants.values())
        if any(judge.agent is not None for config in every for judge in config.judges):
            from pytest_agent_eval.execution.judging_agent import JudgingAgents

            agents = JudgingAgents(
                self.runner_types,
                max_output_bytes=self.options.max_output,
                replay=self.options.llm == "replay",
            )
        made: list[tuple[Suite, tuple[BoundJudge, ...]]] = []
        found: dict[str | None, tuple[BoundJudge, ...]] = {}
        for variant in (None, *self.suite.variants):
            suite = self.varied(variant)
            for other, judges in made:
                if _judging(other) == _judging(suite):
                    found[variant] = judges
                    break
            else:
                found[variant] = make_judges(
                    suite,
                    rootdir=self.rootdir,
                    kinds=self._judge_kinds,
                    builtin_dirs=self.options.judge_dirs,
                    gateway=self.gateway(suite),
                    baseline=self._baseline_records(),
                    agents=agents,
                    dataset=lambda: self._places,
                )
                made.append((suite, found[variant]))
        return found

    def _baseline_records(self) -> BaselineRecords | None:
        if self.baseline is None:
            return None
        from pytest_agent_eval.cases import Case
        from pytest_agent_eval.execution.baseline_records import StoredRecords

        cases = {case.name: case for case in self.cases if isinstance(case, Case)}
        return StoredRecords(self.baseline, self.key, cases.__getitem__)

    def gateway(self, suite: Suite) -> Gateway | None:
        """By which the models of judges, runners and answers are asked, if any is asked."""
        from pytest_agent_eval.suite.judge_models import answerer_model, asks_a_model
        from pytest_agent_eval.suite.runner_models import asks_models

        works = self.options.rescore is None and (
            asks_models(suite.config) or answerer_model(suite, os.environ)
        )
        judges = [judge for judge in suite.config.judges if asks_a_model(judge, suite)]
        if self.baseline is None:
            judges = [judge for judge in judges if judge.kind != PAIRWISE]
        if not works and not judges:
            return None
        from pytest_agent_eval.llm import Gateway
        from pytest_agent_eval.redaction import Secrets

        api_base = suite.config.models.api_base or ""
        if api_base not in self._gateways:
            self._gateways[api_base] = Gateway(
                self.suite.directory,
                mode=self.options.llm,
                api_base=api_base,
                secrets=Secrets.of(os.environ),
                process=self._models(),
            )
        return self._gateways[api_base]

    def warm_up(self) -> None:
        """Do in the background what whoever asks a model first would have to wait for."""
        for variant in self.variants:
            self.gateway(self.varied(variant))
        for gateway in self._gateways.values():
            gateway.warm_up()

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

    def _taught(self, judge: JudgeConfig) -> frozenset[str]:
        """The labelled cases that a judge is shown as examples."""
        from pytest_agent_eval.suite.judge_models import takes_examples

        block = judge.examples
        if block is None or not judge.labels or not takes_examples(judge, self.suite):
            return frozenset()
        from pytest_agent_eval.judges.examples import used_examples

        found = self.suite.examples[block.source].found
        used = used_examples(found, self._places, count=block.count, mix=block.mix)
        return used & self.suite.labels[judge.labels].values.keys()

    def _note_examples(self) -> None:
        """Say which examples are never shown, because their cases are of the holdout half."""
        for examples in self.suite.examples.values():
            known = [one.case for one in examples.found if one.case in self._places]
            held = sum(self._places[name].split == "holdout" for name in known)
            if held:
                noun = "example is of a holdout case and is" if held == 1 else "examples are of "
                noun += "" if held == 1 else "holdout cases and are"
                self.notes.append(f"{examples.file}: {held} {noun} never shown to a judge")

    def _check_labels(self, cases: Set[str], told: Set[str]) -> None:
        """Find labels and examples of cases that are not in the dataset; those that are filtered
        out are.

        Args:
            cases: names of all of them.
            told: names that may be suggested.

        Raises:
            SuiteError: names each of them, in its own file.
        """
        problems: list[Problem] = []
        named = [(one.file, one.lines) for one in self.suite.labels.values()]
        named += [(one.file, one.lines) for one in self.suite.examples.values()]
        for file, lines in named:
            for name, line in lines.items():
                if name not in cases:
                    few = len(problems) < 5  # looking for what was meant takes its time
                    near = get_close_matches(name, told, n=1) if few else ()
                    hint = f"; did you mean {near[0]}?" if near else ""
                    message = f"the dataset has no case of this name{hint}"
                    problems.append(Problem(message, name, file, line))
        if problems:
            raise SuiteError(*dict.fromkeys(problems))

    def _check_placeholders(self) -> None:
        """Find a placeholder that no case's input provides now, not when the first case runs.

        Raises:
            SuiteError: names each of them.
        """
        from pytest_agent_eval.cases.templates import compile_template

        templates: dict[tuple[str, str], str] = {}
        for variant in self.variants:
            execution = self.varied(variant).config.execution
            for key, source in (("prompt", execution.prompt), ("arguments", execution.arguments)):
                own = f"variants.{variant}.execution.{key}"
                written = ("variants", variant, "execution", key) in self.suite.positions
                place = own if written else f"execution.{key}"
                if source:
                    templates.setdefault((place, source), source)
        problems = [
            Problem(f"{{{name}}}: no case's input has this field", place, self.key, line)
            for place, source in templates
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
        varied = {name for values in self.suite.placeholders.values() for name in values}
        self.literal = self._provided_by_none(Template(names).missing) - varied
        text = command if isinstance(command, str) else " ".join(map(str, command))
        for name in sorted(self.literal):
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
            if isinstance(case, Case) and not self.is_sealed(case):
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


def _counts(cases: Sequence[Case | BrokenCase]) -> dict[str, int]:
    counts = Counter(getattr(case, "split", "") for case in cases)
    return {half: counts[half] for half in HALVES}


def _pairs(cases: Sequence[Case | BrokenCase]) -> tuple[str, ...]:
    """The groups that have exactly two cases."""
    groups = Counter(group for case in cases if (group := getattr(case, "group", None)) is not None)
    return tuple(sorted(group for group, members in groups.items() if members == 2))


def _scale(judge: JudgeConfig) -> tuple[float, float] | None:
    if judge.score_range is None or judge.kind == PAIRWISE:
        return None
    return judge.score_range[0], judge.score_range[1]


def _judging(suite: Suite) -> Any:
    """What the judges of a suite are made from."""
    return suite.config.judges, suite.config.thresholds, suite.config.models


def _groupless(case: Case | BrokenCase) -> bool:
    return getattr(case, "group", "") is None
