"""pytest-xdist: what travels between the controller and its workers.

The controller decides where the run is stored and tells its workers; a worker tells the
controller which suites it collected, with its first result and once more when it ends. Results
travel on the reports.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agent_eval.run_store import BASELINE, EARLIER, RUN

if TYPE_CHECKING:
    from pytest_agent_eval.session import EvalSession

__all__ = ["Transport", "is_controller", "upcoming", "when_orphaned"]

SUITES = "agent_eval_suites"
PROBLEM = "agent_eval_problem"
ALARMS = "agent_eval_alarms"


class Transport:
    """Registered only where pytest-xdist is installed."""

    def __init__(self, session: EvalSession) -> None:
        self._session = session

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Controller: tell a worker that is about to start where the run is stored."""
        store = self._session.store
        self._session.trials.session_id = node.workerinput["testrunuid"]
        baseline = self._session.open_baseline()
        earlier = self._session.open_earlier()
        node.workerinput[RUN] = str(store.reserve())
        if earlier is not None:
            node.workerinput[EARLIER] = str(earlier.path)
        if baseline is not None:
            node.workerinput[BASELINE] = str(baseline.run.path)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Controller: take over what a worker said; one that crashed says nothing."""
        said = getattr(node, "workeroutput", {})
        self._session.learn(said.get(SUITES, {}))
        alarms = (*self._session.alarms, *said.get(ALARMS, ()))
        self._session.alarms = list(dict.fromkeys(alarms))
        self._session.problem = said.get(PROBLEM) or self._session.problem
        if said.get(PROBLEM) and said.get("shouldstop"):
            self._session.problem_shown = True  # xdist ends the session with these words

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Worker: tell the controller which suites it collected."""
        if self._session.worker is not None:
            output = session.config.workeroutput  # type: ignore[attr-defined]
            output[SUITES] = self._session.infos()
            output[PROBLEM] = self._session.problem
            output[ALARMS] = self._session.alarms


def is_controller(config: pytest.Config) -> bool:
    """Whether this process lets workers run the tests."""
    return config.pluginmanager.hasplugin("dsession")


def upcoming(config: pytest.Config) -> list[str]:
    """Worker: node ids of the items that it will run after the one it is at, in order.

    Only those that no other worker can take over. Reads xdist's own queue, for which it has no
    interface; where that looks different nothing is known to come.
    """
    for plugin in config.pluginmanager.get_plugins():
        queue, session = getattr(plugin, "torun", None), getattr(plugin, "session", None)
        if queue is None or session is None:
            continue
        try:
            with queue.lock() as waiting:
                indices = [plugin.nextitem_index, *waiting]
        except (AttributeError, TypeError):
            return []
        if config.getoption("dist", "") == "worksteal":
            del indices[1:]  # of the others, some may be stolen
        return [session.items[index].nodeid for index in indices if isinstance(index, int)]
    return []


def when_orphaned(then: Callable[[], None]) -> None:
    """Worker: call a function as soon as the process that started this one is gone.

    A worker whose controller was killed works on for up to 15 seconds, and whoever pays for its
    agents has no way to end them. Where the system cannot tell (only Linux can), nothing is called.
    """
    if sys.platform != "linux":
        return
    parent = os.getppid()
    try:
        descriptor = os.pidfd_open(parent)
    except OSError:  # an older kernel, or it is gone already
        return

    def wait() -> None:
        if os.getppid() == parent:
            select.select([descriptor], [], [])
        os.close(descriptor)
        then()

    threading.Thread(target=wait, name="agent-eval-orphan", daemon=True).start()
