"""The trials of one session: planned in pytest's order, carried out by the engine, stored."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_agent_eval.baton import BATON
from pytest_agent_eval.items import CaseItem
from pytest_agent_eval.xdist import when_orphaned

if TYPE_CHECKING:
    from pytest_agent_eval.active_suite import ActiveSuite
    from pytest_agent_eval.cluster.client import Cluster
    from pytest_agent_eval.deadline import Steps
    from pytest_agent_eval.execution.engine import Engine, Lane
    from pytest_agent_eval.held_output import HeldOutput
    from pytest_agent_eval.options import Options
    from pytest_agent_eval.results import TrialResult
    from pytest_agent_eval.run_store import RunStore
    from pytest_agent_eval.runs.spending import Spending
    from pytest_agent_eval.status_line import StatusLine
    from pytest_agent_eval.suite_trials import SuiteTrials

__all__ = ["Trials"]

WORKSPACES = ".agent-eval"
"""Begins the names of directories that hold workspaces and runs: hidden, so nothing looks there."""

_ENDING_S = 15.0
_SETTING_BACK_S = 120.0
"""Seconds that trials under way get to end when a session stops: an agent's tree is ended within a
few, a checkout has to be set back as well."""

Key = tuple[str, int]
"""Node id of an item, and the number of the trial: what the engine knows a job by."""


class Trials:
    """Owns the engine of one pytest process.

    Args:
        config: of the session.
        options: of the session.
        store: where results go.
        session_id: the same in all processes of a session, and in no other session.
        is_worker: this is a worker of pytest-xdist.
        upcoming: an xdist worker's items that it will certainly run, in order.
        begin_sealed: called before the first trial of a sealed half starts.
    """

    def __init__(
        self,
        config: pytest.Config,
        options: Options,
        store: RunStore,
        *,
        session_id: str,
        is_worker: bool,
        upcoming: Callable[[], Sequence[str]],
        begin_sealed: Callable[[], None],
    ) -> None:
        self._config = config
        self._options = options
        self._store = store
        self.session_id = session_id
        self._is_worker = is_worker
        self._upcoming = upcoming
        self._begin_sealed = begin_sealed
        self._engine: Engine | None = None
        self._suites: dict[str, SuiteTrials] = {}
        self._lanes: dict[tuple[str, str | None, bool], Lane] = {}
        self._attempts: Counter[tuple[str, int]] = Counter()
        self._taken_over: Counter[str] = Counter()
        self._items: dict[str, CaseItem] = {}
        self._known_lanes: set[int] = set()
        self._workspaces = ""
        self._in_checkout = False
        self._spending: Spending | None = None
        self._line: StatusLine | None = None
        self._held: HeldOutput | None = None
        self.cluster: Cluster | None = None
        self.alone = _alone(config)
        self.parallelism = 1

    # -- planning --------------------------------------------------------------------------

    def of(self, suite: ActiveSuite) -> SuiteTrials:
        """The trials of one suite."""
        found = self._suites.get(suite.key)
        if found is None:
            from pytest_agent_eval.suite_trials import SuiteTrials

            found = self._suites[suite.key] = SuiteTrials(
                suite,
                session=self.session_id,
                label=self._store.parts(suite, "")[:-1],
                cluster=self.cluster,
            )
        return found

    def plan(self, items: Sequence[CaseItem], suites: Iterable[ActiveSuite]) -> None:
        """Make the engine, and tell it what will be asked for.

        Args:
            items: the cases that will run, in pytest's order.
            suites: those they belong to.

        Raises:
            ClusterError: the Dask cluster that was asked for cannot be used.
        """
        from pytest_agent_eval.execution.engine import Engine, Job

        self._items = {item.nodeid: item for item in items}
        if self._options.dask and self._options.rescore is None:
            from pytest_agent_eval.cluster.client import Cluster

            self.cluster = Cluster.connect(self._options.dask, self.session_id)
        for suite in suites:
            self._make_lanes(suite, [item for item in items if item.suite is suite])
            # Every worker does: the one that ends last has seen what its own agents did.
            self.of(suite).remember_dataset()
        limits = [lane.limit for lane in self._lanes.values()]
        self.parallelism = max(limits, default=1)
        self._engine = Engine(
            self._options.parallelism or self.parallelism,
            judging=self._options.judge_parallelism,
            window=self._window(),
        )
        if self._is_worker:
            when_orphaned(self._engine.cancel)
        self._engine.plan(
            Job(
                (item.nodeid, trial),
                partial(self._steps, item, trial),
                lane=self._lanes[item.suite.key, item.variant, item.sealed],
                name=item.name,
                ahead=not _may_be_skipped(item) and not (item.sealed and self._shares_lane(item)),
            )
            for item in items
            for trial in range(1, item.trials + 1)
        )
        if items:
            from pytest_agent_eval.held_output import HeldOutput

            _exit_at_once()
            self._held = HeldOutput(self._config)
        if items and self._options.progress:
            from pytest_agent_eval.status_line import open_status_line
            from pytest_agent_eval.tally import EngineTally

            tally = EngineTally(
                self._engine.snapshot, self._options.parallelism or self.parallelism
            )
            self._line = open_status_line(self._config, tally)

    def _window(self) -> int | None:
        """How far ahead trials start; with -x as few as possible are paid for in vain."""
        option = self._config.option
        if self._is_worker or self.alone:
            return 0
        if getattr(option, "maxfail", 0) or getattr(option, "stepwise", False):
            return self.parallelism - 1
        return None

    def _make_lanes(self, suite: ActiveSuite, items: Sequence[CaseItem]) -> None:
        from pytest_agent_eval.execution.engine import Lane

        ahead = not self._is_worker and not self.alone
        needed = suite.fixture and self._options.rescore is None
        scope = ""
        if needed and items:  # there is none where every selected case is broken
            problem = items[0].fixture_problem(suite.fixture)
            if problem:
                self.of(suite).fixture_problem = f"{suite.fixture_place}: {problem}"
            else:
                scope = items[0].fixture_scope(suite.fixture)
        one_by_one = bool(scope) and not _outlives(scope, [*self._items], suite, items)
        for variant in suite.variants:
            config = suite.varied(variant).config
            limit = self._options.parallelism or config.execution.parallelism
            if self.cluster is not None:
                limit = self._options.parallelism or self.cluster.threads
            if self._is_worker and self._options.parallelism is None:
                limit = 1
            shared = suite.shares_workspace(variant)
            self._in_checkout = self._in_checkout or bool(shared)
            reason = self.alone or shared
            if one_by_one:
                reason = reason or f"fixture {suite.fixture} has the scope of a {scope}"
            if reason:
                if limit > 1:
                    suite.one_at_a_time = reason
                limit = 1
            lane = Lane(
                limit,
                ahead=ahead and not one_by_one,
                is_async=self.cluster is not None,
                open=not scope,
            )
            self._lanes[suite.key, variant, False] = lane
            # Its trials start when pytest is at the first of them: what agents print lands in
            # whatever test pytest is at, and has to be taken away there.
            apart = suite.sealed and not reason
            self._lanes[suite.key, variant, True] = replace(lane, open=False) if apart else lane

    def _shares_lane(self, item: CaseItem) -> bool:
        """Whether sealed trials and others of a suite take turns."""
        key, variant = item.suite.key, item.variant
        return self._lanes[key, variant, True] is self._lanes[key, variant, False]

    # -- running ---------------------------------------------------------------------------

    def results(self, item: CaseItem) -> list[TrialResult]:
        """Wait for the results of a case's trials.

        Raises:
            Stopped: the session has ended.
            RunDirectoryError: nothing can be stored.
        """
        assert self._engine is not None
        trials = self.of(item.suite)
        needed = item.suite.fixture and self._options.rescore is None
        if needed and not trials.fixture_problem:
            trials.fixture_value = item.fixture(item.suite.fixture)
        if item.sealed:
            self._begin_sealed()
        for variant in item.suite.variants:
            self._lanes[item.suite.key, variant, item.sealed].open = True
        BATON.give()  # a case that is run again, before it was reported for good
        if self._held is not None:
            self._held.deliver()
        if not self._workspaces:
            self._prepare(item)
        self._know_lanes()
        keys = self._keys(item)
        self._engine.begin(keys)
        if self._is_worker and self._options.parallelism is not None:
            for nodeid in self._upcoming():
                coming = self._items.get(nodeid)
                early = coming is not None and coming.sealed and not item.sealed
                if coming is not None and not early and not _may_be_skipped(coming):
                    self._engine.begin(self._keys(coming))
        waiting = self._line.tick if self._line is not None else None
        try:
            return [self._engine.result(key, waiting=waiting) for key in keys]
        finally:
            if self._line is not None:
                self._line.clear()  # from here on pytest may write, and plugins print
            BATON.take()  # until the case has been reported

    def _prepare(self, item: CaseItem) -> None:
        """Before the first trial: what its threads would otherwise do all at once.

        Raises:
            RunDirectoryError: nothing can be stored.
        """
        import pytest_agent_eval.reporting
        import pytest_agent_eval.reports.failure
        import pytest_agent_eval.reports.junit
        import pytest_agent_eval.reports.terminal  # noqa: F401

        path = self._store.writer().path
        if self._options.max_cost is not None:
            from pytest_agent_eval.runs.spending import Spending

            self._spending = Spending(path, self.session_id)
        factory = item.fixture("tmp_path_factory")
        self._workspaces = str(factory.mktemp(WORKSPACES))
        for suite in self._suites.values():
            suite.workspaces = self._workspaces
            suite.warm_up()

    def _know_lanes(self) -> None:
        """Find out whose agents are awaited, before many of them start at once."""
        writer = self._store.writer()
        for (key, variant, _), lane in self._lanes.items():
            if not lane.open or lane.limit == 1 or id(lane) in self._known_lanes:
                continue
            self._known_lanes.add(id(lane))
            with contextlib.suppress(Exception):  # each trial of it will say so
                runner = self._suites[key].shared(variant, writer).runner
                lane.is_async = lane.is_async or bool(getattr(runner, "is_async", False))

    def _keys(self, item: CaseItem) -> list[Key]:
        return [(item.nodeid, trial) for trial in range(1, item.trials + 1)]

    def _steps(self, item: CaseItem, trial: int, cancelled: threading.Event) -> Steps[TrialResult]:
        """Carry out one trial, in a thread of the engine, and store its result."""
        from pytest_agent_eval.execution.engine import Stopped
        from pytest_agent_eval.suite_trials import TrialPlace

        trials = self.of(item.suite)
        spent = self._spent()
        if spent:
            return trials.unstarted(item.case, item.variant, trial, "skipped", "budget", spent)
        writer = self._store.writer()
        run = self._store.earlier
        if run is not None and not self._attempts[item.nodeid, trial]:
            known = run.find(item.suite.key, item.case.name, item.variant, trial)
            stored = yield from trials.stored(
                item.case,
                variant=item.variant,
                trial=trial,
                run=run,
                writer=writer,
                cancelled=cancelled,
            )
            if stored is not None:
                if cancelled.is_set() and stored.how == "judged again":
                    raise Stopped
                self._taken_over[stored.how] += 1
                if stored.how == "judged again" or self._options.rescore is not None:
                    writer.append(stored.result)
                return stored.result
            # What was stored of it stays where it is.
            self._attempts[item.nodeid, trial] = len(known.attempts) if known else 0

        def place() -> TrialPlace:
            self._attempts[item.nodeid, trial] += 1
            attempt = self._attempts[item.nodeid, trial]
            parts = self._store.parts(item.suite, item.label)
            return TrialPlace(parts, trial, attempt, self._workspaces)

        result = yield from trials.steps(
            item.case,
            variant=item.variant,
            trial=trial,
            place=place,
            writer=writer,
            cancelled=cancelled,
        )
        if cancelled.is_set():  # the agent or a judge was cut short
            raise Stopped
        writer.append(result)
        if self._spending is not None:
            self._spending.add(result.usage.spent_usd)
            if result.execution is not None:
                self._spending.add(result.execution.asked.get("cost_usd"))
        return result

    def _spent(self) -> str:
        """Why no more trials start; empty while the session's budget lasts."""
        if self._spending is None or self._options.max_cost is None:
            return ""
        limit, total = self._options.max_cost, self._spending.total()
        if total < limit:
            return ""
        return f"not run: the session's budget of ${limit:g} is spent (${total:.2f})"

    def unasked(self) -> int:
        """How many trials had ended when the session did, before they were asked for."""
        return len(self._engine.unasked()) if self._engine is not None else 0

    def told(self) -> list[str]:
        """What was taken over from a stored run, as a sentence; nothing in a new one."""
        run = self._store.earlier
        if run is None:
            return []
        taken = ", ".join(f"{count} {how}" for how, count in self._taken_over.items())
        verb = "went on with" if self._options.resume is not None else "judged again"
        return [f"{verb} {run.path.name}" + (f": trials {taken}" if taken else "")]

    def stop(self) -> None:
        """Start nothing more and end what is running."""
        if self._line is not None:
            self._line.close()
        if self.cluster is not None:
            self.cluster.stop()
        if self._engine is not None:
            self._engine.stop(_SETTING_BACK_S if self._in_checkout else _ENDING_S)
        if self._held is not None:
            self._held.close()
        if self.cluster is not None:
            self.cluster.close()
            self.cluster = None

    def hurry(self) -> None:
        """Kill what is running: whoever waits for the session's end does not want to any more."""
        from pytest_agent_eval.runners.process import kill_all

        kill_all()
        if self._engine is not None:
            self._engine.hurry()

    def dataset_changes(self) -> list[str]:
        """What has changed in the datasets since the session began, one sentence each."""
        return [text for suite in self._suites.values() if (text := suite.dataset_changes())]

    def end_hooks(self) -> tuple[str, ...]:
        """Run the hooks of the session's end, in the process that reports; notes on failures."""
        writer = self._store.opened
        if writer is None or not (writer.path / "hooks").is_dir():
            return ()
        from pytest_agent_eval.execution.suite_hooks import end_session
        from pytest_agent_eval.redaction import Secrets

        return end_session(str(writer.path), self.session_id, secrets=Secrets.of(os.environ))

    def clean(self, item: CaseItem) -> None:
        """Remove the workspaces of a finished case if pytest's retention policy says so."""
        policy = self._config.getini("tmp_path_retention_policy")
        if item.outcome is None or policy == "all":
            return
        for result in item.outcome.trials:
            if result.workspace and (policy == "none" or item.outcome.status == "passed"):
                shutil.rmtree(result.workspace, ignore_errors=True)


@functools.cache
def _exit_at_once() -> None:
    """Let the interpreter end without looking for cycles in all that was imported.

    That takes 0.2 s, and the system takes the memory back anyway. Nothing changes before the exit.
    """
    atexit.register(gc.freeze)


def _alone(config: pytest.Config) -> str:
    """Why trials run one at a time and none ahead; empty if they need not."""
    option = config.option
    if getattr(option, "usepdb", False):
        return "--pdb"
    if getattr(option, "trace", False):
        return "--trace"
    return "-s" if getattr(option, "capture", "") == "no" else ""


def _may_be_skipped(item: CaseItem) -> bool:
    return any(item.get_closest_marker(name) for name in ("skip", "skipif"))


def _outlives(
    scope: str, order: Sequence[str], suite: ActiveSuite, items: Sequence[CaseItem]
) -> bool:
    """Whether a fixture of this scope lives from the first of the suite's cases to the last."""
    if scope in ("session", "package"):
        return True
    if scope != "module":
        return False
    places = [order.index(item.nodeid) for item in items]
    return places[-1] - places[0] == len(places) - 1
