"""What one pytest session shares: suites, engine, run and report."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agent_eval.arguments import Datasets
from pytest_agent_eval.items import BrokenItem, CaseItem, FailureText, ForeignFile, SuiteFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agent_eval.active_suite import ActiveSuite
    from pytest_agent_eval.deadline import Steps
    from pytest_agent_eval.execution.engine import Engine
    from pytest_agent_eval.markers import Marks
    from pytest_agent_eval.options import Options
    from pytest_agent_eval.reporting import Report
    from pytest_agent_eval.results import TrialResult
    from pytest_agent_eval.runs.writer import RunWriter

__all__ = ["EvalSession"]

WORKSPACES = ".agent-eval"
"""Begins the names of directories that hold workspaces and runs: hidden, so nothing looks there."""


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
        self.problem = ""
        self.alarms: list[str] = []
        self._run_path: Path | None = None
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._writer: RunWriter | None = None
        self._marks: Marks | None = None
        self._workspaces = ""
        self._in_subtests = False
        self._on_its_way: TrialResult | None = None
        self._restore_sigterm = False

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
        )
        self.suites[key] = suite
        return suite

    def marks(self) -> Marks:
        """The maker of marks, shared by all suites."""
        if self._marks is None:
            from pytest_agent_eval.markers import Marks

            self._marks = Marks(self.config)
        return self._marks

    def names_cases_of(self, suite: ActiveSuite) -> bool:
        """Whether the command line names single cases of a suite."""
        file = str(suite.suite.file)
        base = str(self.config.invocation_params.dir)
        return any(
            os.path.abspath(os.path.join(base, argument.partition("::")[0])) == file
            for argument in self.config.args
            if "::" in argument
        )

    def shown(self, path: Path) -> str:
        """A path as messages show it: relative to the root directory if it is below it."""
        root = self.config.rootpath
        return str(path.relative_to(root) if path.is_relative_to(root) else path)

    def relative(self, path: Path) -> str:
        """A path as node ids show it."""
        return os.path.relpath(path, self.config.rootpath).replace(os.sep, "/")

    # -- selection -------------------------------------------------------------------------

    def select(self, items: list[pytest.Item]) -> None:
        """Apply the plugin's own selection options, suite by suite, in place.

        Raises:
            pytest.UsageError: they leave no case of the suites that were to run.
        """
        if not self.suites:
            return
        from pytest_agent_eval.selection import deselect

        try:
            deselect(self, items)
        except pytest.UsageError as error:
            if self.worker is None:
                raise
            # A worker that raises is a crashed one; the controller says it when this one ends.
            self.problem = str(error)
            items.clear()

    def plan(self, items: Iterable[pytest.Item]) -> None:
        """Remember what was selected, and plan the trials in pytest's order."""
        if not self.suites:
            return
        from pytest_agent_eval.execution.engine import Engine, Job

        chosen = [item for item in items if isinstance(item, CaseItem | BrokenItem)]
        for suite in self.suites.values():
            suite.selected = [item.case for item in chosen if item.suite is suite]
        if self.config.option.collectonly:
            return
        self._engine = Engine()
        self._catch_sigterm()
        # Every worker does: the one that ends last has seen what its own agents did.
        for suite in self.suites.values():
            if suite.asked and suite.selected:
                suite.remember_dataset()
        self._engine.plan(
            Job(item.nodeid, partial(self._steps, item.suite, item))
            for item in chosen
            if isinstance(item, CaseItem) and item.suite.asked
        )

    def headline(self) -> list[str]:
        """One line a suite that runs, for below pytest's "collected" line."""
        lines = [suite.headline() for suite in self.suites.values() if suite.asked]
        if lines and (self.options.parallelism or 1) > 1:
            lines.append(
                "agent-eval: trials run one at a time in each process, in spite of "
                f"--agent-eval-parallelism {self.options.parallelism}; -n runs several processes"
            )
        return lines

    # -- running ---------------------------------------------------------------------------

    def result(self, item: CaseItem) -> TrialResult:
        """Wait for the engine's result of a case."""
        from pytest_agent_eval.errors import RunDirectoryError

        assert self._engine is not None
        if item.suite.fixture:
            item.runner_fixture = item.fixture(item.suite.fixture)
        if not self._workspaces:
            factory = item.fixture("tmp_path_factory")
            self._workspaces = str(factory.mktemp(WORKSPACES))
        try:
            return self._engine.result(item.nodeid)
        except RunDirectoryError as error:
            pytest.exit(f"agent-eval: {error}", returncode=pytest.ExitCode.USAGE_ERROR)

    def record_broken(self, item: BrokenItem) -> TrialResult:
        """Store that a case could not be tried."""
        result = item.suite.broken(item.case)
        self.writer().append(result)
        return result

    def _steps(self, suite: ActiveSuite, item: CaseItem, cancelled: Any) -> Steps[TrialResult]:
        """Carry out one case, in the engine's thread, and store its result."""
        writer = self.writer()
        item.attempts += 1
        result = yield from suite.steps(
            item.case,
            parts=self._parts(suite, item.case.name),
            attempt=item.attempts,
            fixture=item.runner_fixture,
            writer=writer,
            workspaces=self._workspaces,
            cancelled=cancelled,
        )
        if not cancelled.is_set():
            writer.append(result)
        return result

    def _parts(self, suite: ActiveSuite, case: str) -> tuple[str, ...]:
        """Where a case lies in the run: by its name, below its suite if there are several."""
        if len(self.suites) == 1:
            return (case,)
        return (suite.key.replace("/", "~"), case)

    def writer(self) -> RunWriter:
        """The run's writer; the directory is made when the first case of the session runs.

        Raises:
            RunDirectoryError: it cannot be made.
        """
        with self._lock:
            if self._writer is None:
                self._writer = self._open_writer()
            return self._writer

    def _open_writer(self) -> RunWriter:
        from pytest_agent_eval.runs.writer import RunWriter

        if self.worker is not None:
            path = Path(self.worker["agent_eval_run"])
            return RunWriter.join(path, str(self.worker["workerid"]))
        from pytest_agent_eval.runs.header import make_header

        header = make_header(
            suites=(), options=self.options.to_dict(), rootdir=self.config.rootpath
        )
        path = self.reserve_run()
        return RunWriter.create(path.parent, header, name=path.name)

    def _runs_directory(self) -> str:
        """Where runs are kept; beside the suite if the default place is in its dataset."""
        runs = self.options.runs
        for suite in self.suites.values():
            if runs.startswith(str(suite.suite.dataset_directory) + os.sep):
                return str(suite.suite.directory / ".agent-eval" / "runs")
        return runs

    def reserve_run(self) -> Path:
        """The path of this session's run directory, which may not be there yet."""
        if self._run_path is None:
            from pytest_agent_eval.runs.names import new_run_name

            self._run_path = Path(self._runs_directory(), new_run_name())
        return self._run_path

    def clean(self, item: CaseItem) -> None:
        """Remove the workspace of a finished case if pytest's retention policy says so."""
        policy = self.config.getini("tmp_path_retention_policy")
        result = item.result
        if result is None or not result.workspace or policy == "all":
            return
        if policy == "none" or result.status == "passed":
            shutil.rmtree(result.workspace, ignore_errors=True)

    def _catch_sigterm(self) -> None:
        """End as on Ctrl-C when CI or ``timeout`` ends the session: agents must not outlive it."""
        main = threading.current_thread() is threading.main_thread()
        if main and self.worker is None and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _interrupt)
            self._restore_sigterm = True

    def restore_signals(self) -> None:
        """Undo what was changed for the time of the session."""
        if self._restore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._restore_sigterm = False

    def stop(self) -> None:
        """Start nothing more and end what is running."""
        if self._engine is not None:
            self._engine.stop()

    # -- reporting -------------------------------------------------------------------------

    def failure_block(self, item: CaseItem, result: TrialResult) -> str:
        """What a person reads about a case that failed."""
        from pytest_agent_eval.reports.failure import failure_block

        run = self.writer().path
        return failure_block(
            result,
            **item.suite.evidence(item.case, result, run),
            stored_in=self.shown(run),
            width=shutil.get_terminal_size().columns,
            verbosity=self.config.get_verbosity(),
        )

    def annotate(
        self,
        item: CaseItem | BrokenItem,
        report: pytest.TestReport,
        raised: pytest.ExceptionInfo[BaseException] | None,
    ) -> None:
        """Attach the result of a case to the report that decides its outcome."""
        result = item.result
        if self._in_subtests:
            return  # the report of one verdict, not of the case
        if raised is not None and report.when == "setup" and item.owns(raised.value):
            # pytest asks the item for a representation of failures in its call only.
            report.longrepr = cast(Any, item.repr_failure(raised))
        deciding = "setup" if result is not None and result.status == "error" else "call"
        if result is None or report.when != deciding:
            return
        from pytest_agent_eval.reports.junit import properties

        # JUnit reads them from the teardown's report, which copies the item's.
        item.user_properties.extend(properties(result))
        report.user_properties.extend(item.user_properties)
        carried: Any = report
        carried.agent_eval = (slim(result) if self.worker is not None else result).to_dict()
        self._on_its_way = result
        if report.skipped and isinstance(report.longrepr, tuple):
            path, line, _ = item.location
            report.longrepr = (path, (line or 0) + 1, f"Skipped: {result.reason}")

    def receive(self, report: Any) -> None:
        """Take the result on a report, in the process that reports."""
        carried = getattr(report, "agent_eval", None)
        if carried is None or self.worker is not None:
            return
        result, self._on_its_way = self._on_its_way, None
        if result is None:  # it came from a worker
            from pytest_agent_eval.results import TrialResult

            result = TrialResult.from_dict(carried)
        if isinstance(report.longrepr, str):  # xdist turns the block into text
            report.longrepr = FailureText(report.longrepr)
        self._report().add(result)
        self.config.hook.pytest_agent_eval_trial_finished(config=self.config, result=result)

    def report_subtests(self, item: CaseItem, subtests: pytest.Subtests) -> None:
        """Report each verdict as a subtest; what a gated judge refuses is an expected failure."""
        assert item.result is not None
        self._in_subtests = True
        try:
            for verdict in item.result.verdicts:
                with subtests.test(msg=verdict.judge):
                    said = f"{verdict.judge}: {verdict.error or verdict.rationale}"
                    refused = bool(verdict.error) or verdict.passed is False
                    if verdict.skipped:
                        pytest.skip(said)
                    elif refused and item.suite.is_gated(verdict.judge):
                        pytest.xfail(f"{said} (its gate decides)")
                    elif refused:
                        pytest.fail(said, pytrace=False)
        finally:
            self._in_subtests = False

    def infos(self) -> dict[str, Any]:
        """Worker: what the controller needs to know of each suite; primitives only."""
        return {
            key: {"info": suite.info().to_dict(), "notes": suite.notes}
            for key, suite in self.suites.items()
            if suite.asked
        }

    def learn(self, infos: Mapping[str, Any]) -> None:
        """Controller: take over what a worker said."""
        if infos:
            from pytest_agent_eval.evidence.summary import SuiteInfo

            for said in infos.values():
                self._report().learn(SuiteInfo.from_dict(said["info"]), said["notes"])

    def finish(self, session: pytest.Session) -> None:
        """Close the run; decide the gates where this process reports."""
        self.stop()
        changes = [suite.dataset_changes() for suite in self.suites.values()]
        self.alarms = [*self.alarms, *filter(None, changes)]
        if self.worker is not None:
            if self._writer is not None:
                self._writer.close()
            return
        if self.problem:
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
        if self.report is None:
            return
        for suite in self.suites.values():
            if suite.asked:
                self.report.learn(suite.info(), suite.notes)
        status = self.report.finish(
            self.writer(),
            mode=self.options.gate,
            exit_status=int(session.exitstatus),
            interrupted=bool(session.shouldstop or session.shouldfail),
        )
        if self.alarms and status == pytest.ExitCode.OK:
            status = int(pytest.ExitCode.TESTS_FAILED)
        session.exitstatus = status
        if self.report.summary is not None:
            self.config.hook.pytest_agent_eval_run_finished(
                config=self.config, summary=self.report.summary
            )

    def print_summary(self, reporter: pytest.TerminalReporter) -> None:
        """Print aggregates, gates and where the run is stored."""
        if self.problem and self.worker is None:
            reporter.write_line(f"ERROR: {self.problem}", red=True, bold=True)
        if self.report is not None and self.worker is None:
            self.report.print(reporter, self.shown(self.writer().path))
        for alarm in self.alarms if self.worker is None else ():
            reporter.write_line(alarm, red=True, bold=True)

    def _report(self) -> Report:
        if self.report is None:
            from pytest_agent_eval.reporting import Report

            self.report = Report()
        return self.report


def _syntax_error(path: Path, shown: str) -> str:
    """What is wrong with a file that is no YAML at all; empty if it is."""
    from pytest_agent_eval.documents import read_yaml
    from pytest_agent_eval.errors import DocumentError

    try:
        read_yaml(path, file=shown)
    except DocumentError as error:
        return str(error)
    return ""


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt("terminated by SIGTERM")


def _merged(answers: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Mappings from several plugins as one; the plugin nearest to the suite wins."""
    merged: dict[str, Any] = {}
    for answer in reversed(list(answers)):
        merged.update(answer or {})
    return merged


def slim(result: TrialResult) -> TrialResult:
    """A result small enough to travel: long texts cut, what is only on disk left out."""
    verdicts = tuple(
        replace(v, rationale=_short(v.rationale), error=_short(v.error), detail="")
        for v in result.verdicts
    )
    return replace(result, verdicts=verdicts, reason=_short(result.reason), notes=())


def _short(text: str) -> str:
    """Cut, and without the lone surrogates that cannot be sent."""
    return text[:_TRAVELS].encode("utf-8", "backslashreplace").decode()


_TRAVELS = 500
"""Characters of a rationale that a worker sends to the controller."""
