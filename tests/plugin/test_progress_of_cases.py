"""The status line of real cases: what it says, and that pytest's output is what it is without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Project
from .terminal import Session, on_terminal, until_drawn

HELD = """\
name: held
dataset: {{path: cases}}
runner:
  type: cli
  command: >-
    sh -c 'until [ -e {go} ]; do sleep 0.02; done; cp input.yaml "$1"/copy.yaml' - {{output_dir}}
execution: {{parallelism: {parallelism}}}
judges:
  - name: copied
    check: return 'fails' not in outputs['files']['copy.yaml']
"""
"""Agents that wait until there is a file."""


def held(project: Project, *, parallelism: int = 2) -> Path:
    go = project.path / "go"
    project.suite(HELD.format(go=go, parallelism=parallelism))
    return go


def run(project: Project, go: Path, *arguments: str, times: int = 3) -> tuple[Session, list[str]]:
    session = on_terminal(project, "--agent-eval", *arguments, then=until_drawn(go, times))
    return session, session.statuses()


@pytest.mark.parametrize("arguments", ["", "-v", "-q", "-o log_cli=true", "--capture=sys"])
def test_it_tells_what_runs_while_pytest_waits(project: Project, arguments: str) -> None:
    go = held(project)
    for name in ("one", "two", "fails"):
        project.case(name)
    session, statuses = run(project, go, *arguments.split())
    assert session.exit_status == 1
    assert "0/3" in statuses[0]
    assert any("2 running" in status for status in statuses)
    assert not any("left" in status for status in statuses[:3]), "nothing is known yet"


def test_one_after_the_other(project: Project) -> None:
    go = held(project, parallelism=1)
    project.case("fails-first")
    project.case("second", {"message": "two"})
    _, statuses = run(project, go)
    first = next(status for status in statuses if "running" in status)
    assert "running fails-first" in first


@pytest.mark.parametrize("arguments", ["-n 2", "-n 2 -v", "-n 2 -q", "-n 2 --dist=loadfile"])
def test_the_controller_draws_it_under_xdist(project: Project, arguments: str) -> None:
    go = held(project)
    for name in ("one", "two", "three", "fails"):
        project.case(name)
    session, statuses = run(project, go, *arguments.split())
    assert session.exit_status == 1
    assert "/4" in statuses[0]
    assert any("running" in status for status in statuses)


def test_what_a_plugin_prints_in_the_controller_stays_whole(project: Project) -> None:
    project.write(
        "conftest.py",
        """\
        def pytest_runtest_logfinish(nodeid):
            print("\\nfirst of mine\\nsecond of mine\\nthird of mine")
        """,
    )
    go = held(project)
    for name in ("one", "two", "three", "four"):
        project.case(name)
    session, _ = run(project, go, "-n", "2")
    screen = session.screen()
    for line in ("first of mine", "second of mine", "third of mine"):
        assert screen.count(line) == 4


def test_a_worker_that_dies_leaves_whole_lines(project: Project) -> None:
    project.write(
        "conftest.py",
        """\
        import os

        import pytest


        @pytest.fixture(autouse=True)
        def dies(request):
            yield
            if request.node.name == "dies":
                os._exit(3)
        """,
    )
    go = held(project)
    for name in ("dies", "one", "two", "three"):
        project.case(name)
    session, _ = run(project, go, "-n", "2", "--max-worker-restart=1")
    assert any(re.fullmatch(r"replacing crashed worker gw\d", line) for line in session.screen())


@pytest.mark.parametrize("arguments", ["", "-n 2"])
@pytest.mark.parametrize("ini", [False, True])
def test_it_can_be_switched_off(project: Project, arguments: str, ini: bool) -> None:
    held(project).touch()
    project.case("one")
    off = ["-o", "agent_eval_progress=off"] if ini else ["--agent-eval-progress=off"]
    session = on_terminal(project, "--agent-eval", *arguments.split(), *off)
    assert session.exit_status == 0
    assert session.drawn == 0


def test_the_command_line_outranks_the_ini(project: Project) -> None:
    go = held(project)
    project.case("one")
    _, statuses = run(
        project, go, "-o", "agent_eval_progress=off", "--agent-eval-progress=auto", times=1
    )
    assert statuses


def test_an_unknown_value_is_refused(project: Project) -> None:
    result = project.run("-o", "agent_eval_progress=on")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*agent_eval_progress = on: needs auto or off"])


@pytest.mark.parametrize("arguments", [["-s"], ["--pdb"], ["-p", "no:terminal"]])
def test_where_pytest_is_not_alone_on_the_terminal(project: Project, arguments: list[str]) -> None:
    held(project).touch()
    project.case("one")
    session = on_terminal(project, "--agent-eval", *arguments)
    assert session.exit_status == 0
    assert session.drawn == 0


def test_a_case_that_is_carried_out_again_is_counted_once(project: Project) -> None:
    go = held(project, parallelism=1)
    project.case("fails")
    project.case("last")
    session, statuses = run(project, go, "-p", "rerunfailures", "--reruns", "3", times=2)
    assert session.exit_status == 1
    counts = {match.group() for status in statuses if (match := re.search(r"\d+/\d+", status))}
    assert counts <= {"0/2", "1/2", "2/2"}
