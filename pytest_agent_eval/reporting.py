"""The reporting side of a session: collects results, decides gates, prints the summary.

Lives in the process that reports: the only one, or the controller of pytest-xdist. Results come
from the reports of the cases, so both ways give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agent_eval.errors import AgentEvalError, ExportError
from pytest_agent_eval.evidence.sealing import is_open, sealed, sealed_header
from pytest_agent_eval.evidence.summary import Against, SuiteInfo, Summary, summarise
from pytest_agent_eval.results import TrialResult

if TYPE_CHECKING:
    from pytest_agent_eval.options import GateMode
    from pytest_agent_eval.reports.handler import ReportHandler
    from pytest_agent_eval.runs.stored import StoredRun
    from pytest_agent_eval.runs.writer import RunWriter

__all__ = ["Report"]


class Report:
    """Everything one run came to, as far as this process has heard.

    Args:
        handlers: the reports that get each trial and, at the end, the run.
    """

    def __init__(self, handlers: Sequence[ReportHandler] = ()) -> None:
        self._handlers = handlers
        self._told: list[str] = []
        self._failed_reports: list[str] = []
        self._lost: list[str] = []
        self._results: dict[tuple[str, str, str | None, int], TrialResult] = {}
        self._earlier: list[TrialResult] = []
        self._infos: dict[str, Sequence[SuiteInfo]] = {}
        self._notes: dict[str, Sequence[str]] = {}
        self.notes: list[str] = []
        self.summary: Summary | None = None
        self._whole: Summary | None = None
        self.problem = ""

    @property
    def is_empty(self) -> bool:
        """Whether no case of any suite was to run; one that was and did not is no empty report."""
        return not self._results and not any(
            sum(info.selected.values()) for infos in self._infos.values() for info in infos
        )

    def add(self, result: TrialResult, *, shown: bool = True) -> None:
        """Take a result; a second one of the same trial (a rerun) replaces the first.

        Args:
            result: of a trial.
            shown: False where its half is sealed, so that it is counted and told to nobody.
        """
        trial = (result.suite, result.case, result.variant, result.trial)
        if trial in self._results:
            self._earlier.append(self._results[trial])
        self._results[trial] = result
        for handler in self._handlers if shown else ():
            handler.trial(result)

    def supersede(self, results: Iterable[TrialResult]) -> None:
        """Take earlier attempts of trials: their cost counts."""
        self._earlier += results

    def learn(self, key: str, infos: Sequence[SuiteInfo], notes: Sequence[str]) -> None:
        """Take over what is known about a suite and each of its variants."""
        self._infos[key] = infos
        self._notes[key] = notes

    def decide(
        self,
        *,
        mode: GateMode,
        interrupted: bool,
        against: Against | None = None,
    ) -> Summary:
        """Work out aggregates and comparisons, and decide the gates: once, for all reports. What
        is sealed is not in what they get.

        Args:
            mode: when gates decide.
            interrupted: the session ended before its last case.
            against: the run to compare with.
        """
        if self.summary is None:
            self._whole = summarise(
                self._suites(),
                self._results.values(),
                gate_mode="complete" if mode == "auto" else mode,
                superseded=self._earlier,
                interrupted=interrupted,
                against=against,
            )
            self.summary = sealed(self._whole)
        return self.summary

    def _suites(self) -> list[SuiteInfo]:
        return [info for key in sorted(self._infos) for info in self._infos[key]]

    def finish(
        self,
        writer: RunWriter,
        *,
        exit_status: int,
        record: Callable[[Summary], tuple[Summary, list[str]]],
    ) -> int:
        """Write the summary that was decided on, and close the run.

        Args:
            writer: of the run.
            exit_status: pytest's.
            record: records looks at holdout halves; gives the summary back with their number, and
                notes.

        Returns:
            The session's exit status: 1 instead of 0 if a gate is missed.
        """
        assert self._whole is not None, "decided before"
        whole, notes = record(self._whole)
        self.notes += notes
        self.summary = sealed(whole)
        if exit_status == pytest.ExitCode.OK and self.summary.missed:
            exit_status = pytest.ExitCode.TESTS_FAILED
        try:
            self.notes += writer.merge()
            writer.close(
                self.summary.to_yaml_dict(writer.run_id),
                exit_status=int(exit_status),
                complete=self.summary.complete,
                suites=[info.to_dict() for info in self._suites()],
            )
        except AgentEvalError as error:
            self.problem = str(error)
            exit_status = exit_status or pytest.ExitCode.TESTS_FAILED
        return int(exit_status)

    def tell(
        self, path: Path, baseline: StoredRun | None, stores: Sequence[ReportHandler] = ()
    ) -> bool:
        """Hand the run, which is closed, to the other reports.

        Args:
            path: the run directory.
            baseline: the run that this one is compared with.
            stores: more reports, that need the run alone.

        Returns:
            Whether all of them could be made; what failed is printed with the summary.
        """
        handlers = [*self._handlers, *stores]
        if self.summary is None or not handlers:
            return True
        from pytest_agent_eval.reports.handler import FinishedRun
        from pytest_agent_eval.runs.reader import read_header

        try:
            header = sealed_header(read_header(path))
        except AgentEvalError:
            header = {}
        notes = tuple(self._all_notes())
        run = FinishedRun(path.name, path, header, self.summary, notes, baseline)
        for handler in handlers:
            try:
                self._told.append(handler.finished(run))
            except ExportError as error:
                self._lost.append(str(error))
            except AgentEvalError as error:
                self._failed_reports.append(str(error))
            except Exception as error:  # a project's own handler
                what = f"{type(handler).__name__}: {type(error).__name__}: {error}"
                self._failed_reports.append(f"a report failed: {what}")
        return not self._failed_reports

    def print(self, reporter: pytest.TerminalReporter, stored_in: str) -> None:
        """Print the summary section."""
        if self.summary is None:
            return
        from pytest_agent_eval.reports.terminal import summary_lines

        reporter.section("agent evaluation", sep="=")
        for line in summary_lines(
            self.summary,
            width=reporter._tw.fullwidth,
            verbosity=reporter.verbosity,
            cases=reporter.verbosity > 0,
            stored_in=stored_in,
            notes=self._all_notes(),
        ):
            markup: dict[str, Any] = {line.markup: True} if line.markup else {}
            reporter.write_line(line.text, **markup)
        for said in self._told:
            for text in said.splitlines():
                reporter.write_line(text)
        for problem in (*self._failed_reports, *self._lost):
            reporter.write_line(problem, red=True, bold=True)
        if self.problem:
            reporter.write_line(self.problem, red=True, bold=True)

    def _all_notes(self) -> list[str]:
        notes = [
            note if key in note else f"{key}: {note}"
            for key, several in self._notes.items()
            for note in several
        ]
        return [*notes, *self._leaks(), *self.notes]

    def _leaks(self) -> list[str]:
        """What agents have seen of answer keys; the cases may have passed."""
        from pytest_agent_eval.execution.leaks import SEEN

        hiding = {key for key, infos in self._infos.items() if any(one.sealed for one in infos)}
        found = [
            (result, note)
            for result in self._results.values()
            for note in result.notes
            if note.startswith(SEEN)
        ]
        leaks = [
            f"{result.case}{f'[{result.variant}]' if result.variant else ''}: {note}"
            for result, note in found
            if is_open(result.split, result.suite in hiding)
        ]
        more = len(found) - min(len(leaks), _LEAKS_SHOWN)
        return [*leaks[:_LEAKS_SHOWN], *([f"{SEEN}: {more} more values"] if more else ())]


_LEAKS_SHOWN = 5
