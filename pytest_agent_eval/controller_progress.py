"""The status line under pytest-xdist: the controller counts what its workers report.

The controller's main thread waits in xdist's queue, so a thread draws the line: only between two
calls of hooks, as any plugin may print in one, and not only through pytest's terminal writer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING

import pytest

from pytest_agent_eval.status_line import INTERVAL_S, StatusLine, open_status_line

if TYPE_CHECKING:
    from pytest_agent_eval.reports.progress import Snapshot
    from pytest_agent_eval.tally import Tally

__all__ = ["ControllerProgress"]


class ControllerProgress:
    """A pytest plugin. Without xdist, in its workers, and where no case is collected it does
    nothing.

    Args:
        config: of the session.
        is_case: whether a node id is that of a case.
    """

    def __init__(self, config: pytest.Config, is_case: Callable[[str], bool]) -> None:
        self._config = config
        self._is_case = is_case
        self._total = 0
        self._workers = 0
        self._running: dict[str, float] = {}
        self._statuses: dict[str, str] = {}
        self._tally: Tally | None = None
        self._line: StatusLine | None = None
        self._snapshot: Snapshot | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._unwatch: Callable[[], None] | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """Learn how many cases there are; all workers collect the same ones."""
        self._workers += 1
        self._total = sum(map(self._is_case, ids))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self) -> None:
        """One worker less; its successor collects anew."""
        self._workers -= 1

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A case has begun on some worker."""
        if not self._total or not self._is_case(nodeid):
            return
        if self._tally is None:
            from pytest_agent_eval.tally import Tally

            self._tally = Tally()
            self._open()
        self._running[nodeid] = time.monotonic()
        self._look()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A case has got its outcome, or a phase of it has ended."""
        nodeid = report.nodeid
        if self._tally is None or not self._is_case(nodeid):
            return
        carried = getattr(report, "agent_eval", None)
        if carried is not None:
            from pytest_agent_eval.results import TrialResult

            self._statuses[nodeid] = carried["status"]
            for trial in carried["trials"]:
                self._tally.spend(TrialResult.from_dict(trial))
        elif report.failed:  # a fixture, or the worker itself
            self._statuses[nodeid] = "failed" if report.when == "call" else "error"
        if report.when not in ("setup", "call", "teardown"):  # the worker died: nothing follows
            self._finish(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A case has ended on some worker."""
        self._finish(nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Take the line away when the last worker is done, or the session is interrupted."""
        try:
            return (yield)
        finally:
            self._close()

    def _finish(self, nodeid: str) -> None:
        if self._tally is not None and self._running.pop(nodeid, None) is not None:
            self._tally.count(nodeid, self._statuses.pop(nodeid, "skipped"))
            self._look()

    def _look(self) -> None:
        """Make the snapshot that the thread draws."""
        assert self._tally is not None
        running = tuple(
            (nodeid.partition("::")[2], since) for nodeid, since in self._running.items()
        )
        self._snapshot = self._tally.snapshot(self._total, running, max(self._workers, 1))

    def _open(self) -> None:
        self._line = open_status_line(self._config, lambda: self._snapshot)
        if self._line is not None:
            line = self._line
            self._unwatch = self._config.pluginmanager.add_hookcall_monitoring(
                before=lambda *_: line.hold(), after=lambda *_: line.release()
            )
            self._thread = threading.Thread(target=self._draw, name="agent-eval-status")
            self._thread.daemon = True
            self._thread.start()

    def _draw(self) -> None:
        line = self._line
        while line is not None and not self._stop.wait(INTERVAL_S):
            line.tick()

    def _close(self) -> None:
        if self._line is not None and self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._line.close()
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
