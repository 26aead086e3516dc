"""Agents in a sandbox, in real sessions."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pytest_agent_eval.runners.sandbox import find_bubblewrap
from tests.plugin.conftest import Project

SUITE = """\
name: kept-apart
dataset: {{path: cases}}
runner:
  type: cli
  command: ["bash", "{{config_dir}}/agent.sh", "{port}"]
  sandbox: {sandbox}
  settings: {{network: {network}}}
judges:
  - name: found
    check: |
      return True, outputs['stdout']
"""

AGENT = """\
for path in {suite}/cases/case-001/annotations.yaml {suite}/eval.yaml; do
  cat "$path" 2> /dev/null && echo READ || echo refused
done
echo x 2> /dev/null > {suite}/written && echo WROTE || echo refused
(echo > /dev/tcp/127.0.0.1/$1) 2> /dev/null && echo CONNECTED || echo refused
echo done > output/answer.txt
"""


def _project(project: Project, sandbox: str, *, network: str = "false", port: int = 9) -> None:
    project.suite(SUITE.format(sandbox=sandbox, network=network, port=port), name="evals/eval.yaml")
    project.write("evals/agent.sh", AGENT.format(suite=project.path / "evals"))
    project.case(
        "case-001", {"message": "x"}, {"why": "nobody may read this"}, dataset="evals/cases"
    )


def _needs_bubblewrap() -> None:
    found = find_bubblewrap()
    if found.problem:
        pytest.skip(found.problem)


@pytest.mark.parametrize("network", ["false", "true"])
def test_what_an_agent_in_a_sandbox_cannot_do(project: Project, network: str) -> None:
    _needs_bubblewrap()
    with socket.create_server(("127.0.0.1", 0)) as server:
        _project(project, "bubblewrap", network=network, port=server.getsockname()[1])
        result = project.subprocess("--agent-eval", "-rA", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*, sandbox: bubblewrap*"])
    record = project.latest / project.results()["case-001"].record
    said = (record / "stdout.log").read_text()
    assert "READ" not in said
    assert "WROTE" not in said
    assert ("CONNECTED" in said) == (network == "true")
    assert (record / "files/output/answer.txt").read_text() == "done\n"
    assert not (project.path / "evals/written").exists()


def test_without_bubblewrap_the_suite_fails_with_the_reason(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("bash", "sh", "cat"):
        found = next(
            Path(place, name)
            for place in os.environ["PATH"].split(os.pathsep)
            if Path(place, name).exists()
        )
        (tmp_path / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    _project(project, "bubblewrap")
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*bwrap*not installed*"])
    _project(project, "auto")
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*sandbox: none*"])
