"""pytest-xdist: every case once, the same order on every worker, gates on the controller."""

from __future__ import annotations

import pytest

from .conftest import ECHO, Project


@pytest.mark.parametrize("workers", ["2", "4"])
def test_every_case_is_stored_exactly_once(project: Project, workers: str) -> None:
    project.suite()
    project.cases(13)
    result = project.subprocess("--agent-eval", "-n", workers)
    result.assert_outcomes(passed=13)
    assert len(project.results()) == 13
    assert len(project.runs) == 1
    assert result.stdout.str().count("agent evaluation") == 1


def test_the_selection_works_in_workers(project: Project) -> None:
    project.suite()
    project.cases(6)
    result = project.subprocess("--agent-eval", "-n", "2", "-k", "case-001 or case-002")
    result.assert_outcomes(passed=2)
    empty = project.subprocess("--agent-eval", "-n", "2", "--agent-eval-tag", "nowhere")
    assert empty.ret != 0
    assert "no case is left" in empty.stdout.str() + empty.stderr.str()
    named = project.subprocess("-n", "2", "cases/case-003")
    named.assert_outcomes(passed=1)


def test_a_failing_case_reads_the_same(project: Project) -> None:
    project.suite(ECHO.replace("copy.yaml' in", "nowhere' in"))
    project.cases(1)
    blocks = []
    for workers in ((), ("-n", "1")):
        result = project.subprocess("--agent-eval", *workers)
        result.assert_outcomes(failed=1)
        text = result.stdout.str()
        start = text.index("case-001: 1 of 1")
        blocks.append([line for line in text[start:].splitlines()[:6] if "/" not in line])
    assert blocks[0] == blocks[1]


def test_a_worker_that_dies_hides_no_case(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: python, function: "agent:run"}
        judges: [{name: good, check: return True}]
        thresholds: {good: {min_pass_rate: 0.5}}
        """
    )
    project.write(
        "agent.py",
        """\
        import os

        def run(task):
            if task.input["message"] == "case-003":
                os._exit(1)
            return "ok"
        """,
    )
    project.cases(6)
    result = project.subprocess("--agent-eval", "-n", "2")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*case-003*", "GATE good min_pass_rate*not decided*5 of 6*"])
    assert len(project.results()) == 5
