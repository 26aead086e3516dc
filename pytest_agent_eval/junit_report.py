"""What a JUnit report says besides the cases: gates as test cases, judges as properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.summary import SuiteSummary, Summary, titles
from pytest_agent_eval.reports.junit import (
    calibration_property,
    comparison_property,
    pairwise_property,
)
from pytest_agent_eval.reports.printable import printable
from pytest_agent_eval.reports.terminal import gate_text

__all__ = ["tell"]


def tell(junit: Any, summary: Summary) -> None:
    """Add to a report that is about to be written.

    Gates become test cases of their own, by reports that only this plugin of pytest gets: in the
    terminal a case is a test, and a gate is none.

    Args:
        junit: pytest's plugin that writes JUnit reports.
        summary: of the run.
    """
    names = titles(suite.info for suite in summary.suites)
    for suite in summary.suites:
        for name, value in _properties(suite, names[suite.info.key, suite.info.variant]):
            junit.add_global_property(name, value)
    for gate in summary.gates:
        for report in _reports(gate):
            junit.pytest_runtest_logreport(report)


def _properties(suite: SuiteSummary, title: str) -> Iterator[tuple[str, str]]:
    yield from (calibration_property(title, found) for found in suite.calibrations)
    if suite.pairwise is not None:
        yield pairwise_property(title, suite.pairwise, suite.info.baseline)
    for found in suite.comparisons:
        if found.split == "all":
            yield comparison_property(title, found, suite.info.baseline)


def _reports(gate: Gate) -> Iterator[pytest.TestReport]:
    """That of the call, and that of the teardown, which closes the test case."""
    parts = ("gate", _part(gate.name), gate.key, *([gate.split] if gate.split else []))
    nodeid = "::".join((gate.suite, *parts))
    said = printable(gate_text(gate))
    location = (gate.suite, None, ".".join(parts))
    if gate.outcome == "not decided":
        skipped = (gate.suite, 0, f"Skipped: {said}")
        yield pytest.TestReport(nodeid, location, {}, "skipped", skipped, "call")
    elif gate.outcome == "missed":
        yield pytest.TestReport(nodeid, location, {}, "failed", said, "call")
    else:
        yield pytest.TestReport(nodeid, location, {}, "passed", None, "call")
    yield pytest.TestReport(nodeid, location, {}, "passed", None, "teardown")


def _part(name: str) -> str:
    """A name that pytest takes neither for several parts of a node id, nor for parameters."""
    return printable(name).replace("::", ":").replace("[", "(").replace("]", ")")
