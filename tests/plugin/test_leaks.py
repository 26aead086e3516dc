"""Agents that read the answer key, in real sessions."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project

SUITE = """\
name: leaky
dataset: {{path: cases, leak: {leak}}}
runner: {{type: cli, command: ["sh", "-c", "cat {{config_dir}}/cases/case-001/annotations.yaml; echo done"]}}
judges: [{{name: any, check: return True}}]
"""


def _project(project: Project, leak: str) -> None:
    project.suite(SUITE.format(leak=leak))
    project.case(
        "case-001", {"message": "hello"}, {"why": "the customer was promised a refund in May"}
    )
    project.case("case-002", {"message": "hello"}, {"why": "an entirely different explanation"})


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_leak_is_told_though_the_case_passes(project: Project, workers: tuple[str, ...]) -> None:
    _project(project, "warn")
    result = project.subprocess("--agent-eval", *workers)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*case-001: answer key seen by the agent: annotations.why *"])
    assert "promised a refund" not in result.stdout.str()
    assert "case-002: answer key" not in result.stdout.str()


def test_a_leak_may_fail_the_case(project: Project) -> None:
    _project(project, "error")
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*case-001: the agent failed: answer key seen by the agent*"])


def test_nothing_is_looked_for_where_it_is_off(project: Project) -> None:
    _project(project, "off")
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=2)
    assert "answer key seen" not in result.stdout.str()
