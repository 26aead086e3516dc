"""The agent-eval command."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from pytest_agent_eval.cli import main

from .conftest import Project


def test_init_writes_a_suite_that_runs_as_it_is(project: Project) -> None:
    result = project.pytester.run(sys.executable, "-m", "pytest_agent_eval", "init", "evals")
    assert result.ret == 0
    run = project.subprocess("evals/eval.yaml")
    run.assert_outcomes(passed=2)


def test_init_overwrites_nothing(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("evals/eval.yaml", "mine")
    assert main(["init", str(project.path / "evals")]) == 2
    assert "exists" in capsys.readouterr().err
    assert (project.path / "evals/eval.yaml").read_text() == "mine"
    assert len(list((project.path / "evals").iterdir())) == 1


def test_schema_is_valid_and_checks_the_starter(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    assert main(["schema", "-o", str(project.path / "schema.json")]) == 0
    assert json.loads((project.path / "schema.json").read_text()) == schema


def test_usage_and_files_that_cannot_be_written(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2
    assert "init" in capsys.readouterr().err
    assert main(["schema", "-o", str(project.path / "no" / "where.json")]) == 2
    assert "where.json" in capsys.readouterr().err


PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_every_option_of_pytest_is_on_the_page(project: Project) -> None:
    said = project.subprocess("--help").stdout.str()
    page = PAGE.read_text(encoding="utf-8")
    options = set(re.findall(r"^  (--(?:no-)?agent-eval[a-z-]*)", said, re.MULTILINE))
    values = set(re.findall(r"^  (agent_eval[a-z_]*) \(", said, re.MULTILINE))
    assert "--agent-eval-dask" in options
    assert "agent_eval_files" in values
    assert options == set(re.findall(r"^\| `(--[a-z-]+)", page, re.MULTILINE)) - OF_AGENT_EVAL
    assert values == set(re.findall(r"^\| `(agent_eval[a-z_]*)`", page, re.MULTILINE))


OF_AGENT_EVAL = {"--runs", "--json", "--files", "--trial", "--reveal"}


@pytest.mark.parametrize("command", ["", "schema", "init", "runs", "show"])
def test_every_command_and_its_options_are_on_the_page(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"] if command else ["--help"])
    said = capsys.readouterr().out
    page = PAGE.read_text(encoding="utf-8").partition("\n## agent-eval\n")[2]
    commands = set(re.findall(r"^    ([a-z]+) ", said, re.MULTILINE)) if not command else {command}
    assert commands
    assert all(f"| `agent-eval {name}" in page for name in commands)
    options = set(re.findall(r"^  (--?[a-z-]+)", said, re.MULTILINE)) - {"-h"}
    assert {option for option in options if not re.search(rf"`[^`]*{option}\b", page)} == set()
