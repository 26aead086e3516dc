from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.conftest import Project

SUITE = """\
name: count
dataset: {{path: cases}}
runner: {{type: cli, command: ["sh", "-c", "echo x >> {calls}; echo {{message}}; exit {exit}"]}}
judges:
  - name: says
    check: |
      return {check}
  - name: length
    check: |
      return float(len(outputs['stdout']))
    feedback_type: float
    score_range: [0, 100]
"""


class Counting:
    """A suite whose agent leaves a line in a file each time it is called."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.calls = project.path / "calls"
        self.suite()
        project.cases(4)

    def suite(self, *, check: str = "True, 'it did'", exit: int = 0, more: str = "") -> None:
        text = SUITE.format(calls=self.calls, check=check, exit=exit)
        self.project.suite(text + more)

    def count(self) -> int:
        return len(self.calls.read_text().split()) if self.calls.exists() else 0

    def lines(self, run: Path) -> list[dict[str, object]]:
        return [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]


@pytest.fixture
def counting(project: Project) -> Counting:
    return Counting(project)


@pytest.mark.parametrize("workers", [(), ("-n", "3")])
def test_what_is_stored_is_not_carried_out_again(
    counting: Counting, workers: tuple[str, ...]
) -> None:
    project = counting.project
    assert project.subprocess("--agent-eval", *workers).ret == 0
    assert counting.count() == 4
    before = project.summary()
    result = project.subprocess("--agent-eval", "--agent-eval-resume", *workers)
    assert result.ret == 0
    result.assert_outcomes(passed=4)
    assert counting.count() == 4
    assert len(project.runs) == 1
    after = project.summary()
    assert after["judges"] == before["judges"]
    assert after["per_case"] == before["per_case"]
    assert len(counting.lines(project.latest)) == 4


def test_a_stopped_run_is_completed(counting: Counting) -> None:
    project = counting.project
    counting.suite(check="outputs['case'] != 'case-002', 'no'")
    project.run("--agent-eval", "-x", "--agent-eval-parallelism", "1")
    assert counting.count() == 2
    result = project.run("--agent-eval", "--agent-eval-resume")
    result.assert_outcomes(passed=3, failed=1)
    assert counting.count() == 4
    assert project.summary()["complete"] is True


def test_only_a_judge_that_changed_is_asked_again(counting: Counting) -> None:
    project = counting.project
    project.run("--agent-eval")
    counting.suite(check="False, 'changed its mind'")
    result = project.run("--agent-eval", "--agent-eval-resume")
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(["*trials 4 judged again*"])
    assert counting.count() == 4
    stored = project.results()["case-001"]
    assert stored.rescored
    assert [verdict.value for verdict in stored.verdicts] == [False, 9.0]
    assert project.summary()["usage"]["trials"] == 4


def test_a_case_that_changed_is_carried_out_again(counting: Counting) -> None:
    project = counting.project
    project.run("--agent-eval")
    project.case("case-002", {"message": "another one"})
    result = project.run("--agent-eval", "--agent-eval-resume")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*trials 3 kept*"])
    assert counting.count() == 5
    assert project.results()["case-002"].verdicts[1].value == 12.0
    assert project.results()["case-002"].record == "cases/case-002/1.2"


def test_another_command_is_another_execution(counting: Counting) -> None:
    project = counting.project
    project.run("--agent-eval")
    counting.suite(exit=3)
    result = project.run("--agent-eval", "--agent-eval-resume")
    result.assert_outcomes(failed=4)
    assert counting.count() == 8


def test_a_threshold_changes_the_outcome_and_asks_nobody(counting: Counting) -> None:
    project = counting.project
    counting.suite(check="False, 'no'")
    project.run("--agent-eval").assert_outcomes(failed=4)
    counting.suite(check="False, 'no'", more="thresholds: {says: {min_pass_rate: 0}}\n")
    result = project.run("--agent-eval", "--agent-eval-resume")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*4 tolerated*"])
    assert counting.count() == 4


def test_scoring_again_runs_no_agent_and_makes_a_run_of_its_own(counting: Counting) -> None:
    project = counting.project
    project.run("--agent-eval")
    first = project.latest
    counting.suite(check="'case-00' in outputs['stdout'], 'looked'", exit=1)
    project.case("case-003", {"message": "case-003"}, {"note": "the key was wrong"})
    result = project.run("--agent-eval", "--agent-eval-rescore")
    result.assert_outcomes(passed=4)
    assert counting.count() == 4
    assert project.latest != first
    stored = project.results()
    assert stored["case-001"].record == f"../{first.name}/cases/case-001/1"
    assert any("has changed" in note for note in stored["case-003"].notes)
    header = json.loads((project.latest / "run.json").read_text())
    assert header["rescored_from"] == first.name


def test_scoring_again_what_was_never_carried_out(counting: Counting) -> None:
    project = counting.project
    project.run("--agent-eval", "--agent-eval-limit", "1")
    result = project.run("--agent-eval", "--agent-eval-rescore", "-rs")
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] + outcomes["skipped"] == 4
    result.stdout.fnmatch_lines(["*nothing to judge in *: no execution of it is stored*"])
    assert result.ret == 0


@pytest.mark.parametrize("option", ["resume", "rescore"])
def test_a_run_that_is_not_there(counting: Counting, option: str) -> None:
    project = counting.project
    result = project.run("--agent-eval", f"--agent-eval-{option}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --agent-eval-{option}: no run is stored in *"])
    project.run("--agent-eval")
    result = project.run("--agent-eval", f"--agent-eval-{option}", "eval.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*paths before it*"])


def test_both_at_once_is_refused(counting: Counting) -> None:
    result = counting.project.run("--agent-eval-resume", "--agent-eval-rescore")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
