"""What is said when the run cannot be closed as it should."""

from __future__ import annotations

import pytest

from .conftest import ECHO, Project


@pytest.mark.parametrize("name", ["summary.yaml", "run.json"])
def test_a_run_that_cannot_be_closed_is_no_green_run(project: Project, name: str) -> None:
    project.suite(
        ECHO
        + f"""\
  - name: in the way
    check: |
      from pathlib import Path
      run = Path(outputs['case_dir']).parents[1] / '.agent-eval' / 'runs' / 'latest'
      (run / '{name}').unlink(missing_ok=True)
      (run / '{name}' / 'x').mkdir(parents=True, exist_ok=True)
      return True
"""
    )
    project.cases(1)
    result = project.run("--agent-eval")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*results cannot be stored here*"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert len(project.results()) == 1


def test_suites_of_one_name_are_told_apart_by_their_files(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    from pytest_agent_eval.cli import main

    project.suite(ECHO)
    project.suite(ECHO, "more/eval.yaml")
    project.suite(ECHO.replace("name: echo", "name: alone"), "alone/eval.yaml")
    for dataset in ("cases", "more/cases", "alone/cases"):
        project.case("case-001", dataset=dataset)
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines_random(
        [
            "agent-eval: echo (eval.yaml): 1 case *",
            "agent-eval: echo (more/eval.yaml): 1 case *",
            "agent-eval: alone: 1 case *",
            "echo (eval.yaml): 1 passed",
            "echo (more/eval.yaml): 1 passed",
            "alone: 1 passed",
        ]
    )
    assert main(["show", "--runs", str(project.path / ".agent-eval/runs")]) == 0
    shown = capsys.readouterr().out.splitlines()
    for line in ("echo (eval.yaml): 1 passed", "echo (more/eval.yaml): 1 passed"):
        assert line in shown
    assert any(line.split() == ["passed", "more/eval.yaml::case-001"] for line in shown)
