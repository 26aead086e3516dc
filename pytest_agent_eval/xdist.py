"""pytest-xdist: what travels between the controller and its workers.

The controller decides where the run is stored and tells its workers; a worker tells the
controller, when it ends, which suites it collected. Results travel on the reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_agent_eval.session import EvalSession

__all__ = ["Transport"]

RUN = "agent_eval_run"
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
        node.workerinput[RUN] = str(self._session.reserve_run())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Controller: take over what a worker said; one that crashed says nothing."""
        said = getattr(node, "workeroutput", {})
        self._session.learn(said.get(SUITES, {}))
        alarms = (*self._session.alarms, *said.get(ALARMS, ()))
        self._session.alarms = list(dict.fromkeys(alarms))
        self._session.problem = said.get(PROBLEM) or self._session.problem

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Worker: tell the controller which suites it collected."""
        if self._session.worker is not None:
            output = session.config.workeroutput  # type: ignore[attr-defined]
            output[SUITES] = self._session.infos()
            output[PROBLEM] = self._session.problem
            output[ALARMS] = self._session.alarms
