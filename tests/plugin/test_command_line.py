"""The agent-eval command."""

from __future__ import annotations

import json
import sys

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
