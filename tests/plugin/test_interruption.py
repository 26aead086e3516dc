"""Sessions that are ended in the middle: by -x, by Ctrl-C, by a signal, by kill -9."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_agent_eval.runs.reader import read_results

from .conftest import Project
from .live import Live, until

KILLS = int(os.environ.get("AGENT_EVAL_TEST_KILLS", "3"))
"""Moments at which a run is killed; fifty take some minutes."""

AT_ONCE = 32

SLEEPING = """\
dataset: {{path: cases}}
runner: {{type: cli, command: [sh, -c, "touch {agents}/$$; {work}"]}}
execution: {{parallelism: {parallelism}}}
judges: [{{name: fine, check: "return True"}}]
"""
"""Says that it is there. One case ends at once, the others would sleep for minutes."""

QUICK = "[ '{message}' = case-001 ] && echo done || sleep 300"
DEFIANT = (
    "trap 'touch {config_dir}/asked/$$' TERM; "
    "[ '{message}' = case-001 ] && echo done && exit; while :; do sleep 60; done"
)
STUBBORN = "trap '' TERM INT HUP; [ '{message}' = case-001 ] && echo done || sleep 300 & wait"


@pytest.fixture
def live(project: Project) -> Iterator[Callable[..., Live]]:
    made: list[Live] = []

    def start(*arguments: str) -> Live:
        made.append(Live(project, *arguments))
        return made[-1]

    yield start
    for one in made:
        one.close()


Start = Callable[..., Live]


def sleeping(project: Project, *, work: str = QUICK, parallelism: int = AT_ONCE) -> None:
    agents = project.path / "agents"
    project.suite(SLEEPING.format(agents=agents, work=work, parallelism=parallelism))
    project.cases(40)


def all_started(session: Live) -> bool:
    # The one that ended has made room for another.
    return session.started >= AT_ONCE + 1 and session.stored >= 1


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, False)],
    ids=["Ctrl-C", "SIGINT to pytest alone", "SIGTERM"],
)
def test_an_interruption_ends_every_agent_and_keeps_what_is_finished(
    project: Project, live: Start, number: int, group: bool
) -> None:
    sleeping(project)
    session = live("--agent-eval")
    until(lambda: all_started(session))
    assert len(session.left()) == AT_ONCE
    began = time.monotonic()
    session.signal(number, group=group)
    assert session.wait() == pytest.ExitCode.INTERRUPTED
    assert time.monotonic() - began < 7 * load()
    assert session.left() == []
    assert session.started == AT_ONCE + 1, "no other took their place"
    results = project.results()
    assert {name: result.status for name, result in results.items()} == {"case-001": "passed"}
    assert project.summary()["complete"] is False
    assert "incomplete" in session.printed
    assert "Traceback" not in session.printed


def load() -> float:
    """How much slower than usual this machine is: a limit in seconds is for one that is idle."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def test_agents_that_ignore_signals_are_killed(project: Project, live: Start) -> None:
    sleeping(project, work=STUBBORN)
    session = live("--agent-eval")
    until(lambda: all_started(session))
    session.signal(signal.SIGINT, group=True)
    assert session.wait() == pytest.ExitCode.INTERRUPTED
    assert session.left() == []
    assert set(project.results()) == {"case-001"}


def test_a_second_ctrl_c_loses_nothing_that_is_stored(project: Project, live: Start) -> None:
    sleeping(project, work=DEFIANT)
    asked = project.path / "asked"
    asked.mkdir()
    session = live("--agent-eval")
    until(lambda: all_started(session))
    session.signal(signal.SIGINT, group=True)
    until(lambda: len(os.listdir(asked)) == AT_ONCE)  # they do not want to, and pytest waits
    session.signal(signal.SIGINT, group=True)
    assert session.wait() == pytest.ExitCode.INTERRUPTED
    assert session.left() == []
    assert "Traceback" not in session.printed
    assert "stored in " in session.printed
    assert set(project.results()) == {"case-001"}


def test_trials_that_ended_ahead_of_pytest_are_stored_too(project: Project, live: Start) -> None:
    sleeping(project, work="[ '{message}' = case-001 ] && sleep 300 || echo done", parallelism=8)
    session = live("--agent-eval")
    until(lambda: session.stored == 39)
    session.signal(signal.SIGINT, group=True)
    assert session.wait() == pytest.ExitCode.INTERRUPTED
    assert session.left() == []
    assert set(project.results()) == {f"case-{number:03d}" for number in range(2, 41)}
    assert "39 more trials had ended ahead of pytest" in session.printed
    resumed = project.run("--agent-eval", "--agent-eval-resume", "-k", "not case-001")
    resumed.assert_outcomes(passed=39, deselected=1)
    assert session.started == 40, "none was carried out twice"


@pytest.mark.parametrize("group", [True, False], ids=["Ctrl-C", "SIGINT to pytest alone"])
def test_ctrl_c_reaches_the_agents_of_workers(project: Project, live: Start, group: bool) -> None:
    sleeping(project, parallelism=1)
    session = live("--agent-eval", "-n", "2")
    until(lambda: session.started >= 2 and session.printed.partition("[40 items]")[2].strip())
    session.signal(signal.SIGINT, group=group)
    assert session.wait() == pytest.ExitCode.INTERRUPTED
    until(lambda: session.left() == [])
    stored = read_results(project.latest)
    assert "case-001" in {result.case for result in stored.results}
    assert list(project.latest.glob("results-*")) == [], "the run is that of one process"
    header = json.loads((project.latest / "run.json").read_text())
    assert [suite["key"] for suite in header["suites"]] == ["eval.yaml"]
    assert header["totals"]["cases"] == {"passed": 1}
    assert "incomplete: the run ended before its last case" in session.printed
    assert "a worker still writes it" not in session.printed


def test_stopping_at_the_first_failure_ends_the_agents_that_are_ahead(
    project: Project, live: Start
) -> None:
    sleeping(
        project,
        work="until [ $(ls {config_dir}/agents | wc -l) -ge 6 ]; do sleep 0.01; done; "
        "[ '{message}' = case-001 ] && exit 3 || sleep 300",
        parallelism=6,
    )
    session = live("--agent-eval", "-x")
    assert session.wait() == pytest.ExitCode.TESTS_FAILED
    assert session.started == 6
    assert session.left() == []
    assert {name: result.status for name, result in project.results().items()} == {
        "case-001": "failed"
    }
    assert project.summary()["complete"] is False


# -- kill -9 -----------------------------------------------------------------------------------

COUNTED = """\
dataset: {{path: cases}}
runner:
  type: cli
  command: [sh, -c, "touch {agents}/$$; echo {{message}} >> {calls}; sleep 0.0{{nap}}; echo {{message}}"]
execution: {{parallelism: 4, trials: {trials}}}
judges:
  - name: odd
    check: "return outputs['input']['nap'] % 2 == 1, 'looked at the nap'"
  - name: length
    score_range: [0, 20]
    check: "return float(outputs['input']['nap'])"
thresholds: {{odd: {{min_pass_rate: 0.1}}, length: {{min_mean: 3}}}}
"""

CASES = 40


def counted(project: Project, *, trials: int = 1) -> Path:
    calls = project.path / "calls"
    agents = project.path / "agents"
    agents.mkdir(exist_ok=True)
    project.suite(COUNTED.format(calls=calls, agents=agents, trials=trials))
    for number in range(CASES):
        project.case(f"case-{number:03d}", {"message": f"case-{number:03d}", "nap": number % 10})
    return calls


def steady(summary: Any) -> Any:
    """A summary without what differs from run to run: its name, its times and how often the holdout
    half was looked at before.
    """
    if isinstance(summary, dict):
        return {
            key: steady(value)
            for key, value in summary.items()
            if key not in ("run_id", "duration_s", "judging_s", "record", "started")
            and "look" not in key
        }
    if isinstance(summary, list):
        return [steady(value) for value in summary]
    return summary


def test_a_run_that_is_killed_at_any_moment_can_be_completed(
    project: Project, live: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = counted(project)
    assert project.run("--agent-eval").ret == 0
    expected = steady(project.summary())
    runs = project.path / ".agent-eval" / "runs"
    moments = random.Random(20)
    rows = []
    for kill in range(KILLS):
        calls.write_text("")
        runs.rename(runs.parent / f"before-{kill}")
        session = live("--agent-eval", *(("-n", "2") if kill % 3 == 2 else ()))
        kill_at(session, moments.randrange(CASES), moments.uniform(0, 0.05))
        kept = Counter(result.case for result in read_results(project.latest).results)
        ran = Counter(calls.read_text().split())
        resumed = project.run("--agent-eval", "--agent-eval-resume")
        assert resumed.ret == 0
        after = Counter(calls.read_text().split())
        rows.append((kept.total(), ran.total(), after.total()))
        assert set(project.results()) == {f"case-{number:03d}" for number in range(CASES)}
        assert all(after[case] == ran[case] for case in kept), "a finished trial ran twice"
        assert all(after[case] == ran[case] + 1 for case in after if case not in kept)
        assert steady(project.summary()) == expected
        assert len(project.runs) == 1
        assert session.left() == []
    if "AGENT_EVAL_TEST_KILLS" in os.environ:
        with capsys.disabled():
            print(f"\n(results stored, agents started, agents in all): {rows}")  # noqa: T201


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's end")
def test_workers_end_their_agents_as_soon_as_their_controller_is_killed(
    project: Project, live: Start
) -> None:
    sleeping(
        project,
        work="trap 'kill -0 $PPID && touch {config_dir}/asked/$$; exit' TERM; "
        "[ '{message}' = case-001 ] && echo done && exit; sleep 300 & wait",
        parallelism=1,
    )
    asked = project.path / "asked"
    asked.mkdir()
    session = live("--agent-eval", "-n", "2", "--agent-eval-parallelism", "2")
    until(lambda: session.stored >= 1 and len(session.left()) == 4)
    session.signal(signal.SIGKILL)
    session.wait()
    until(lambda: session.left() == [])
    assert len(os.listdir(asked)) == 4, "their worker was there to end them"
    resumed = project.run("--agent-eval", "--agent-eval-resume", "-k", "case-001")
    resumed.assert_outcomes(passed=1, deselected=39)
    assert "trials 1 kept" in resumed.stdout.str()


@pytest.mark.parametrize("mode", ["auto", "never", "always"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_show_gives_the_true_reason_why_gates_are_not_decided(
    project: Project, live: Start, number: int, mode: str
) -> None:
    sleeping(project, parallelism=2)
    text = (project.path / "eval.yaml").read_text()
    project.suite(text + "thresholds: {fine: {min_pass_rate: 0.5}}\n")
    session = live("--agent-eval", "--agent-eval-gate", mode)
    until(lambda: session.stored >= 1 and len(session.left()) == 2)
    running = agent_eval(project, "show")
    session.signal(number, group=True)
    session.wait()
    until(lambda: session.left() == [])
    ended = agent_eval(project, "show")
    gate = "GATE fine min_pass_rate >= 0.5: "
    killed = number == signal.SIGKILL
    reasons = {
        "auto": ("1 of 40 cases have a result", "1 of 40 cases have a result"),
        "never": ("gates are switched off", "gates are switched off"),
        "always": (
            "the session has not ended",
            "the session did not end by itself" if killed else "",
        ),
    }
    while_it_ran, reason = reasons[mode]
    assert f"{gate}not decided ({while_it_ran})\n" in running
    assert f"{gate}not decided ({reason})\n" in ended or not reason
    assert reason or f"{gate}1.00 " in ended, "it was decided with what there was"
    assert "incomplete: the run ended before its last case" in ended
    assert "incomplete" not in running
    assert "  interrupted  " in agent_eval(project, "runs")


def agent_eval(project: Project, *words: str) -> str:
    """What agent-eval prints, in a process of its own."""
    command = [sys.executable, "-m", "pytest_agent_eval", *words]
    return subprocess.run(
        command, cwd=project.path, capture_output=True, text=True, check=True
    ).stdout


def kill_at(session: Live, stored: int, delay: float) -> None:
    """Kill pytest some seconds after so many results are stored, and wait for its agents."""
    until(lambda: session.stored >= stored or session.process.poll() is not None)
    until(lambda: session.project.runs)
    time.sleep(delay)  # the moment itself; nothing is expected to have happened by then
    if session.process.poll() is None:
        session.signal(signal.SIGKILL, group=True)
    session.wait()
    until(lambda: session.left() == [])


def test_a_torn_last_line_is_dropped_with_a_note(project: Project, live: Start) -> None:
    calls = counted(project)
    session = live("--agent-eval")
    kill_at(session, 5, 0)
    file = project.latest / "results.jsonl"
    whole, _, _ = file.read_bytes().rpartition(b"\n")
    file.write_bytes(whole[:-30])
    kept = whole.count(b"\n")
    before = len(calls.read_text().split())
    resumed = project.run("--agent-eval", "--agent-eval-resume")
    assert resumed.ret == 0
    assert f"trials {kept} kept" in resumed.stdout.str()
    assert len(project.results()) == CASES
    assert len(calls.read_text().split()) == before + CASES - kept
    assert yaml.safe_load((project.latest / "summary.yaml").read_text())["complete"] is True
