"""Beside other plugins: pytest-xdist, pytest-randomly, pytest-rerunfailures, pytest-timeout."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
import yaml

from .conftest import Project
from .live import Live, until
from .test_interruption import steady

SUITE = """\
dataset: {{path: cases}}
runner: {{type: cli, command: [sh, -c, "echo {{message}} >> {calls}; {work}"]}}
execution: {{parallelism: 3}}
judges:
  - name: even
    check: return outputs['input']['n'] % 2 == 0, 'looked at n'
  - name: size
    score_range: [0, 20]
    check: return float(outputs['input']['n'])
thresholds: {{even: {{min_pass_rate: 0.2}}, size: {{min_mean: 2, max_error_rate: 0}}}}
"""


class Counted:
    """A suite whose agents note their case when they start."""

    def __init__(self, project: Project, *, cases: int = 12, work: str = "echo done") -> None:
        self.project = project
        self.file = project.path / "calls"
        self.file.touch()
        project.suite(SUITE.format(calls=self.file, work=work))
        for number in range(cases):
            project.case(f"case-{number:02d}", {"message": f"case-{number:02d}", "n": number})

    def session(self, *arguments: str) -> pytest.RunResult:
        """With every plugin that is installed."""
        pytester = self.project.pytester
        run = pytester.runpytest_subprocess if "-n" in arguments else pytester.runpytest_inprocess
        return run("-p", "no:cacheprovider", "-p", "no:anyio", "--agent-eval", *arguments)

    def take(self) -> Counter[str]:
        found = Counter(self.file.read_text().split())
        self.file.write_text("")
        return found


def once(count: int) -> Counter[str]:
    return Counter({f"case-{number:02d}": 1 for number in range(count)})


# -- pytest-xdist ------------------------------------------------------------------------------


def test_the_same_verdicts_aggregates_and_gates_however_it_is_run(project: Project) -> None:
    counted = Counted(project)
    ways: list[tuple[str, ...]] = [
        ("--agent-eval-parallelism", "1"),
        ("--agent-eval-parallelism", "32"),
        ("-n", "2", "--dist", "load"),
        ("-n", "2", "--dist", "loadfile"),
        ("-n", "2", "--dist", "loadscope", "--agent-eval-parallelism", "4"),
        ("-n", "4", "--dist", "worksteal"),
    ]
    seen = []
    for way in ways:
        result = counted.session("-p", "no:randomly", *way)
        assert result.ret == 0, way
        assert result.parseoutcomes() == {"passed": 6, "tolerated": 6}, way
        assert counted.take() == once(12), way
        summary = steady(project.summary())
        summary["cases"] = dict(sorted(summary["cases"].items()))
        summary["per_case"] = dict(sorted(summary["per_case"].items()))
        seen.append(summary)
        assert project.summary()["holdout"]["looks"] == len(seen)
        assert len(project.results()) == 12
        assert not list(project.latest.glob("results-*"))
    assert len(project.runs) == len(ways)
    for way, summary in zip(ways, seen, strict=True):
        assert summary == seen[0], way


def test_a_worker_runs_its_own_items_ahead(project: Project) -> None:
    """Two agents of one worker meet: pytest-xdist hands out at least two items at a time."""
    met = project.path / "met"
    met.mkdir()
    counted = Counted(
        project,
        work=f"touch {met}/$PPID-$$; n=0; until [ $(ls {met} | grep -c ^$PPID-) -ge 2 ] "
        "|| [ $n -ge 3000 ]; do n=$((n+1)); sleep 0.01; done; [ $n -lt 3000 ] && echo done",
    )
    result = counted.session("-n", "2", "--agent-eval-parallelism", "3", "--maxprocesses", "2")
    assert result.parseoutcomes() == {"passed": 6, "tolerated": 6}
    assert counted.take() == once(12)


@pytest.fixture
def live(project: Project) -> Iterator[Callable[..., Live]]:
    made: list[Live] = []

    def start(*arguments: str) -> Live:
        made.append(Live(project, *arguments))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_a_worker_that_is_killed_costs_only_what_it_was_at(
    project: Project, live: Callable[..., Live], parallelism: str
) -> None:
    slow = project.path / "slow"
    slow.touch()
    counted = Counted(
        project,
        work=f"if [ '{{message}}' = case-03 ] && ! [ -s {slow} ]; then echo $$ > {slow}; sleep 300; fi; echo done",
    )
    session = live("--agent-eval", "-n", "2", "--agent-eval-parallelism", parallelism)
    until(lambda: slow.read_text().endswith("\n") and session.stored >= 2)
    agent = psutil.Process(int(slow.read_text()))
    worker = agent.parent()
    assert worker is not None
    worker.kill()
    assert session.wait() == pytest.ExitCode.TESTS_FAILED
    assert "crashed while running" in session.printed
    results = project.results()
    assert len(results) >= 11
    ran = counted.take()
    assert set(ran) == set(once(12)), "the others took over the rest of its cases"
    assert sum(ran.values()) <= 12 + int(parallelism)
    until(lambda: not agent.is_running() or agent.status() == psutil.STATUS_ZOMBIE)
    summary = project.summary()
    assert summary["judges"]["size"]["scored_cases"] == len(summary["per_case"])
    # It may die between a case and its report, or between two reports: then none is missing.
    decided = "passed" if len(summary["per_case"]) == 12 else "not decided"
    assert {gate["outcome"] for gate in summary["gates"]} == {decided}


# -- pytest-randomly ---------------------------------------------------------------------------


def test_a_random_order_changes_no_verdict(project: Project) -> None:
    counted = Counted(project)
    counted.session("-p", "no:randomly")
    expected = project.summary()["per_case"]
    counted.take()
    orders = []
    for seed in ("1", "2"):
        result = counted.session("-v", "--randomly-seed", seed)
        assert counted.take() == once(12)
        orders.append([line.split()[0] for line in result.outlines if "::case-" in line])
        assert project.summary()["per_case"] == expected
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    workers = counted.session("-n", "2", "--randomly-seed", "3")
    assert workers.parseoutcomes() == {"passed": 6, "tolerated": 6}
    assert counted.take() == once(12)


# -- pytest-rerunfailures ----------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_reruns_are_attempts_of_one_case_and_each_is_paid_once(
    project: Project, workers: tuple[str, ...]
) -> None:
    calls = project.path / "calls"
    project.suite(
        f"""\
        dataset: {{path: cases}}
        runner:
          type: cli
          command: [sh, -c, "echo {{message}} >> {calls}; echo '{{\\"cost_usd\\": 0.25}}' > {{output_dir}}/metrics.json;
            echo attempt $(grep -c {{message}} {calls})"]
        judges:
          - name: third
            check: return outputs['case'] != 'case-001' or 'attempt 3' in outputs['stdout'], 'no'
        """
    )
    project.cases(3)
    result = project.pytester.runpytest_subprocess(
        *("-p", "no:cacheprovider", "-p", "no:randomly", "--agent-eval", "--reruns", "3", *workers)
    )
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["rerun"]) == (3, 2)
    assert result.ret == 0
    assert Counter(calls.read_text().split()) == {"case-001": 3, "case-002": 1, "case-003": 1}
    summary = project.summary()
    assert sorted(summary["cases"]) == ["case-001", "case-002", "case-003"]
    assert summary["usage"]["cost_usd"] == pytest.approx(0.25 * 5)
    assert summary["judges"]["third"]["pass_rate"] == 1.0
    stored = project.results()
    assert stored["case-001"].record == "cases/case-001/1.3"
    for attempt in ("1", "1.2", "1.3"):
        assert (project.latest / "cases" / "case-001" / attempt / "record.json").is_file()


# -- pytest-timeout ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_a_timeout_of_pytest_ends_the_wait_and_no_agent_is_left(
    project: Project, live: Callable[..., Live], method: str
) -> None:
    agents = project.path / "agents"
    agents.mkdir()
    Counted(
        project,
        cases=4,
        work=f"touch {agents}/$$; if [ '{{message}}' = case-02 ]; then sleep 300; fi; echo done",
    )
    session = live("-p", "timeout", "--agent-eval", "--timeout", "4", "--timeout-method", method)
    status = session.wait()
    assert status == 1
    assert "Timeout" in session.printed
    until(lambda: session.left() == [])
    results = project.results()
    assert {"case-00", "case-01"} <= set(results)
    if method == "signal":  # the session goes on
        assert set(results) >= {"case-00", "case-01", "case-03"}
        summary: Any = yaml.safe_load((project.latest / "summary.yaml").read_text())
        assert "case-03" in summary["cases"]
    assert os.path.exists(project.latest / "run.json")
