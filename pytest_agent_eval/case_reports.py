"""From the trials of a case to what pytest reports of it, and back in the reporting process."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_agent_eval.items import SEALED, FailureText

if TYPE_CHECKING:
    from pytest_agent_eval.evidence.outcomes import CaseOutcome
    from pytest_agent_eval.items import BrokenItem, CaseItem
    from pytest_agent_eval.results import TrialResult
    from pytest_agent_eval.session import EvalSession

__all__ = ["CaseReports"]


class CaseReports:
    """Attaches the outcome of a case to its report, and takes it from there."""

    def __init__(self, session: EvalSession) -> None:
        self._session = session
        self._in_subtests = False
        self._on_its_way: tuple[TrialResult, ...] | None = None
        self._said_suites = False

    def failure_block(self, item: CaseItem, outcome: CaseOutcome) -> str:
        """What a person reads about a case that failed."""
        from pytest_agent_eval.reports.failure import case_block

        session = self._session
        run = session.store.writer().path
        trials = session.trials.of(item.suite)
        return case_block(
            outcome,
            lambda result: trials.evidence(item.case, result, run),
            stored_in=session.shown(run),
            width=shutil.get_terminal_size().columns,
            verbosity=session.config.get_verbosity(),
        )

    def annotate(
        self,
        item: CaseItem | BrokenItem,
        report: pytest.TestReport,
        raised: pytest.ExceptionInfo[BaseException] | None,
    ) -> None:
        """Attach the outcome of a case to the report that decides it."""
        outcome = item.outcome
        if item.sealed:
            self._seal(item, report, raised)
        # What Python agents and judges print is captured by pytest, with the item it is at.
        secrets = self._session.trials.of(item.suite).secrets(item.variant)
        if secrets:
            report.sections = [(name, secrets.text(text)) for name, text in report.sections]
        if self._in_subtests:
            return  # the report of one verdict, not of the case
        if raised is not None and report.when == "setup" and item.owns(raised.value):
            # pytest asks the item for a representation of failures in its call only.
            report.longrepr = cast(Any, item.repr_failure(raised))
        if outcome is None or report.when != ("setup" if outcome.status == "error" else "call"):
            return
        from pytest_agent_eval.reports.junit import properties

        # JUnit reads them from the teardown's report, which copies the item's.
        told = [("agent_eval.split", "holdout"), ("agent_eval.sealed", "true")]
        item.user_properties.extend(told if item.sealed else properties(outcome))
        report.user_properties.extend(item.user_properties)
        carried: Any = report
        carried.agent_eval = {"status": outcome.status}
        if self._session.worker is not None:  # else they need not travel; pytest keeps all reports
            carried.agent_eval["trials"] = [_slim(trial).to_dict() for trial in outcome.trials]
            if not self._said_suites:  # not at the end: a session that is interrupted has none
                carried.agent_eval["suites"] = self._session.infos()
                self._said_suites = True
        self._on_its_way = outcome.trials
        if report.skipped and isinstance(report.longrepr, tuple):
            path, line, _ = item.location
            reason = SEALED if item.sealed else outcome.reason
            report.longrepr = (path, (line or 0) + 1, f"Skipped: {reason}")

    def _seal(
        self,
        item: CaseItem | BrokenItem,
        report: pytest.TestReport,
        raised: pytest.ExceptionInfo[BaseException] | None,
    ) -> None:
        """Leave of a report of a sealed case what its letter says."""
        report.sections = []
        marked: Any = report
        marked.agent_eval_sealed = True  # also for the controller, whatever became of the case
        if report.failed and raised is not None:
            known = item.owns(raised.value)
            what = "" if known else f"; {report.when} raised {type(raised.value).__name__}"
            report.longrepr = cast(Any, FailureText(f"{SEALED}{what}"))

    def receive(self, report: Any) -> tuple[TrialResult, ...]:
        """The results on a report, in the process that reports; none in all others."""
        carried: Mapping[str, Any] | None = getattr(report, "agent_eval", None)
        if carried is None or self._session.worker is not None:
            return ()
        results, self._on_its_way = self._on_its_way, None
        if results is None:  # it came from a worker
            from pytest_agent_eval.results import TrialResult

            self._session.learn(carried.get("suites", {}))
            results = tuple(TrialResult.from_dict(trial) for trial in carried["trials"])
            if getattr(
                report, "agent_eval_sealed", False
            ):  # other plugins write down whatever a report holds
                from pytest_agent_eval.evidence.sealing import anonymous

                report.agent_eval["trials"] = [anonymous(one).to_dict() for one in results]
        if isinstance(report.longrepr, str):  # xdist turns the block into text
            report.longrepr = FailureText(report.longrepr)
        return results

    def report_subtests(self, item: CaseItem, subtests: pytest.Subtests) -> None:
        """Report each verdict as a subtest; what a gated judge refuses is an expected failure."""
        assert item.outcome is not None
        self._in_subtests = True
        try:
            for trial in item.outcome.trials:
                place = f"trial {trial.trial}, " if len(item.outcome.trials) > 1 else ""
                for verdict in trial.verdicts:
                    with subtests.test(msg=f"{place}{verdict.judge}"):
                        said = f"{place}{verdict.judge}: {verdict.error or verdict.rationale}"
                        refused = bool(verdict.error) or verdict.passed is False
                        if verdict.skipped:
                            pytest.skip(said)
                        elif refused and item.suite.is_gated(verdict.judge, item.variant):
                            pytest.xfail(f"{said} (its gate decides)")
                        elif refused:
                            pytest.fail(said, pytrace=False)
        finally:
            self._in_subtests = False


def _slim(result: TrialResult) -> TrialResult:
    """A result small enough to travel: long texts cut, what is only on disk left out."""
    from pytest_agent_eval.execution.leaks import SEEN

    leaks = tuple(_short(note) for note in result.notes if note.startswith(SEEN))
    verdicts = tuple(
        replace(v, rationale=_short(v.rationale), error=_short(v.error), detail="")
        for v in result.verdicts
    )
    return replace(result, verdicts=verdicts, reason=_short(result.reason), notes=leaks)


def _short(text: str) -> str:
    """Cut, and without the lone surrogates that cannot be sent."""
    return text[:_TRAVELS].encode("utf-8", "backslashreplace").decode()


_TRAVELS = 500
"""Characters of a rationale that a worker sends to the controller."""
