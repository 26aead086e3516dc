"""Several trials of a case, pass rules, retries, budgets and variants, as a user sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from .conftest import Project

SUITE = """\
name: flaky
dataset: {{path: cases}}
runner: {{type: python, function: "agent:run"}}
execution: {{trials: {trials}, pass: {rule}, parallelism: {parallelism}}}
judges:
  - name: good
    check: return outputs['final_message'] == 'good', outputs['final_message']
"""

AGENT = """\
import collections
import threading

from pytest_agent_eval import Execution, Usage

lock = threading.Lock()
calls = collections.Counter()

def run(task):
    name = task.input["message"]
    with lock:
        calls[name] += 1
        number = calls[name]
    good = number <= task.input["good"]
    return Execution(output="good" if good else "bad", usage=Usage(cost_usd=0.5))
"""
"""Its first ``good`` trials of a case are good."""


def flaky(
    project: Project,
    good: dict[str, int],
    *,
    trials: int = 4,
    rule: str = "all",
    parallelism: int = 2,
    rest: str = "",
) -> None:
    project.suite(SUITE.format(trials=trials, rule=rule, parallelism=parallelism) + rest)
    project.write("agent.py", AGENT)
    for name, count in good.items():
        project.case(name, {"message": name, "good": count})


GOOD = {"always": 4, "mostly": 3, "half": 2, "once": 1, "never": 0}


@pytest.mark.parametrize(
    ("rule", "passing"),
    [
        ("all", {"always"}),
        ("majority", {"always", "mostly"}),
        ("any", {"always", "mostly", "half", "once"}),
        ("rate:0.5", {"always", "mostly", "half"}),
        ("rate:0.75", {"always", "mostly"}),
    ],
)
def test_the_rule_makes_one_outcome_of_several_trials(
    project: Project, rule: str, passing: set[str]
) -> None:
    flaky(project, GOOD, rule=rule)
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=len(passing), failed=5 - len(passing))
    cases = project.summary()["cases"]
    assert {name for name, case in cases.items() if case["status"] == "passed"} == passing
    assert sorted(cases["mostly"]["trials"]) == ["failed", "passed", "passed", "passed"]


@pytest.mark.parametrize("parallelism", [1, 8])
def test_the_summary_says_what_trials_are_worth(project: Project, parallelism: int) -> None:
    flaky(project, GOOD, parallelism=parallelism, rest="thresholds: {good: {min_pass_rate: 0.4}}\n")
    result = project.run("--agent-eval")
    judge = project.summary()["judges"]["good"]
    assert judge["pass_rate"] == pytest.approx((1 + 0.75 + 0.5 + 0.25 + 0) / 5)
    assert judge["scored_cases"] == 5, "trials are not cases"
    assert judge["pass_at_k"] == pytest.approx(4 / 5), "one of four passes"
    assert judge["pass_hat_k"] == pytest.approx(1 / 5), "all four pass"
    assert judge["flaky_cases"] == 3
    result.stdout.fnmatch_lines(["*pass@4*", "GATE good min_pass_rate >= 0.4: 0.50 *passed"])
    usage = project.summary()["usage"]
    assert (usage["trials"], usage["cost_usd"]) == (20, 10.0)
    for trial in range(1, 5):
        assert (project.latest / "cases" / "half" / str(trial) / "record.json").is_file()
    lines = (project.latest / "results.jsonl").read_text().splitlines()
    assert len(lines) == 20


def test_each_trial_has_a_workspace_of_its_own(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: cli, command: [sh, -c, "ls; touch mark; echo done"]}
        execution: {trials: 3, parallelism: 3}
        judges: [{name: fresh, check: "return 'mark' not in outputs['stdout']"}]
        """
    )
    project.cases(2)
    project.run("--agent-eval").assert_outcomes(passed=2)


def test_the_failure_block_says_how_many_trials_passed(project: Project) -> None:
    flaky(project, {"mostly": 3})
    result = project.run("--agent-eval")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*mostly*3 of 4 trials passed*"])


# -- retries ---------------------------------------------------------------------------------

UNRELIABLE = """\
import collections
import threading

from pytest_agent_eval import Execution, Usage

lock = threading.Lock()
calls = collections.Counter()

def run(task):
    name = task.input["message"]
    with lock:
        calls[name] += 1
        number = calls[name]
    if number <= task.input["fails"]:
        return Execution(
            exit_code=None, failure="infrastructure", error="the provider is down",
            usage=Usage(cost_usd=0.25),
        )
    return Execution(output="good", usage=Usage(cost_usd=0.25))
"""


def test_what_the_infrastructure_lost_is_tried_again_and_every_attempt_is_paid(
    project: Project,
) -> None:
    text = SUITE.format(trials=1, rule="all", parallelism=4)
    project.suite(text.replace("trials: 1", "trials: 1, retries: 1"))
    project.write("agent.py", UNRELIABLE)
    for name, fails in {"fine": 0, "shaky": 1, "down": 9}.items():
        project.case(name, {"message": name, "fails": fails})
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=2, errors=1)
    stored = project.results()
    assert stored["shaky"].notes == ("attempt 1 failed: the provider is down",)
    assert stored["shaky"].record == "cases/shaky/1.2"
    assert {name: one.usage.cost_usd for name, one in stored.items()} == {
        "fine": 0.25,
        "shaky": 0.5,
        "down": 0.5,
    }
    assert project.summary()["usage"]["cost_usd"] == 1.25


@pytest.mark.parametrize(
    ("runner", "said"),
    [
        ('{type: python, function: "needs:run"}', "no module 'not_installed'"),
        ('{type: python, function: "needs_not:run"}', "cannot be called"),
        ('{type: python, function: "fixture:nobody"}', "no fixture 'nobody'"),
        ("{type: cli, command: no-such-program-here}", "was not found"),
        ("{type: cli, command: ./agent.sh}", "is not executable"),
        ("{type: cli, command: ./agent.sh, settings: {project_files: [x]}}", "does not exist in"),
    ],
)
def test_what_would_be_the_same_again_is_not_tried_again(
    project: Project, runner: str, said: str
) -> None:
    project.suite(
        f"dataset: {{path: cases}}\nrunner: {runner}\nexecution: {{retries: 2}}\n"
        "judges: [{name: done, check: return True}]\n"
    )
    project.write("needs.py", "import not_installed\n")
    project.write("needs_not.py", "run = 3\n")
    project.write("agent.sh", "echo done\n")
    project.cases(1)
    project.run("--agent-eval").assert_outcomes(errors=1)
    result = project.results()["case-001"]
    assert said in result.reason
    assert result.lasting
    assert result.notes == ()  # would name each attempt
    assert result.record in ("", "cases/case-001/1")


# -- the budget of a session -------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_no_trial_starts_once_the_budget_is_spent(
    project: Project, workers: tuple[str, ...]
) -> None:
    flaky(
        project,
        {f"case-{number:02d}": 9 for number in range(12)},
        trials=1,
        parallelism=1,
        rest="thresholds: {good: {min_pass_rate: 0.9}}\n",
    )
    run = project.subprocess if workers else project.run
    result = run("--agent-eval", "--agent-eval-max-cost", "2", *workers)
    assert result.ret == 0, "what was not run has not failed"
    outcomes = result.parseoutcomes()
    ran = outcomes["passed"] + outcomes.get("tolerated", 0)
    # What is at work ends, and another may have started while the last one was judged.
    assert 4 <= ran <= 4 + 2 * (2 if workers else 1)
    assert outcomes["skipped"] == 12 - ran
    summary = project.summary()
    assert summary["usage"]["cost_usd"] == 0.5 * ran
    assert summary["complete"] is False
    skipped = Counter(result.reason for result in project.results().values() if result.reason)
    assert all("the session's budget of $2 is spent" in reason for reason in skipped)
    (gate,) = summary["gates"]
    assert gate["outcome"] == "not decided"
    incomplete = f"incomplete: {ran} of 12 cases have a result, the session's budget is spent"
    assert gate["reason"] == incomplete
    said = [
        f"GATE good min_pass_rate >= 0.9: not decided ({incomplete})",
        f"incomplete: {12 - ran} cases were not run because the session's budget is spent; go on*",
    ]
    result.stdout.fnmatch_lines(said)
    assert "go on with --agent-eval-resume" in " ".join(result.stdout.str().split())
    shown = stored(project, "show")
    pytest.LineMatcher(shown.splitlines()).fnmatch_lines(
        [f"*{ran} passed, {12 - ran} skipped", *said, "skipped  case-* not run: the session's *"]
    )
    went_on = f"go on with --agent-eval-resume={project.latest.name}"
    assert went_on in " ".join(shown.split()), "it may not be the latest any more"
    assert "state         incomplete, exit status 0\n" in shown
    assert shown.count("not run: the session's budget of $2 is spent") == 12 - ran
    assert f"{12 - ran} skipped" in stored(project, "runs")
    assert " incomplete " in stored(project, "runs")
    assert not list(project.latest.glob("spent-*"))
    again = project.run("--agent-eval", f"--agent-eval-resume={project.latest.name}")
    again.assert_outcomes(passed=12)
    assert project.summary()["usage"]["cost_usd"] == 6.0


def test_a_case_whose_last_trials_were_left_out_has_not_passed(project: Project) -> None:
    flaky(
        project,
        {"one": 9, "two": 9},
        trials=4,
        parallelism=1,
        rest="thresholds: {good: {min_pass_rate: 0.9}}\n",
    )
    result = project.run("--agent-eval", "--agent-eval-max-cost", "0.5", "-rs")
    assert result.ret == 0
    result.assert_outcomes(skipped=2)
    summary = project.summary()
    assert summary["complete"] is False
    assert sum(summary["coverage"]["left_out"].values()) == 2
    assert summary["gates"][0]["outcome"] == "not decided"
    result.stdout.fnmatch_lines(["incomplete: 2 cases were not run, or not to the end, because *"])
    assert "2 skipped" in stored(project, "show")
    again = project.run("--agent-eval", "--agent-eval-resume")
    again.assert_outcomes(passed=2)
    assert "incomplete" not in again.stdout.str() + stored(project, "show")
    assert "complete " in stored(project, "runs")


def test_a_budget_of_nothing_starts_nothing(project: Project) -> None:
    flaky(project, {"one": 9, "two": 9}, trials=2)
    result = project.run("--agent-eval", "--agent-eval-max-cost", "0")
    result.assert_outcomes(skipped=2)
    assert project.summary()["usage"]["cost_usd"] in (None, 0)


# -- variants --------------------------------------------------------------------------------

VARIANTS = """\
name: two models
dataset: {path: cases}
runner: {type: cli, command: "echo {model} {mood}"}
models: {skill: base}
judges:
  - name: model
    check: return outputs['stdout'].split()[0] == outputs['model'], outputs['stdout']
variants:
  fast: {models: {skill: fast}, values: {mood: hasty}}
  slow: {models: {skill: slow}, values: {mood: calm}, execution: {trials: 2}}
"""


@pytest.mark.parametrize("parallelism", ["1", "6"])
def test_every_case_runs_in_every_variant(project: Project, parallelism: str) -> None:
    project.suite(VARIANTS)
    project.cases(3)
    result = project.run("--agent-eval", "-v", "--agent-eval-parallelism", parallelism)
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(
        [
            f"eval.yaml::case-{number:03d}[[]{variant}[]] PASSED*"
            for number in (1, 2, 3)
            for variant in ("fast", "slow")
        ]
    )
    summary = project.summary()
    assert set(summary["cases"]) == {
        f"case-{number:03d}[{variant}]" for number in (1, 2, 3) for variant in ("fast", "slow")
    }
    assert summary["usage"]["trials"] == 9
    log = project.latest / "cases" / "case-001[slow]" / "2" / "stdout.log"
    assert log.read_text() == "slow calm\n"


def test_one_variant_can_be_chosen(project: Project) -> None:
    project.suite(VARIANTS)
    project.cases(3)
    result = project.run("--agent-eval", "--agent-eval-variant", "fast")
    result.assert_outcomes(passed=3)
    assert set(project.summary()["cases"]) == {f"case-{n:03d}[fast]" for n in (1, 2, 3)}
    named = project.run("eval.yaml::case-002[slow]")
    named.assert_outcomes(passed=1)
    wrong = project.run("--agent-eval", "--agent-eval-variant", "fats")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    assert "fast" in wrong.stderr.str() + wrong.stdout.str()


COMPARED = """\
name: two moods
dataset: {path: cases}
runner: {type: cli, command: "echo {mood}"}
judges:
  - name: calm
    check: return outputs['stdout'].strip() == 'calm' or outputs['case'] == 'case-001'
thresholds: {calm: {min_cases: 3, min_pass_rate: 0.9}}
variants:
  fast: {values: {mood: hasty}, execution: {trials: 2}}
  slow: {values: {mood: calm}, execution: {trials: 3}}
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_each_variant_has_rates_and_gates_of_its_own(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.suite(COMPARED)
    project.cases(3)
    run = project.subprocess if workers else project.run
    result = run("--agent-eval", "--junit-xml", "report.xml", *workers)
    assert result.ret == 1, "one of the two misses its gate"
    gates = [
        "GATE calm [fast] min_pass_rate >= 0.9: 0.33 *over 3 cases -> missed",
        "GATE calm [fast] min_cases >= 3: 3 cases -> passed",
        "GATE calm [slow] min_pass_rate >= 0.9: 1.00 *over 3 cases -> passed",
        "GATE calm [slow] min_cases >= 3: 3 cases -> passed",
    ]
    shown = [
        "two moods [fast]: 1 passed, 2 tolerated",
        "*dev *pass rate 0.50 * over 2 cases, *pass@2 0.50, *",
        *gates[:2],
        "two moods [slow]: 3 passed",
        "*dev *pass rate 1.00 * over 2 cases, *pass@3 1.00, *",
        *gates[2:],
    ]
    shown = [line.replace("[", "[[]") for line in shown]
    text = result.stdout.str()
    aggregated = text[text.index(" agent evaluation ") :].splitlines()
    pytest.LineMatcher(aggregated).fnmatch_lines(shown)
    if not workers:
        result.stdout.fnmatch_lines(["agent-eval: two moods: 3 cases (*), 2 variants"])
    summary = project.summary()
    assert "judges" not in summary, "no rate over all variants"
    fast, slow = summary["variants"]["fast"], summary["variants"]["slow"]
    rates = [variant["judges"]["calm"]["pass_rate"] for variant in (fast, slow)]
    assert rates == [pytest.approx(1 / 3), 1.0]
    assert fast["coverage"]["total"] == fast["coverage"]["finished"]
    assert sum(fast["coverage"]["total"].values()) == 3
    outcomes = [(gate["variant"], gate["key"], gate["outcome"]) for gate in summary["gates"]]
    assert outcomes == [
        ("fast", "min_pass_rate", "missed"),
        ("fast", "min_cases", "passed"),
        ("slow", "min_pass_rate", "passed"),
        ("slow", "min_cases", "passed"),
    ]
    assert summary["status"] == {"passed": 4, "tolerated": 2}
    assert summary["usage"]["trials"] == 15
    report = (project.path / "report.xml").read_text()
    assert report.count('name="agent_eval.variant" value="fast"') == 3
    assert report.count('name="agent_eval.status" value="tolerated"') == 2
    header = json.loads((project.latest / "run.json").read_text())
    assert header["exit_status"] == 1
    assert header["totals"]["gates_missed"] == 1
    assert [suite["variant"] for suite in header["suites"]] == ["fast", "slow"]
    again = stored(project, "show")
    pytest.LineMatcher(again.splitlines()).fnmatch_lines(shown)
    assert again.count("GATE") == 4
    assert stored(project, "runs").count("two moods") == 1


def stored(project: Project, *words: str) -> str:
    """What agent-eval prints, in a process of its own."""
    command = [sys.executable, "-m", "pytest_agent_eval", *words]
    environment = {**os.environ, "COLUMNS": "120"}
    done = subprocess.run(
        command, cwd=project.path, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_gate_of_a_variant_is_decided_where_that_variant_ran_completely(
    project: Project,
) -> None:
    project.suite(COMPARED)
    project.cases(3)
    result = project.run("--agent-eval", "-k", "slow or (fast and 001)")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "GATE calm [[]fast] min_pass_rate >= 0.9: not decided (1 of 3 cases selected)",
            "GATE calm [[]slow] min_pass_rate >= 0.9: 1.00 * -> passed",
        ]
    )
    one = project.run("--agent-eval", "--agent-eval-variant", "slow")
    assert one.ret == 0
    assert "fast" not in one.stdout.str()
    assert list(project.summary()["variants"]) == ["slow"]


def test_a_variant_may_have_thresholds_of_its_own(project: Project) -> None:
    project.suite(COMPARED.replace("trials: 2}", "trials: 2}, thresholds: {calm: {min_cases: 4}}"))
    project.cases(3)
    result = project.run("--agent-eval")
    result.stdout.fnmatch_lines(
        [
            "GATE calm [[]fast] min_cases >= 4: 3 cases -> missed",
            "GATE calm [[]slow] min_cases >= 3: 3 cases -> passed",
        ]
    )
