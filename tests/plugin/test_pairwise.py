"""Sessions that are compared with a stored run."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_agent_eval.cli import main
from tests.provider import Answer, Asked, Provider, provider, submit

from .conftest import Project

SUITE = """\
name: greetings
dataset: {path: cases}
runner: {type: python, function: "agent:run"}
models: {judge: openai/some-model}
judges:
  - {name: said, check: "return 'Hello' in outputs['final_message']"}
  - {name: pairwise, prompt: Which greeting is warmer?}
thresholds: {pairwise: {min_win_rate: 0.5}}
"""
AGENT = """\
def run(task):
    return "Hello " + "!" * {warmth}[task.input["message"]]
"""
NAMES = [f"case-{number:03d}" for number in range(1, 7)]


def warmer(asked: Asked) -> Answer:
    """Prefers what has more exclamation marks; of two that have none the first."""
    content = str(asked["messages"][1]["content"])
    a, b = content.split("Work A:")[1].split("Work B:")
    better = "A" if a.count("!") >= b.count("!") else "B"
    return submit(asked, better=better, rationale=f"{better} is warmer")


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    project.suite(SUITE)
    project.cases(6)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    with provider(warmer) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        yield server


def agent(project: Project, *warmth: int) -> None:
    project.write("agent.py", AGENT.format(warmth=dict(zip(NAMES, warmth, strict=True))))


def compared(project: Project) -> dict[str, Any]:
    """Value and rationale of each case's comparison in the latest run."""
    return {
        case: verdict
        for case, result in project.results().items()
        for verdict in result.verdicts
        if verdict.judge == "pairwise"
    }


def values(project: Project) -> list[Any]:
    return [verdict.value for _, verdict in sorted(compared(project).items())]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["here", "xdist"])
def test_a_run_is_compared_case_by_case(
    project: Project,
    server: Provider,
    workers: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = project.subprocess if workers else project.run
    agent(project, 1, 1, 1, 1, 1, 1)
    first = run("--agent-eval", *workers)
    first.assert_outcomes(passed=6)
    assert first.ret == 0
    said = flat(first.stdout.str())
    assert "pairwise: skipped, no run to compare with is named" in said
    assert "GATE pairwise min_win_rate >= 0.5: not decided (no --agent-eval-baseline RUN)" in said
    assert server.asked == []
    assert values(project) == [None] * 6
    before = project.latest.name

    agent(project, 2, 2, 2, 2, 0, 1)
    xml = project.path / "report.xml"
    options = ["--agent-eval", *workers, "--agent-eval-baseline", "latest", f"--junitxml={xml}"]
    second = run(*options)
    second.assert_outcomes(passed=6)
    assert second.ret == 0
    assert values(project) == [1, 1, 1, 1, -1, 0]
    said = flat(second.stdout.str())
    assert "GATE pairwise min_win_rate >= 0.5: 0.67 [0.30, 0.90] over 6 cases -> passed" in said
    assert len(server.asked) == 10  # the two that are the same need no model
    rationale = compared(project)["case-001"].rationale
    assert rationale == (
        f"win against {before}: as A better (A is warmer), as B better (B is warmer)"
    )
    assert compared(project)["case-001"].asked["calls"] == 2
    assert project.summary()["pairwise"]["run_b"] == before
    assert project.summary()["judges"]["pairwise"]["win_rate"] == pytest.approx(4 / 6)
    assert f"4 wins, 1 loss, 1 tie against {before}" in _property(xml, "agent_eval.pairwise.")
    assert main(["show", "--runs", str(project.path / ".agent-eval/runs")]) == 0
    shown = flat(capsys.readouterr().out)
    assert "pairwise min_win_rate >= 0.5: 0.67 [0.30, 0.90] over 6 cases -> passed" in shown
    assert f"against {before}" in shown

    agent(project, 0, 0, 0, 0, 2, 1)
    third = run("--agent-eval", *workers, "--agent-eval-baseline", before)
    third.assert_outcomes(passed=6)
    assert third.ret == 1
    assert "GATE pairwise min_win_rate >= 0.5: 0.17" in third.stdout.str()
    assert values(project) == [-1, -1, -1, -1, 1, 0]


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["here", "xdist"])
def test_a_baseline_that_is_none_is_a_usage_error(
    project: Project, server: Provider, workers: list[str]
) -> None:
    run = project.subprocess if workers else project.run
    agent(project, 1, 1, 1, 1, 1, 1)
    project.suite(SUITE.replace("name: greetings", "name: other"), "other/eval.yaml")
    project.case("case-001", dataset="other/cases")
    result = run("--agent-eval", *workers, "--agent-eval-baseline", "nosuch")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = flat(result.stdout.str() + result.stderr.str())
    assert "--agent-eval-baseline: no run named nosuch in " in said
    project.run("other/eval.yaml")
    result = run("eval.yaml", *workers, "--agent-eval-baseline", "latest")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = flat(result.stdout.str() + result.stderr.str())
    assert "has no result of eval.yaml; it is a run of other/eval.yaml" in said
    assert "Traceback" not in said
    assert len(project.runs) == 1


def test_resume_and_rescore_compare_with_what_is_named(project: Project, server: Provider) -> None:
    agent(project, 1, 1, 1, 1, 1, 1)
    project.run("--agent-eval", "-k", "not case-006")
    cold = project.latest.name
    agent(project, 3, 3, 3, 3, 3, 3)
    project.run("--agent-eval")
    hot = project.latest.name

    same = project.run("--agent-eval", "--agent-eval-resume", "--agent-eval-baseline", "latest")
    assert same.ret == pytest.ExitCode.USAGE_ERROR
    assert "the very executions that this session is about" in flat(same.stderr.str())
    assert len(project.summary()["cases"]) == 6, "the run was not touched"

    # The run was made without a baseline: with one, only this judge speaks again.
    resumed = project.run(
        "--agent-eval", f"--agent-eval-resume={hot}", "--agent-eval-baseline", cold
    )
    assert resumed.ret == 0
    assert values(project) == [1, 1, 1, 1, 1, None]
    assert compared(project)["case-006"].rationale == "not compared: no such case in the baseline"
    asked = len(server.asked)
    project.run("--agent-eval", f"--agent-eval-resume={hot}", "--agent-eval-baseline", cold)
    assert project.summary()["pairwise"]["wins_a"] == 5
    assert len(server.asked) == asked

    agent(project, 5, 5, 5, 5, 5, 5)
    project.run("--agent-eval")
    project.case("case-001", {"message": "case-001", "more": "words"})
    project.run("--agent-eval", f"--agent-eval-rescore={cold}", "--agent-eval-baseline", hot)
    assert values(project) == [None, -1, -1, -1, -1]
    assert "has changed since the baseline" in compared(project)["case-001"].rationale
    assert project.summary()["pairwise"]["wins_b"] == 4


def _property(xml: Any, start: str) -> str:
    found = [
        str(item.get("value"))
        for item in ElementTree.parse(xml).iter("property")
        if str(item.get("name")).startswith(start)
    ]
    assert len(found) == 1
    return found[0]
