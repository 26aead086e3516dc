"""The texts of suites.json in real sessions: what runs, what is refused, and what is said."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.provider import provider, submit

ROWS = json.loads(Path(__file__).with_name("suites.json").read_text(encoding="utf-8"))
SUITES = {row["name"]: row for row in ROWS["valid"] if not row.get("not_a_suite")}
FOREIGN = {row["name"]: row for row in ROWS["valid"] if row.get("not_a_suite")}
INVALID = {row["name"]: row for row in ROWS["invalid"]}


def write(project: Project, row: dict[str, Any]) -> None:
    project.suite(row["yaml"])
    dataset = re.search(r"path: ([\w./]*cases)", row["yaml"])
    folder = dataset.group(1) if dataset else "cases"
    for number in (1, 2):
        project.case(f"case-{number}", {"prompt": "Find it"}, dataset=folder)


def explained(result: pytest.RunResult) -> None:
    """A user's mistake is told in the user's terms."""
    said = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in said
    assert "pytest_agent_eval/" not in said
    assert "INTERNALERROR" not in said
    assert "errors.pydantic.dev" not in said
    assert "[type=" not in said


def test_the_smallest_suite_runs_and_passes(project: Project) -> None:
    write(project, SUITES["smallest"])
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.OK
    for stored in project.results().values():
        assert [verdict.judge for verdict in stored.verdicts] == ["copied"]
        assert stored.verdicts[0].rationale == "looked for input.yaml"
    assert project.summary()["judges"]["copied"]["pass_rate"] == 1.0


def test_a_suite_with_seeds_for_generation_runs_the_cases_it_has(project: Project) -> None:
    write(project, SUITES["synthetic generation"])
    # Its only judge is for cases of another category.
    project.run("--agent-eval").assert_outcomes(skipped=2)
    for number in (1, 2):
        project.write(f"cases/case-{number}/annotations.yaml", "category: navigation\n")
    project.run("--agent-eval").assert_outcomes(passed=2)
    for stored in project.results().values():
        assert stored.verdicts[0].rationale


def test_a_numeric_judge_without_a_scale_is_told_one(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, SUITES["numeric LLM judge without a scale"])
    project.write("app.py", "def run(task):\n    return 'Good morning.'\n")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("CI", raising=False)
    with provider(lambda asked: submit(asked, score=9, rationale="very")) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        result = project.run("--agent-eval")
    result.assert_outcomes(passed=2)
    explained(result)
    assert "no score_range: the model is told [1, 5]" in result.stdout.str()
    for stored in project.results().values():
        assert [verdict.value for verdict in stored.verdicts] == [9], "told, and not enforced"
    assert "From 1 to 5." in str(server.asked[0])


def test_a_suite_that_needs_an_extra_says_so_before_it_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)  # as where it is not installed
    write(project, SUITES["batch, old place of skill"])
    result = project.run("--agent-eval")
    explained(result)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    said = re.findall(r"^eval\.yaml:\d+: (\S+: needs the extra .*)$", result.stdout.str(), re.M)
    assert said == ["mlflow: needs the extra mlflow: pip install 'pytest-agent-eval[mlflow]'"]
    assert not project.runs


@pytest.mark.parametrize("name", SUITES)
def test_every_valid_suite_is_listed_and_skipped_when_not_asked_for(
    project: Project, name: str
) -> None:
    write(project, SUITES[name])
    result = project.run("-rs")
    explained(result)
    result.assert_outcomes(skipped=2)
    assert result.ret == pytest.ExitCode.OK
    listed = project.run("--collect-only", "-q")
    assert [line for line in listed.outlines if "::" in line] == [
        "eval.yaml::case-1",
        "eval.yaml::case-2",
    ]
    assert not project.runs


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_changes_nothing_unless_it_is_named(project: Project, name: str) -> None:
    write(project, FOREIGN[name])
    for arguments in ((), ("--agent-eval",)):
        result = project.run(*arguments)
        explained(result)
        assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
        assert "eval.yaml" not in result.stdout.str()
    named = project.run("eval.yaml")
    explained(named)
    assert named.ret not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    named.stdout.fnmatch_lines(["*eval.yaml: not a suite: *"])


@pytest.mark.parametrize("asked", [True, False], ids=["asked", "not asked"])
@pytest.mark.parametrize("name", INVALID)
def test_every_problem_of_an_invalid_suite_is_shown(
    project: Project, name: str, asked: bool
) -> None:
    row = INVALID[name]
    write(project, row)
    project.write("test_ordinary.py", "def test_it():\n    pass\n")
    result = project.run(*(["--agent-eval"] if asked else []))
    explained(result)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    lines = [line for line in result.outlines if re.match(r"eval\.yaml:\d+: ", line)]
    assert len(lines) == len(row["problems"]), lines
    for problem in row["problems"]:
        start = f"eval.yaml:{problem.get('line', '')}"
        assert [
            line
            for line in lines
            if line.startswith(start)
            and f": {problem.get('path', '')}" in line
            and all(word in line for word in problem.get("says", []))
        ], problem
    assert not project.runs


def test_many_invalid_suites_hide_neither_each_other_nor_the_good_one(project: Project) -> None:
    for number, row in enumerate(INVALID.values()):
        project.suite(row["yaml"], name=f"suite-{number}/eval.yaml")
        project.case("case-1", dataset=f"suite-{number}/cases")
    project.suite(SUITES["smallest"]["yaml"], name="good/eval.yaml")
    project.case("case-1", dataset="good/cases")
    result = project.run("--agent-eval", "--continue-on-collection-errors")
    explained(result)
    result.assert_outcomes(errors=len(INVALID), passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    for number, row in enumerate(INVALID.values()):
        shown = [
            line for line in result.outlines if re.match(rf"suite-{number}/eval\.yaml:\d+: ", line)
        ]
        assert len(shown) == len(row["problems"])
