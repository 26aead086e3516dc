"""The status line, seen on a terminal: pytest's own output is what it is without it."""

from __future__ import annotations

import signal

import pytest

from .conftest import Project
from .terminal import Session, on_terminal, until_drawn

FED = """\
import itertools
import logging
import os
import threading
import time

import pytest
from pytest_agent_eval.reports.progress import Snapshot
from pytest_agent_eval.status_line import open_status_line

asked = itertools.count()
last = [0]
line = [None]


def snapshot():
    last[0] = next(asked)
    now = time.monotonic()
    running = (("refund-\\x1b[2J\\nポリシー", now - 48), ("b", now - 1))
    return Snapshot(200, last[0], failed=2, running=running, finished_seconds=(3, 9.0))


def pytest_collection_finish(session):
    if os.environ.get("PROGRESS") != "off":
        line[0] = open_status_line(session.config, snapshot)


def pytest_unconfigure(config):
    if line[0] is not None:
        line[0].close()


@pytest.fixture(autouse=True)
def waits(request):
    talking = threading.Thread(target=logging.getLogger("agent").warning, args=["one\\ntwo\\nthree"])
    talking.start()
    begun = last[0]
    while line[0] is not None and last[0] < begun + int(os.environ.get("DRAWN", "2")):
        line[0].tick()
        time.sleep(0.01)
    talking.join()
    if line[0] is not None:
        line[0].clear()
"""
"""Feeds the status line while a fixture waits, as a case waits for its result."""

TESTS = """\
import pytest

@pytest.mark.parametrize("name", {names!r})
def test_it(name):
    print("printed", name)
    assert name != "fails"
"""


@pytest.fixture
def fed(project: Project) -> Project:
    project.write("conftest.py", FED)
    project.write("test_a.py", TESTS.format(names=["a", "fails"]))
    project.write("test_b.py", TESTS.format(names=["c"]))
    return project


def seen(session: Session) -> list[str]:
    statuses = session.statuses()
    assert statuses, session.written
    return statuses


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "-q",
        "-qq",
        "-v",
        "-vv -rA --no-header",
        "--capture=sys",
        "-o log_cli=true",
        "-o log_cli=true -v",
        "-o console_output_style=count",
        "-o console_output_style=classic",
        "--setup-show",
        "-x --no-summary --color=no",
    ],
)
def test_it_garbles_nothing(fed: Project, arguments: str) -> None:
    session = on_terminal(fed, *arguments.split(), size=(5, 80))
    assert session.exit_status == 1
    statuses = seen(session)
    assert "2 failed" in statuses[0]
    assert "slowest refund-" in statuses[0]


@pytest.mark.parametrize(
    ("arguments", "lines"), [("", 24), ("", 5), ("-v", 5), ("-o log_cli=true", 24)]
)
def test_nothing_is_left_of_it(fed: Project, arguments: str, lines: int) -> None:
    fed.write("test_a.py", TESTS.format(names=["a", "b"]))
    fed.write("pytest.ini", "[pytest]\nlog_cli_format = %(message)s\n")
    runs = [
        on_terminal(fed, *arguments.split(), size=(lines, 80), environment={"PROGRESS": wanted})
        for wanted in ("on", "off")
    ]
    assert (runs[0].drawn > 0, runs[1].drawn) == (True, 0)
    assert runs[0].screen() == runs[1].screen()


def test_it_spares_a_cursor_that_waits_at_the_edge(fed: Project) -> None:
    """Names that end at each of the last columns, of letters that are one and two columns wide."""
    (fed.path / "test_b.py").unlink()
    shortest = 80 - len("test_a.py::test_it[] ") - 4
    names = ["x" * (shortest + more) for more in range(7)]
    names += ["x" * (shortest - 20 + more) + "語" * 10 for more in range(7)]
    names += ["x" * (shortest + 80 - 120 + more) + "語" * 60 for more in range(7)]
    fed.write("test_a.py", TESTS.format(names=names))
    escaping = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"
    session = on_terminal(fed, "-v", "-o", escaping, environment={"DRAWN": "1"})
    assert session.exit_status == 0
    assert len(seen(session)) > len(names) // 2, "it is drawn for most of them"


@pytest.mark.parametrize("columns", [20, 39, 200])
def test_what_has_room_is_shown(fed: Project, columns: int) -> None:
    status = seen(on_terminal(fed, size=(24, columns)))[0]
    assert "/200" in status
    assert "2 failed" in status
    assert ("refund-" in status) == (columns > 39)


def test_the_terminal_may_be_resized(fed: Project) -> None:
    sizes = [(24, 40), (6, 100), (24, 60)]

    def resize(written: bytes) -> tuple[int, int] | None:
        return sizes.pop(0) if sizes and written.count(b"\x1b8") >= 2 * (4 - len(sizes)) else None

    session = on_terminal(fed, then=resize)
    assert len(session.sizes) == 4
    widths = [len(status) for status in seen(session)]
    assert min(widths) < 40 < max(widths)


def test_an_interruption_takes_it_away(fed: Project) -> None:
    sent: list[int] = []

    def interrupt(written: bytes) -> signal.Signals | None:
        if b"\x1b8" not in written or sent:
            return None
        sent.append(len(written))
        return signal.SIGINT

    session = on_terminal(fed, then=interrupt)
    assert session.exit_status == 2
    seen(session)
    assert any("KeyboardInterrupt" in line for line in session.screen())


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ("-s", {}),
        ("--capture=tee-sys", {}),
        ("--pdb -k a", {}),
        ("-p no:terminal", {}),
        ("", {"CI": "true"}),
        ("", {"BUILD_NUMBER": "7"}),
        ("", {"GITHUB_ACTIONS": "true"}),
        ("", {"TERM": "dumb"}),
    ],
)
def test_where_it_does_not_belong(
    fed: Project, arguments: str, environment: dict[str, str]
) -> None:
    fed.write("test_a.py", TESTS.format(names=["a", "b"]))
    session = on_terminal(fed, *arguments.split(), environment=environment)
    assert session.exit_status == 0
    assert session.drawn == 0


def test_it_is_never_in_a_log(fed: Project) -> None:
    result = fed.subprocess()
    result.assert_outcomes(passed=2, failed=1)
    assert "\x1b" not in result.stdout.str()


def test_without_colours(fed: Project) -> None:
    session = on_terminal(fed, environment={"NO_COLOR": "1"})
    assert seen(session)
    assert b"\x1b[31m" not in session.written
    assert b"\x1b[31m2 failed" in on_terminal(fed).written


def test_a_terminal_that_knows_only_ascii(fed: Project) -> None:
    session = on_terminal(fed, environment={"PYTHONIOENCODING": "ascii"})
    assert all(status.isascii() for status in seen(session))


WAITING = """\
name: waits
dataset: {path: cases}
runner: {type: python, function: "agent:run"}
judges: [{name: good, check: "return 'bad' not in outputs['files']"}]
"""
AGENT = """\
import os
import time

def run(task):
    while not os.path.exists({go!r}):
        time.sleep(0.01)
    if task.input["message"] == "die":
        os._exit(3)
    name = task.input["message"]
    with open(os.path.join(task.output_dir, name), "w") as file:
        file.write(name)
    return name
"""


@pytest.fixture
def waiting(project: Project) -> Project:
    """Eight cases that wait for a file ``go``; the agent of one of them writes the wrong file."""
    for number in range(7):
        project.case(f"case-{number}", {"message": "good"})
    project.case("ケース", {"message": "bad"})
    project.write("agent.py", AGENT.format(go=str(project.path / "go")))
    project.suite(WAITING)
    return project


def let_go(project: Project, *arguments: str, lines: int = 24) -> Session:
    """A session whose agents end after the status was seen twice."""
    then = until_drawn(project.path / "go", 2)
    return on_terminal(project, "--agent-eval", "-n", "2", *arguments, size=(lines, 80), then=then)


@pytest.mark.parametrize(("arguments", "lines"), [("", 24), ("-v", 5), ("-q", 5)])
def test_the_controller_of_xdist_draws_it(waiting: Project, arguments: str, lines: int) -> None:
    session = let_go(waiting, *arguments.split(), lines=lines)
    assert session.exit_status == 1
    assert "1 failed, 7 passed" in session.screen()[-2]
    assert "0/8 · 2 running" in seen(session)[0]


def test_a_worker_that_dies_is_no_longer_running(waiting: Project) -> None:
    waiting.case("case-0", {"message": "die"})
    session = let_go(waiting, "-x", "--max-worker-restart=0")
    assert session.exit_status != 0
    assert "0/8 · 2 running" in seen(session)[0]
