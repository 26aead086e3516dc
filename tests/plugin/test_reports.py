"""Reports of real sessions: files, GitHub Actions, a project's own handler."""

from __future__ import annotations

import csv
import json

import pytest

from pytest_agent_eval.cli import main
from tests.plugin.conftest import Project
from tests.unit.reports.html_page import Page

SUITE = """\
name: echo
dataset: {path: cases}
runner: {type: cli, command: [sh, -c, "cat input.yaml; echo ::stop-commands::x"]}
judges:
  - name: says_yes
    check: "return 'yes' in outputs['stdout'], 'looked for yes'"
thresholds: {}
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_reports_of_a_session(
    project: Project,
    workers: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project.suite(SUITE)
    project.case("a", {"message": "yes"})
    project.case("b", {"message": "no"})
    project.write(
        "conftest.py",
        """\
        class Own:
            def __init__(self):
                self.seen = []
            def trial(self, result):
                self.seen.append(result.case)
            def finished(self, run):
                return f"own: {sorted(self.seen)} in {run.directory.name == run.run_id}"

        class Broken(Own):
            def finished(self, run):
                raise RuntimeError("oh no")

        def pytest_agent_eval_report_handlers(config):
            return [Own(), Broken()]
        """,
    )
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "step"))
    paths = [f"out/report{suffix}" for suffix in (".html", ".md", ".json", ".csv")]
    asked = [word for path in paths for word in ("--agent-eval-report", path)]
    result = project.run("--agent-eval", "-v", *workers, *asked)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    out = result.stdout.str()
    for path in paths:
        assert f"report: {path}\n" in out
    assert "own: ['a', 'b'] in True\n" in out
    assert "a report failed: Broken: RuntimeError: oh no" in out
    assert "\n::error file=eval.yaml,title=b%3A failed::b: 1 of 1 judge failed: says_yes" in out
    assert "\\x3a:stop-commands" in out
    assert "\n  ::stop-commands" not in out
    result.stdout.fnmatch_lines(["  case  status  says_yes", "  a     passed  ok*", "  b *FAIL*"])
    text = (project.path / "out/report.md").read_text()
    assert (project.path / "step").read_text() == f"{text}\n"
    data = json.loads((project.path / "out/report.json").read_text())
    assert data["summary"]["judges"]["says_yes"]["pass_rate"] == 0.5
    with open(project.path / "out/report.csv") as file:
        assert {row["case"]: row["says_yes"] for row in csv.DictReader(file)} == {
            "a": "true",
            "b": "false",
        }
    page = Page((project.path / "out/report.html").read_text())
    said = {case["n"]: case["v"] for case in page.data["cases"]}
    assert said == {"a": [["p", True]], "b": [["f", False]]}
    assert page.of("b")["input"] == "message: 'no'\n"
    assert page.of("b")["trials"][0]["record"].startswith("../.agent-eval/runs/")
    if not workers:  # the same from what is stored
        monkeypatch.chdir(project.path)
        assert main(["report", "latest", "again.md", "again.json"]) == 0
        assert (project.path / "again.md").read_text() == text
        assert json.loads((project.path / "again.json").read_text()) == data
        capsys.readouterr()


def test_a_report_of_no_known_kind_is_said_before_anything_runs(project: Project) -> None:
    project.suite(SUITE)
    project.case("a")
    result = project.run("--agent-eval", "--agent-eval-report", "x.pdf")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--agent-eval-report: x.pdf: a report ends in one of .csv*"])
    assert not (project.path / ".agent-eval").exists()


def test_a_report_that_cannot_be_written_fails_the_session(project: Project) -> None:
    project.suite(SUITE)
    project.case("a", {"message": "yes"})
    project.write("file", "")
    result = project.run("--agent-eval", "--agent-eval-report", "file/x.md")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*file/x.md: cannot be written: a part of its path is a file"])
    assert project.summary()["complete"] is True
