"""What one pytest session shares: suites, engine, run and report."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_agent_eval.arguments import Datasets
from pytest_agent_eval.case_reports import CaseReports
from pytest_agent_eval.holdout import SealedHalves, named_case, recorded
from pytest_agent_eval.items import BrokenItem, CaseItem, ForeignFile, SuiteFile
from pytest_agent_eval.run_store import RunStore
from pytest_agent_eval.signals import Signals
from pytest_agent_eval.trials import WORKSPACES, Trials
from pytest_agent_eval.xdist import upcoming

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_agent_eval.active_suite import ActiveSuite
    from pytest_agent_eval.evidence.outcomes import CaseOutcome
    from pytest_agent_eval.evidence.summary import Against
    from pytest_agent_eval.llm import ModelProcess
    from pytest_agent_eval.markers import Marks
    from pytest_agent_eval.options import Options
    from pytest_agent_eval.reporting import Report
    from pytest_agent_eval.reports.handler import ReportHandler
    from pytest_agent_eval.runs.baseline import Baseline
    from pytest_agent_eval.runs.stored import StoredRun

__all__ = ["EvalSession"]


class EvalSession:
    """The state of the plugin in one pytest process; xdist workers have one each.

    Everything but the options is made when the first suite needs it.
    """

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.worker: Mapping[str, Any] | None = getattr(config, "workerinput", None)
        self.suites: dict[str, ActiveSuite] = {}
        self.datasets = Datasets(options.files, str(config.rootpath))
        self.report: Report | None = None
        self._refused = False
        self.problem = ""
        self.problem_shown = False
        self.alarms: list[str] = []
        self.store = RunStore(options, config.rootpath, self.suites, self.worker)
        self.trials = Trials(
            config,
            options,
            self.store,
            session_id=str((self.worker or {}).get("testrunuid") or uuid.uuid4().hex),
            is_worker=self.worker is not None,
            upcoming=partial(upcoming, config),
            begin_sealed=lambda: self.sealed.begin(),
        )
        self.sealed = SealedHalves()
        self.reports = CaseReports(self)
        self._plans: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._marks: Marks | None = None
        self._models: ModelProcess | None = None
        self.signals = Signals()

    # -- collection ------------------------------------------------------------------------

    def ignores(self, path: Path) -> bool:
        """Whether pytest must not look into this path itself."""
        if not self.options.collect:
            return False
        text = str(path)
        if path.name.startswith(WORKSPACES):
            return True  # a temporary directory of ours inside the project; agents wrote it
        return self.datasets.claims_directory(text) and os.path.isdir(text)

    def collect_file(self, path: Path, parent: pytest.Collector) -> SuiteFile | ForeignFile | None:
        """The collector of a suite; for another file of such a name only if it was named."""
        if not self.options.collect or not self.datasets.is_candidate(path.name):
            return None
        from pytest_agent_eval.suite import is_suite

        recognition = is_suite(path)
        if recognition.suite:
            return SuiteFile.from_parent(parent, path=path)
        if not parent.session.isinitpath(path):
            return None
        foreign: ForeignFile = ForeignFile.from_parent(parent, path=path)
        foreign.reason = f"{self.relative(path)}: not a suite: {recognition.reason}"
        foreign.reason = _syntax_error(path, self.relative(path)) or foreign.reason
        return foreign

    def open_suite(self, node: SuiteFile) -> ActiveSuite:
        """Parse and check a suite.

        Raises:
            SuiteError: all problems of the file.
        """
        from pytest_agent_eval.active_suite import ActiveSuite

        path = node.path
        key = self.relative(path)
        if key in self.suites:  # collected twice, with --keep-duplicates
            return self.suites[key]
        hooks = node.session.gethookproxy(path)
        suite = ActiveSuite.load(
            path,
            key=key,
            asked=self.options.run or node.session.isinitpath(path),
            options=self.options,
            rootdir=self.config.rootpath,
            runner_types=_merged(hooks.pytest_agent_eval_runner_types(config=self.config)),
            judge_kinds=_merged(hooks.pytest_agent_eval_judge_kinds(config=self.config)),
            models=self._model_process,
        )
        self.suites[key] = suite
        return suite

    def _model_process(self) -> ModelProcess:
        if self._models is None:
            from pytest_agent_eval.llm import ModelProcess

            self._models = ModelProcess()
        return self._models

    def close(self) -> None:
        """End what is still running; may be called twice."""
        self.trials.stop()
        if self._models is not None:
            self._models.close()
        self.signals.restore()

    def marks(self) -> Marks:
        """The maker of marks, shared by all suites."""
        if self._marks is None:
            from pytest_agent_eval.markers import Marks

            self._marks = Marks(self.config)
        return self._marks

    def named_cases(self, suite: ActiveSuite) -> list[str]:
        """The single cases of a suite that the command line names."""
        file = str(suite.suite.file)
        base = str(self.config.invocation_params.dir)
        return [
            argument.partition("::")[2]
            for argument in self.config.args
            if "::" in argument
            and os.path.abspath(os.path.join(base, argument.partition("::")[0])) == file
        ]

    def named_problem(self, suite: ActiveSuite) -> str:
        """Why single cases of a suite must not be named as they are; empty if they may."""
        return named_case(suite, self.named_cases(suite)) if suite.sealed else ""

    def shown(self, path: Path) -> str:
        """A path as messages show it: relative to the root directory if it is below it."""
        root = self.config.rootpath
        return str(path.relative_to(root) if path.is_relative_to(root) else path)

    def relative(self, path: Path) -> str:
        """A path as node ids show it."""
        return os.path.relpath(path, self.config.rootpath).replace(os.sep, "/")

    def is_case(self, nodeid: str) -> bool:
        """Whether a node id is that of a case, as far as its file's name tells."""
        file, separator, _ = nodeid.partition("::")
        return bool(separator) and self.datasets.is_candidate(file.rpartition("/")[2])

    # -- selection -------------------------------------------------------------------------

    def select(self, items: list[pytest.Item]) -> None:
        """Apply the plugin's own selection options, suite by suite, in place.

        Raises:
            pytest.UsageError: they leave no case of the suites that were to run, or the baseline
                cannot be compared with.
        """
        if not self.suites:
            return
        from pytest_agent_eval.selection import deselect

        try:
            self._compare()
            deselect(self, items)
        except pytest.UsageError as error:
            self._refused = True  # pytest calls the hook that plans them all the same
            if self.worker is None:
                items.clear()
                raise
            # A worker that raises is a crashed one; the controller says it when this one ends.
            self.problem = str(error)
            items.clear()

    def plan(self, items: list[pytest.Item]) -> None:
        """Remember what was selected, and plan the trials in pytest's order.

        Raises:
            pytest.UsageError: it cannot run like this.
        """
        if not self.suites or self._refused:
            return
        try:
            self.sealed.refuse(self.config, self.suites.values(), items)
        except pytest.UsageError as error:
            if self.worker is None:
                raise
            self.problem = str(error)  # as in select
            items.clear()
            return
        chosen = [item for item in items if isinstance(item, CaseItem | BrokenItem)]
        for suite in self.suites.values():
            suite.selected = [(item.case, item.variant) for item in chosen if item.suite is suite]
        if self.config.option.collectonly:
            return
        if self.options.resume is not None or self.options.rescore is not None:
            self.open_earlier()
        if self.worker is None:
            self.signals.catch_sigterm()
        running = [item for item in chosen if isinstance(item, CaseItem) and item.suite.asked]
        asked = [suite for suite in self.suites.values() if suite.asked and suite.selected]
        self.sealed.plan(running)
        from pytest_agent_eval.errors import AgentEvalError

        try:
            self.trials.plan(running, asked)
        except AgentEvalError as error:
            raise pytest.UsageError(f"agent-eval: {error}") from None

    def open_earlier(self) -> StoredRun | None:
        """Open the run that is gone on with or judged again, before the first trial.

        Raises:
            pytest.UsageError: there is no such run, or it cannot be used.
        """
        from pytest_agent_eval.errors import RunDirectoryError

        option = "resume" if self.options.resume is not None else "rescore"
        try:
            earlier = self.store.earlier
            if self.options.resume is not None and self.worker is None:
                self.store.writer()  # before any worker joins: it puts in order what is there
        except RunDirectoryError as error:
            asked = self.options.resume or self.options.rescore or ""
            hint = f" (write --agent-eval-{option}=RUN, or paths before it)"
            more = hint if os.path.exists(asked) else ""
            raise pytest.UsageError(f"--agent-eval-{option}: {error}{more}") from None
        return earlier

    def open_baseline(self) -> Baseline | None:
        """Open the run that this one is compared with, before the first trial.

        Raises:
            pytest.UsageError: there is no such run, or it cannot be compared with.
        """
        from pytest_agent_eval.errors import RunDirectoryError

        if self.options.baseline is None:
            return None
        try:
            return self.store.baseline
        except RunDirectoryError as error:
            raise pytest.UsageError(f"--agent-eval-baseline: {error}") from None

    def _compare(self) -> None:
        """Hand the baseline to the suites.

        Raises:
            pytest.UsageError: it has no result of any of them, or a judge cannot use it.
        """
        baseline = self.open_baseline()
        if baseline is None:
            return
        from pytest_agent_eval.errors import AgentEvalError

        asked = [suite for suite in self.suites.values() if suite.asked]
        try:
            baseline.require(suite.key for suite in asked)
            for suite in asked:
                suite.compare_with(baseline)
        except AgentEvalError as error:
            raise pytest.UsageError(f"--agent-eval-baseline: {error}") from None

    def headline(self) -> list[str]:
        """One line a suite that runs, for below pytest's "collected" line."""
        lines = []
        for suite in self.suites.values():
            if suite.asked:
                kept_apart = self.trials.of(suite).description()
                same = sum(other.suite.name == suite.suite.name for other in self.suites.values())
                title = f"{suite.suite.name} ({suite.key})" if same > 1 else suite.suite.name
                lines.append(suite.headline(title) + (f", {kept_apart}" if kept_apart else ""))
        cluster = self.trials.cluster
        if cluster is not None:
            lines.append(
                f"agent-eval: Dask cluster {cluster.address}: {cluster.workers} workers, "
                f"{cluster.threads} threads"
            )
        if not lines:
            return lines
        from pytest_agent_eval.reports.printable import one_line

        return [one_line(line) for line in lines]

    # -- running ---------------------------------------------------------------------------

    def outcome(self, item: CaseItem) -> CaseOutcome:
        """Wait for the engine's results of a case."""
        from pytest_agent_eval.errors import RunDirectoryError
        from pytest_agent_eval.evidence.outcomes import case_outcomes

        try:
            results = self.trials.results(item)
        except RunDirectoryError as error:
            self._give_up(item, error)
        return case_outcomes(results, item.suite.varied(item.variant).config.execution.pass_)[0]

    def record_broken(self, item: BrokenItem) -> CaseOutcome:
        """Store that a case could not be tried."""
        from pytest_agent_eval.errors import RunDirectoryError
        from pytest_agent_eval.evidence.outcomes import case_outcomes

        result = self.trials.of(item.suite).broken(item.case, item.variant)
        try:
            self.store.writer().append(result)
        except RunDirectoryError as error:
            self._give_up(item, error)
        return case_outcomes([result], "all")[0]

    def _give_up(self, item: CaseItem | BrokenItem, error: Exception) -> NoReturn:
        """End the session: nothing can be stored, so nothing more may be paid for."""
        said = "the result of a sealed case cannot be stored" if item.sealed else str(error)
        message = f"agent-eval: {said}"  # an error of a file names it, and so the case
        if self.worker is not None:
            # xdist takes a worker that ends early for a crashed one, unless it says why.
            item.session.shouldstop = self.problem = message
        pytest.exit(message, returncode=pytest.ExitCode.USAGE_ERROR)

    # -- reporting -------------------------------------------------------------------------

    def receive(self, report: Any) -> None:
        """Take the results on a report, in the process that reports."""
        results = self.reports.receive(report)
        shown = not getattr(report, "agent_eval_sealed", False)
        if not shown:
            self.sealed.add(report.nodeid)
        if results and self.store.opened is None:
            self._describe_early()
        for result in results:
            self._report().add(result, shown=shown)
            if shown:
                hook = self.config.hook
                hook.pytest_agent_eval_trial_finished(config=self.config, result=result)

    def _describe_early(self) -> None:
        """Controller: let the run be found as one, also if this session is killed."""
        from pytest_agent_eval.errors import RunDirectoryError

        with contextlib.suppress(RunDirectoryError):  # said at the end
            self.store.writer()

    def infos(self) -> dict[str, Any]:
        """Worker: what the controller needs to know of each suite; primitives only."""
        return {
            key: {
                "infos": [info.to_dict() for info in suite.infos()],
                "notes": suite.notes,
                "mlflow": [plan.to_dict() for plan in suite.mlflow_plans()],
            }
            for key, suite in self.suites.items()
            if suite.asked
        }

    def learn(self, infos: Mapping[str, Any]) -> None:
        """Controller: take over what a worker said."""
        if infos:
            from pytest_agent_eval.evidence.summary import SuiteInfo

            for key, said in infos.items():
                known = [SuiteInfo.from_dict(info) for info in said["infos"]]
                self._report().learn(key, known, said["notes"])
                self._plans[key] = said["mlflow"]

    def finishing(self) -> AbstractContextManager[None]:
        """To be held at the session's end: another Ctrl-C kills agents, and loses nothing."""
        return self.signals.finishing(self.trials.hurry)

    def decide(self, session: pytest.Session) -> None:
        """Decide the gates, before a JUnit report is written, and say in it what was decided."""
        if self.worker is not None or self._has_no_run():
            return
        report = self._report()
        if report.summary is not None:
            return
        if self.store.earlier is not None and self.options.resume is not None:
            report.supersede(self.store.earlier.superseded)
        self._learn_suites(report)
        summary = report.decide(
            mode=self.options.gate,
            interrupted=bool(session.shouldstop or session.shouldfail)
            or session.exitstatus == pytest.ExitCode.INTERRUPTED,
            against=self._against(),
        )
        for plugin in self.config.pluginmanager.get_plugins():
            # What record_testsuite_property calls, for which a test is needed.
            if hasattr(plugin, "add_global_property"):
                from pytest_agent_eval.junit_report import tell

                tell(plugin, summary)

    def _has_no_run(self) -> bool:
        """Whether no case ran, so that there is nothing to store."""
        return self.store.opened is None and (self.report is None or self.report.is_empty)

    def _against(self) -> Against | None:
        """The baseline, as the summary compares with it."""
        from pytest_agent_eval.errors import RunDirectoryError
        from pytest_agent_eval.evidence.summary import Against
        from pytest_agent_eval.runs.reader import read_header

        if self.store.baseline is None:
            return None
        try:
            header = read_header(self.store.writer().path)
        except RunDirectoryError:
            header = {}
        run = self.store.baseline.run
        return Against(self.store.baseline.name, run.results, run.header, header)

    def finish(self, session: pytest.Session) -> None:
        """Close the run; decide the gates where this process reports."""
        self.trials.stop()
        self.alarms = [*self.alarms, *self.trials.dataset_changes()]
        if self.worker is not None:
            if self.store.opened is not None:
                self.store.opened.close()
            return
        if self.problem:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self._has_no_run():
            self.report = None
            return
        from pytest_agent_eval.errors import RunDirectoryError
        from pytest_agent_eval.runs.spending import forget_spending

        try:
            writer = self.store.writer()
        except RunDirectoryError as error:  # the directory has gone; workers have said so
            self.problem = self.problem or f"agent-eval: {error}"
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            self.report = None
            return
        report = self._report()
        report.notes += (*self.trials.end_hooks(), *self.trials.told())
        if self.signals.hurried:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        ended = self.trials.unasked()
        if ended:
            report.notes.append(
                f"{ended} more {'trial' if ended == 1 else 'trials'} had ended ahead of pytest: "
                "stored, but not counted here"
            )
        self.decide(session)  # unless that is done
        status = report.finish(
            writer,
            exit_status=int(session.exitstatus),
            record=partial(recorded, root=self.config.rootpath, run=writer.run_id, git=writer.git),
        )
        forget_spending(writer.path)
        baseline = self.store.baseline.run if self.store.baseline is not None else None
        if not report.tell(writer.path, baseline, self._stores()) and status == pytest.ExitCode.OK:
            status = int(pytest.ExitCode.TESTS_FAILED)
        if self.alarms and status == pytest.ExitCode.OK:
            status = int(pytest.ExitCode.TESTS_FAILED)
        session.exitstatus = status
        if report.summary is not None:
            self.config.hook.pytest_agent_eval_run_finished(
                config=self.config, summary=report.summary
            )

    def print_summary(self, reporter: pytest.TerminalReporter) -> None:
        """Print aggregates, gates and where the run is stored."""
        if self.problem and self.worker is None and not self.problem_shown:
            reporter.write_line(f"ERROR: {self.problem}", red=True, bold=True)
        if self.report is not None and self.worker is None:
            self.report.print(reporter, self.shown(self.store.writer().path))
        for alarm in self.alarms if self.worker is None else ():
            reporter.write_line(alarm, red=True, bold=True)

    def _learn_suites(self, report: Report) -> None:
        for key, suite in self.suites.items():
            if suite.asked:
                report.learn(key, suite.infos(), suite.notes)
                self._plans[key] = [plan.to_dict() for plan in suite.mlflow_plans()]

    def _stores(self) -> list[ReportHandler]:
        """Where else the run is to be logged, once it is known what each suite wants."""
        plans = [plan for key in sorted(self._plans) for plan in self._plans[key]]
        if not plans:
            return []
        from pytest_agent_eval.reports.mlflow_log import MlflowPlan, handlers_of

        return handlers_of([MlflowPlan(**plan) for plan in plans])

    def _report(self) -> Report:
        if self.report is None:
            from pytest_agent_eval.reporting import Report

            self.report = Report(self._handlers())
        return self.report

    def _handlers(self) -> list[ReportHandler]:
        """The reports besides the terminal's."""
        found = [
            handler
            for handlers in self.config.hook.pytest_agent_eval_report_handlers(config=self.config)
            for handler in handlers or ()
        ]
        if self.options.reports or os.environ.get("GITHUB_ACTIONS") == "true":
            from pytest_agent_eval.reports.github import GitHub
            from pytest_agent_eval.reports.handler import make_handler

            found += [make_handler(Path(path)) for path in self.options.reports]
            if os.environ.get("GITHUB_ACTIONS") == "true":
                found.append(GitHub(os.environ, self.config.rootpath))
        return found


def _syntax_error(path: Path, shown: str) -> str:
    """What is wrong with a file that is no YAML at all; empty if it is."""
    from pytest_agent_eval.documents import read_yaml
    from pytest_agent_eval.errors import DocumentError

    try:
        read_yaml(path, file=shown)
    except DocumentError as error:
        return str(error)
    return ""


def _merged(answers: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Mappings from several plugins as one; the plugin nearest to the suite wins."""
    merged: dict[str, Any] = {}
    for answer in reversed(list(answers)):
        merged.update(answer or {})
    return merged
