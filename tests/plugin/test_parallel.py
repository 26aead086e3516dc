"""Trials side by side and ahead of pytest. Agents prove it by meeting each other, never by time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import PLAIN, Project

MEETING = """\
name: meeting
dataset: {path: cases}
runner: {type: python, function: "agent:run"}
judges:
  - name: met
    check: return 'met' in outputs['final_message'], outputs['final_message']
"""

AGENT = """\
import pathlib
import threading

barrier = threading.Barrier(PARTIES)
lock = threading.Lock()
now = most = 0

def run(task):
    global now, most
    with lock:
        now += 1
        most = max(most, now)
        pathlib.Path(__file__).with_name("most").write_text(str(most))
    try:
        barrier.wait(20)
    finally:
        with lock:
            now -= 1
    return "met the others"
"""
"""Each waits until as many are there; the most that were there at once is in a file."""


def meeting(project: Project, parties: int, cases: int, suite: str = MEETING) -> None:
    project.suite(suite)
    project.write("agent.py", AGENT.replace("PARTIES", str(parties)))
    project.cases(cases)


def most(project: Project) -> int:
    return int((project.path / "most").read_text())


@pytest.mark.parametrize("parallelism", [1, 2, 8, 32])
def test_as_many_agents_as_asked_for_are_at_work_and_never_more(
    project: Project, parallelism: int
) -> None:
    count = max(8, parallelism * 2)
    meeting(project, parallelism, count)
    result = project.run("--agent-eval", "--agent-eval-parallelism", str(parallelism))
    result.assert_outcomes(passed=count)
    assert most(project) == parallelism


def test_the_suite_says_how_many_and_the_option_overrules_it(project: Project) -> None:
    suite = MEETING + "execution: {parallelism: 3}\n"
    meeting(project, 3, 6, suite)
    project.run("--agent-eval").assert_outcomes(passed=6)
    assert most(project) == 3
    project.write("agent.py", AGENT.replace("PARTIES", "2"))
    project.run("--agent-eval", "--agent-eval-parallelism", "2").assert_outcomes(passed=6)
    assert most(project) == 2


def test_suites_run_side_by_side_each_with_its_own_limit(project: Project) -> None:
    for name, limit, cases in (("one", 3, 2), ("two", 1, 1)):
        project.suite(
            MEETING.replace("cases}", f"{name}}}") + f"execution: {{parallelism: {limit}}}\n",
            f"{name}.eval.yaml",
        )
        for number in range(cases):
            project.case(f"{name}-{number}", dataset=name)
    project.write("agent.py", AGENT.replace("PARTIES", "3"))
    project.run("--agent-eval").assert_outcomes(passed=3)
    assert most(project) == 3, "the widest suite says how many there are in all"


def test_commands_run_at_once_too(project: Project) -> None:
    project.suite(
        f"""\
        dataset: {{path: cases}}
        runner:
          type: cli
          command: ["sh", "-c", "touch {project.path}/met/$AGENT_EVAL_TRIAL; n=0;
            until [ $(ls {project.path}/met | wc -l) -ge 5 ] || [ $n -ge 2000 ]; do n=$((n+1)); sleep 0.01; done;
            ls {project.path}/met | wc -l"]
        execution: {{parallelism: 5}}
        judges: [{{name: met, check: "return int(outputs['stdout']) >= 5"}}]
        """
    )
    (project.path / "met").mkdir()
    project.cases(5)
    project.subprocess("--agent-eval").assert_outcomes(passed=5)


def test_reports_come_in_the_order_of_the_cases_whichever_agent_is_first(project: Project) -> None:
    project.suite(MEETING)
    project.write(
        "agent.py",
        """\
        import threading

        ended = {f"case-{number:03d}": threading.Event() for number in range(1, 8)}
        ended["case-008"] = threading.Event()

        def run(task):
            name = task.input["message"]
            after = f"case-{int(name[-3:]) + 1:03d}"
            if after in ended:
                assert ended[after].wait(20)
            ended[name].set()
            return "met"
        """,
    )
    project.cases(8)
    result = project.run("--agent-eval", "-v", "--agent-eval-parallelism", "8")
    result.stdout.fnmatch_lines([f"eval.yaml::case-{number:03d} PASSED*" for number in range(1, 9)])
    result.assert_outcomes(passed=8)


def test_judges_have_a_limit_of_their_own_and_hold_up_no_agent(project: Project) -> None:
    project.suite(
        MEETING.split("judges:")[0]
        + """\
judges:
  - {name: slow, module: agent, function: judge}
execution: {parallelism: 1}
"""
    )
    project.write(
        "agent.py",
        """\
        import pathlib
        import threading

        agents = []
        everybody = threading.Event()
        barrier = threading.Barrier(2)
        lock = threading.Lock()
        now = most = 0

        def run(task):
            agents.append(task)
            if len(agents) == 3:  # two that are judged, one that waits: no more may
                everybody.set()
            return "met"

        def judge(outputs):
            global now, most
            with lock:
                now += 1
                most = max(most, now)
                pathlib.Path(__file__).with_name("most").write_text(str(most))
            assert everybody.wait(20), "agents wait for judges"
            barrier.wait(20)
            with lock:
                now -= 1
            return True
        """,
    )
    project.cases(6)
    result = project.run("--agent-eval", "--agent-eval-judge-parallelism", "2")
    result.assert_outcomes(passed=6)
    assert most(project) == 2


def test_a_judge_that_blocks_is_ended_and_the_agents_go_on(project: Project) -> None:
    project.suite(
        MEETING.split("judges:")[0]
        + """\
judges:
  - {name: blocks, module: agent, function: judge, timeout: 0.3}
execution: {parallelism: 2}
"""
    )
    project.write(
        "agent.py",
        """\
        import threading

        agents = []
        everybody = threading.Event()

        def run(task):
            agents.append(task)
            if len(agents) == 6:
                everybody.set()
            return "met"

        def judge(outputs):
            if outputs["case"] == "case-001":
                assert everybody.wait(20)
                while True:
                    pass
            return True
        """,
    )
    project.cases(6)
    result = project.run("--agent-eval", "--agent-eval-judge-parallelism", "1")
    result.assert_outcomes(passed=5, failed=1)
    assert "did not return within 0.3 s" in project.results()["case-001"].verdicts[0].error


# -- async agents --------------------------------------------------------------------------


def test_hundreds_of_async_agents_wait_at_once_in_a_few_threads(project: Project) -> None:
    project.suite(MEETING)
    project.write(
        "agent.py",
        """\
        import asyncio
        import threading

        inside = []
        threads = []
        everybody = asyncio.Event()

        async def run(task):
            inside.append(task)
            threads.append(threading.active_count())
            if len(inside) == 300:
                everybody.set()
            await asyncio.wait_for(everybody.wait(), 50)
            return f"met {len(inside)} in {max(threads)} threads"
        """,
    )
    project.cases(300)
    result = project.subprocess("--agent-eval", "--agent-eval-parallelism", "300", "-q")
    result.assert_outcomes(passed=300)
    said = project.results()["case-300"].verdicts[0].rationale.split()
    assert int(said[1]) == 300
    assert int(said[3]) < 40


def test_an_async_agent_that_blocks_the_loop_ends_and_innocent_ones_say_why(
    project: Project,
) -> None:
    project.suite(MEETING + "execution: {timeout: 1, parallelism: 3}\n")
    project.write(
        "agent.py",
        """\
        import asyncio

        others = []

        async def run(task):
            if task.input["message"] == "case-001":
                while len(others) < 2:
                    await asyncio.sleep(0)
                while True:
                    pass
            if task.input["message"] == "case-004":
                return "met"
            others.append(task)
            await asyncio.sleep(600)
        """,
    )
    project.cases(4)
    result = project.run("--agent-eval")
    stored = project.results()
    assert stored["case-001"].status == "failed"
    assert stored["case-001"].timed_out
    result.stdout.fnmatch_lines(["case-001: *timed out after 1 s*", "*it was at agent.py:* in run"])
    for name in ("case-002", "case-003"):
        assert stored[name].timed_out, "they had no more time than the one that blocked"
    assert stored["case-004"].status == "passed"
    assert result.ret == 1


@pytest.mark.parametrize("kind", ["SystemExit(3)", "KeyboardInterrupt()", "GeneratorExit()"])
@pytest.mark.parametrize("form", ["def", "async def"])
def test_agents_that_raise_what_ends_programs_are_failures_of_their_own(
    project: Project, form: str, kind: str
) -> None:
    project.suite(MEETING + "execution: {parallelism: 4}\n")
    project.write(
        "agent.py",
        f"""\
        {form} run(task):
            if task.input["message"] == "case-002":
                raise {kind}
            return "met"
        """,
    )
    project.cases(5)
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=4, failed=1)
    assert kind.split("(")[0] in project.results()["case-002"].reason


# -- what pytest selects, and what it only looks at -------------------------------------------

COUNTING = """\
dataset: {{path: cases}}
runner: {{type: cli, command: ["sh", "-c", "echo {{message}} >> {calls}; {then}"]}}
execution: {{parallelism: 4}}
judges: [{{name: fine, check: "return outputs['case'] not in {bad}"}}]
"""


class Counted:
    """Agents that note their case when they start."""

    def __init__(self, project: Project, *, cases: int = 8, bad: tuple[str, ...] = ()) -> None:
        self.file = project.path / "calls"
        self.file.touch()
        project.suite(COUNTING.format(calls=self.file, then="echo done", bad=list(bad)))
        project.cases(cases)

    def take(self) -> list[str]:
        found = sorted(self.file.read_text().split())
        self.file.write_text("")
        return found


@pytest.mark.parametrize(
    "arguments",
    [
        ("--collect-only",),
        ("--setup-only",),
        ("--setup-plan",),
        ("--fixtures",),
        ("--co", "-q"),
        ("--no-agent-eval",),
    ],
    ids=" ".join,
)
def test_looking_starts_no_agent(project: Project, arguments: tuple[str, ...]) -> None:
    counted = Counted(project)
    result = project.run("--agent-eval", *arguments)
    assert result.ret in (0, 5)
    assert counted.take() == []
    assert project.runs == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("-k", "case-003 or case-005"),
        ("-k", "case-003 or case-005", "-p", "no:cacheprovider", "--agent-eval"),
        ("eval.yaml::case-003", "eval.yaml::case-005"),
        ("cases/case-003", "cases/case-005"),
        (
            *("--deselect", "eval.yaml::case-001", "--deselect", "eval.yaml::case-002"),
            *("--deselect", "eval.yaml::case-004", "--deselect", "eval.yaml::case-006"),
        ),
    ],
    ids=["-k", "-k without cache", "node ids", "directories", "--deselect"],
)
def test_only_what_is_selected_starts(project: Project, arguments: tuple[str, ...]) -> None:
    counted = Counted(project, cases=6)
    named = any(Path(word.replace("::", "/")).name == "case-003" for word in arguments)
    result = project.run(*(() if named else ("--agent-eval",)), *arguments)
    result.assert_outcomes(passed=2, deselected=0 if named else 4)
    assert counted.take() == ["case-003", "case-005"]


def test_marks_of_a_conftest_keep_agents_from_starting(project: Project) -> None:
    counted = Counted(project, cases=6)
    project.write(
        "conftest.py",
        """\
        import pytest

        def pytest_collection_modifyitems(items):
            items[1].add_marker(pytest.mark.skip(reason="too dear"))
            items[3].add_marker(pytest.mark.skipif(True, reason="not today"))
            items[4].add_marker(pytest.mark.skipif(False, reason="always"))
            items[5].add_marker(pytest.mark.xfail(run=True, reason="known"))
        """,
    )
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=3, skipped=2, xpassed=1)
    assert counted.take() == ["case-001", "case-003", "case-005", "case-006"]


def test_the_last_failed_first_failed_and_stepwise_options(project: Project) -> None:
    counted = Counted(project, cases=6, bad=("case-004",))

    def session(*arguments: str) -> pytest.RunResult:
        return project.pytester.runpytest_inprocess("-p", "no:randomly", *arguments)

    session("--agent-eval").assert_outcomes(passed=5, failed=1)
    assert len(counted.take()) == 6
    session("--agent-eval", "--lf").assert_outcomes(failed=1)
    assert counted.take() == ["case-004"]
    first = session("--agent-eval", "--ff", "-v")
    first.stdout.fnmatch_lines(["*case-004 FAILED*", "*case-001 PASSED*"])
    assert len(counted.take()) == 6
    session("--agent-eval", "--sw").assert_outcomes(passed=3, failed=1)
    assert counted.take()[:4] == [f"case-{number:03d}" for number in range(1, 5)]


@pytest.mark.parametrize("option", ["-x", "--maxfail=2", "--sw"])
def test_few_agents_start_in_vain_when_the_session_may_stop_early(
    project: Project, option: str
) -> None:
    bad = tuple(f"case-{number:03d}" for number in range(1, 31))
    counted = Counted(project, cases=30, bad=bad)
    result = project.pytester.runpytest_inprocess("-p", "no:randomly", "--agent-eval", option)
    failed = 2 if option == "--maxfail=2" else 1
    assert result.parseoutcomes()["failed"] == failed
    assert result.ret == (2 if option == "--sw" else 1)
    started = counted.take()
    assert failed <= len(started) <= failed + 3, "parallelism - 1 ahead of the last one asked for"


# -- one at a time ---------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-s", "--pdb", "--trace", "--capture=no"])
def test_what_talks_to_a_person_runs_one_at_a_time(project: Project, option: str) -> None:
    meeting(project, 1, 3, MEETING + "execution: {parallelism: 3}\n")
    if option == "--trace":  # it stops before the function of each test
        command = (sys.executable, "-m", "pytest", *PLAIN, "--agent-eval", option)
        result = project.pytester.run(*command, stdin=b"c\nc\nc\nc\n")
    else:
        result = project.run("--agent-eval", option)
    result.assert_outcomes(passed=3)
    shown = "-s" if option == "--capture=no" else option
    result.stdout.fnmatch_lines([f"agent-eval: meeting: 3 cases*one at a time ({shown})"])
    assert most(project) == 1


def test_a_debugger_opens_at_a_failing_case_and_nothing_ran_ahead(project: Project) -> None:
    counted = Counted(project, cases=4, bad=("case-002",))
    result = project.pytester.run(
        *(sys.executable, "-m", "pytest", *PLAIN, "--agent-eval", "--pdb"),
        stdin=b"p 'here: ' + self.name\nq\n",
    )
    result.stdout.fnmatch_lines(["*(Pdb) 'here: case-002'*"])
    assert counted.take() == ["case-001", "case-002"]
    assert result.ret == 2


# -- fixtures --------------------------------------------------------------------------------

FIXTURE = """\
import pathlib
import threading
import pytest

here = pathlib.Path(__file__).parent
lock = threading.Lock()
now = most = 0

@pytest.fixture(scope="SCOPE")
def agent():
    with open(here / "set-ups", "a") as stream:
        stream.write("x")
    alive = [True]

    def run(task):
        global now, most
        with lock:
            now += 1
            most = max(most, now)
            (here / "most").write_text(str(most))
        barrier.wait(20)
        with lock:
            now -= 1
        return "met" if alive else "the fixture is gone"

    yield run
    alive.clear()

barrier = threading.Barrier(PARTIES)
"""


@pytest.mark.parametrize(
    ("scope", "set_ups", "parties"),
    [("session", 1, 3), ("package", 1, 3), ("module", 1, 3), ("class", 6, 1), ("function", 6, 1)],
)
def test_a_runner_that_is_a_fixture(
    project: Project, scope: str, set_ups: int, parties: int
) -> None:
    text = MEETING.replace("agent:run", "fixture:agent") + "execution: {parallelism: 3}\n"
    project.suite(text)
    project.cases(6)
    project.write("conftest.py", FIXTURE.replace("SCOPE", scope).replace("PARTIES", str(parties)))
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=6)
    assert len((project.path / "set-ups").read_text()) == set_ups
    assert most(project) == parties
    said = f"one at a time (fixture agent has the scope of a {scope})"
    assert (said in result.stdout.str()) == (parties == 1)


def test_a_module_fixture_in_an_interleaved_order_runs_one_at_a_time(project: Project) -> None:
    for name in ("one", "two"):
        text = MEETING.replace("agent:run", "fixture:agent").replace("cases}", f"{name}}}")
        project.suite(text + "execution: {parallelism: 3}\n", f"{name}.eval.yaml")
        for number in range(3):
            project.case(f"{name}-{number}", dataset=name)
    fixture = FIXTURE.replace("SCOPE", "module").replace("PARTIES", "1")
    project.write(
        "conftest.py",
        fixture
        + """

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.name[-1])
""",
    )
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*one at a time (fixture agent has the scope of a module)*"] * 2)
    assert len((project.path / "set-ups").read_text()) == 6
    # One of each suite may be at work, never two of one.
    assert most(project) <= 2


def test_a_fixture_whose_every_case_is_broken(project: Project) -> None:
    project.suite(MEETING.replace("agent:run", "fixture:agent"))
    project.case("broken", "a: [")
    project.write("conftest.py", FIXTURE.replace("SCOPE", "session").replace("PARTIES", "1"))
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=1)
