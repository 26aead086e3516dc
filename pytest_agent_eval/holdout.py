"""The holdout half in a session: what a sealed one refuses and hides, and the ledger of looks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agent_eval.items import BrokenItem, CaseItem

if TYPE_CHECKING:
    import warnings

    from pytest_agent_eval.active_suite import ActiveSuite
    from pytest_agent_eval.evidence.summary import Summary

__all__ = ["SealedHalves", "recorded"]

_OR = "or open the half with --agent-eval-reveal, which the ledger records"


class SealedHalves:
    """What one pytest process has to do because the holdout half of some suite is sealed."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._left: set[str] = set()
        self._begun = False

    # -- what is refused ---------------------------------------------------------------------

    def refuse(
        self, config: pytest.Config, suites: Iterable[ActiveSuite], items: Sequence[pytest.Item]
    ) -> None:
        """Refuse what would show single cases: to be called with the items that are left.

        Raises:
            pytest.UsageError: it takes out a part of a half, or it stops at single cases.
        """
        for suite in suites:
            if not (suite.sealed and suite.asked):
                continue
            own = [
                item
                for item in items
                if isinstance(item, CaseItem | BrokenItem) and item.suite is suite and item.sealed
            ]
            if not own:
                continue
            said = f"agent-eval: {suite.key}: its holdout half is sealed"
            known = {case.path for case in suite.cases if getattr(case, "split", "") == "holdout"}
            every = {case.path for case in suite.cases if suite.is_sealed(case)}
            # What cannot be read has no marks, and may be of the dev half.
            whole = [known, every, *([every - known] if suite.half == "dev" else ())]
            for variant in suite.variants:
                chosen = {item.case.path for item in own if item.variant == variant}
                if chosen and chosen not in whole:
                    raise pytest.UsageError(
                        f"{said}, and this selection takes some of its cases and leaves others: "
                        "run all of it (--agent-eval-split holdout), none of it "
                        f"(--agent-eval-split dev), {_OR}"
                    )
            unfit = [] if config.option.collectonly else [*_unfit(config)]
            if unfit and not {item.case.path for item in own} <= every - known:
                raise pytest.UsageError(
                    f"{said}, and {unfit[0]} would show single cases of it: leave it out, run the "
                    f"other half (--agent-eval-split dev), {_OR}"
                )

    # -- what is hidden ----------------------------------------------------------------------

    def plan(self, items: Iterable[CaseItem]) -> None:
        """Learn which items will run."""
        self._left = {item.nodeid for item in items if item.sealed}

    def begin(self) -> None:
        """Trials of a sealed half start from now on, in threads that may print at any moment."""
        self._begun = True

    def hush(self, report: pytest.TestReport) -> None:
        """Take away what was captured while a trial of a sealed half may have printed it: Python
        agents of several trials write to the same streams.
        """
        if self._begun and self._left:
            report.sections = []
        if report.when == "teardown":
            self._left.discard(report.nodeid)

    def hush_warning(self, message: warnings.WarningMessage, nodeid: str) -> None:
        """Take away the text of a warning that such a trial may have raised."""
        if nodeid in self._ids or (self._begun and self._left):
            message.message = "sealed: its text is not shown while a sealed half runs"

    def add(self, nodeid: str) -> None:
        """Learn of a sealed item: one that was collected, or that another process has run."""
        self._ids.add(nodeid)

    def forget(self, config: pytest.Config) -> None:
        """Leave nothing of sealed items to pytest's cache, before it is written: their names
        mean other cases the next time.
        """
        if not self._ids:
            return
        manager = config.pluginmanager
        failed = getattr(manager.get_plugin("lfplugin"), "lastfailed", None)
        if isinstance(failed, dict):  # its keys are texts, or node ids that become such
            for nodeid in [nodeid for nodeid in failed if str(nodeid) in self._ids]:
                del failed[nodeid]
        known = getattr(manager.get_plugin("nfplugin"), "cached_nodeids", None)
        if isinstance(known, set):
            known -= {nodeid for nodeid in known if str(nodeid) in self._ids}


def _unfit(config: pytest.Config) -> Iterator[str]:
    """Options in use that are about single tests."""
    option = config.option
    names = {
        "maxfail": "-x or --maxfail",
        "lf": "--lf",
        "failedfirst": "--ff",
        "stepwise": "--sw",
        "usepdb": "--pdb",
        "trace": "--trace",
    }
    yield from (shown for name, shown in names.items() if getattr(option, name, None))
    if getattr(option, "capture", "") in ("no", "tee-sys"):
        yield "-s"
    logging = config.pluginmanager.hasplugin("logging-plugin")
    if logging and (config.getini("log_cli") or option.log_cli_level is not None):
        yield "log_cli"


def named_case(suite: ActiveSuite, names: Iterable[str]) -> str:
    """What is wrong with naming single cases on the command line; empty if nothing is."""
    sealed = {case.name for case in suite.cases if suite.is_sealed(case)}
    for name in names:
        if name in sealed or name.rpartition("[")[0] in sealed:
            return (
                f"{suite.key}: this case is of the holdout half, which is sealed: run the whole "
                f"half (--agent-eval-split holdout), {_OR}"
            )
    return ""


def recorded(
    summary: Summary, root: Path, *, run: str, git: Mapping[str, Any] | None
) -> tuple[Summary, list[str]]:
    """Record in the ledgers that holdout cases were looked at; once a suite and run.

    Args:
        summary: of the run, nothing of it sealed.
        root: the root directory.
        run: its name.
        git: ``{commit, dirty}``, or None.

    Returns:
        The summary with the number of looks, and notes on what could not be read or written.
    """
    from pytest_agent_eval.evidence.looks import count_looks, look_at
    from pytest_agent_eval.runs.ledger import record_look

    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    suites = list(summary.suites)
    notes: list[str] = []
    for key in dict.fromkeys(suite.info.key for suite in suites):
        places = [place for place, suite in enumerate(suites) if suite.info.key == key]
        cases = [case for place in places for case in suites[place].cases]
        first = suites[places[0]]
        look = look_at(first.info, cases, date=date, run=run, git=git)
        if look is None:
            continue
        path = Path(os.path.normpath(root / first.info.ledger))
        entries, said = record_look(path, look)
        notes += said
        looks = count_looks(entries, look, first.info.ledger)
        suites[places[0]] = replace(first, looks=looks)
    return replace(summary, suites=tuple(suites)), notes
