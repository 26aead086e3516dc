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


def _run_both_ways(project: Project, *arguments: str) -> list[str]:
    """What a session says of a mistake, without and with workers; both end with usage errors."""
    said = []
    for workers in ((), ("-n", "2")):
        result = project.subprocess("--agent-eval", *workers, *arguments)
        text = result.stdout.str() + result.stderr.str()
        assert result.ret == pytest.ExitCode.USAGE_ERROR, text
        assert "INTERNALERROR" not in text
        assert "Traceback" not in text
        lines = [line for line in text.splitlines() if "agent-eval: /" in line]
        assert len(lines) == 1, text
        said.append(lines[0].partition("agent-eval: ")[2].rstrip("! "))
    return said


@pytest.mark.parametrize("where", ["a file", "a file/below"])
def test_a_run_directory_that_cannot_be_is_said_in_one_line(project: Project, where: str) -> None:
    project.suite()
    project.cases(3)
    project.write("a file", "")
    alone, together = _run_both_ways(project, "--agent-eval-runs", where)
    assert "results cannot be stored here" in alone
    assert alone == together


def test_only_a_broken_case_and_no_place_to_store_it(project: Project) -> None:
    project.suite()
    project.case("broken", annotations="a: [")
    project.write("file", "")
    alone, together = _run_both_ways(project, "--agent-eval-runs", "file")
    assert "results cannot be stored here" in alone
    assert alone == together


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_run_directory_that_vanishes_ends_the_session(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: python, function: "agent:run"}
        judges: [{name: good, check: return True}]
        """
    )
    project.write(
        "agent.py",
        """\
        import os
        import shutil

        def run(task):
            if os.path.isdir("runs"):
                os.rename("runs", f"gone-{os.getpid()}")
                open("runs", "x").close()
            return "ok"
        """,
    )
    project.cases(6)
    result = project.subprocess("--agent-eval", *workers, "--agent-eval-runs", "runs")
    text = result.stdout.str() + result.stderr.str()
    assert result.ret != 0
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text
    assert "cannot be stored" in text


@pytest.mark.parametrize(
    "arguments",
    [("-k", "nothing"), ("--agent-eval-tag", "nothing")],
)
def test_nothing_is_stored_where_no_case_is_left(
    project: Project, arguments: tuple[str, ...]
) -> None:
    project.suite()
    project.cases(2)
    result = project.subprocess("--agent-eval", "-n", "2", *arguments)
    assert result.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "stored in" not in result.stdout.str()
    assert not project.runs


@pytest.mark.parametrize(
    ("suite", "arguments", "said"),
    [
        (ECHO, ("--agent-eval-resume", "nothing"), "no run named nothing"),
        (ECHO, ("--agent-eval-if", "a b"), "not a Python expression"),
        (ECHO.replace("judges:", "judgez:"), (), "did you mean judges"),
        ("dataset: [", (), "not valid YAML"),
    ],
)
def test_a_mistake_is_no_internal_error_of_workers(
    project: Project, suite: str, arguments: tuple[str, ...], said: str
) -> None:
    project.suite(suite)
    project.cases(2)
    result = project.subprocess("--agent-eval", "-n", "2", *arguments, "eval.yaml")
    text = result.stdout.str() + result.stderr.str()
    assert result.ret != 0
    assert said in text
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text
