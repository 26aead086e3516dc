"""Reports of cases on their way to the terminal: hooks that do not get pytest's config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import warnings

    from pytest_agent_eval.session import EvalSession

__all__ = ["Receiver", "tolerated_status"]


class Receiver:
    """Hands the result on each report to the session."""

    def __init__(self, session: EvalSession) -> None:
        self._session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take the result, before the terminal prints the report."""
        self._session.receive(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, nodeid: str
    ) -> None:
        """Look at a warning, before anybody writes it down."""
        self._session.sealed.hush_warning(warning_message, nodeid)


def tolerated_status(report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Category, letter and word of a tolerated case; None for every other report."""
    carried = getattr(report, "agent_eval", None)
    if carried is None or report.when != "call" or not report.passed:
        return None
    if carried["status"] != "tolerated":
        return None
    return "tolerated", "t", ("TOLERATED", {"yellow": True})
