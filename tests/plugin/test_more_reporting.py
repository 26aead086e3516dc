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
