"""Gates, the summary and the exit status; the same with and without pytest-xdist."""

from __future__ import annotations

import json

import pytest

from .conftest import Project

SUITE = """\
name: gates
dataset: {{path: cases}}
runner: {{type: cli, command: [cat, input.yaml]}}
judges:
  - name: good
    check: return outputs['annotations'].get('good', True), 'looked at good'
  - name: score
    score_range: [0, 10]
    check: return outputs['annotations'].get('score', 8), 'looked at score'
thresholds: {thresholds}
"""


def _project(project: Project, thresholds: str, failing: int = 1, cases: int = 10) -> Project:
    project.suite(SUITE.format(thresholds=thresholds))
    for number in range(1, cases + 1):
        project.case(
            f"case-{number:03d}",
            annotations={"good": number > failing, "score": 6 if number % 2 else 8},
        )
    return project


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.parametrize(
    ("thresholds", "status", "line"),
    [
        (
            "{good: {min_pass_rate: 0.9}}",
            0,
            "GATE good min_pass_rate >= 0.9: 0.90 *10 cases*passed",
        ),
        ("{good: {min_pass_rate: 0.95}}", 1, "GATE good min_pass_rate >= 0.95: 0.90 *missed*"),
        ("{good: {min_pass_rate: 0.9, confidence: 0.95}}", 1, "GATE good min_pass_rate*missed*"),
        ("{good: {min_cases: 11, min_pass_rate: 0.1}}", 1, "GATE good min_cases >= 11*missed*"),
        ("{good: {max_error_rate: 0}}", 0, "GATE good max_error_rate <= 0*passed"),
        (
            "{score: {min_mean: 7}, good: {min_mean: 0.5}}",
            0,
            "GATE score min_mean >= 7: 7.00*passed",
        ),
    ],
)
def test_gates_decide_the_exit_status(
    project: Project, thresholds: str, status: int, line: str, workers: tuple[str, ...]
) -> None:
    _project(project, thresholds)
    run = project.subprocess if workers else project.run
    result = run("--agent-eval", *workers)
    result.stdout.fnmatch_lines([f"*{line}*"])
    assert result.ret == status
    assert len(project.results()) == 10
    assert json.loads((project.latest / "run.json").read_text())["exit_status"] == status


def test_summaries_are_equal_with_and_without_workers(project: Project) -> None:
    _project(project, "{good: {min_pass_rate: 0.9}, score: {min_mean: 7}}")
    summaries = []
    for workers in ((), ("-n", "2"), ("-n", "4")):
        project.subprocess("--agent-eval", *workers)
        summary = project.summary()
        for volatile in ("run_id", "usage"):
            summary.pop(volatile)
        for case in summary["cases"].values():
            case.pop("duration_s", None)
        summaries.append(summary)
        assert summary.pop("holdout")["looks"] == len(summaries), "each of them is a look"
        assert not list(project.latest.glob("results-*"))
    assert summaries[0] == summaries[1] == summaries[2]


def test_partial_selections_do_not_decide(project: Project) -> None:
    _project(project, "{good: {min_pass_rate: 1.0}}", failing=1, cases=10)
    result = project.run("--agent-eval", "-k", "case-001 or case-002")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*not decided*of*cases selected*"])
    assert (
        project.run("--agent-eval", "-k", "case-001 or case-002", "--agent-eval-gate", "always").ret
        == 1
    )
    assert project.run("--agent-eval", "--agent-eval-gate", "never").ret == 0


def test_a_whole_half_is_no_partial_selection(project: Project) -> None:
    _project(project, "{good: {min_pass_rate: 0.1}}", cases=12)
    for half in ("dev", "holdout"):
        result = project.run("--agent-eval", "--agent-eval-split", half)
        result.stdout.fnmatch_lines(["GATE good min_pass_rate*passed*"])


def test_a_gate_on_one_half(project: Project) -> None:
    _project(project, "{good: {min_pass_rate: 0.1, split: holdout}}", cases=12)
    dev = project.run("--agent-eval", "--agent-eval-split", "dev")
    dev.stdout.fnmatch_lines(["GATE good min_pass_rate*not decided*holdout*"])
    both = project.run("--agent-eval")
    both.stdout.fnmatch_lines(["GATE good min_pass_rate*passed*"])


def test_stopping_early_does_not_decide(project: Project) -> None:
    project.suite(SUITE.format(thresholds="{score: {min_mean: 1}}"))
    for number in range(1, 6):
        project.case(f"case-{number:03d}", annotations={"good": False})
    result = project.run("--agent-eval", "-x")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["GATE score min_mean*not decided*1 of 5*"])
    assert project.summary()["complete"] is False
    assert "case-001" in project.results()
    result = project.run("--agent-eval", "-x", "--agent-eval-parallelism", "1")
    assert result.ret == 1
    assert set(project.results()) == {"case-001"}


def test_the_summary_says_what_the_sample_shows(project: Project) -> None:
    _project(project, "{good: {min_pass_rate: 0.9}}", failing=0, cases=20)
    result = project.run("--agent-eval")
    result.stdout.fnmatch_lines(["*20 of 20*0.84*", "*.agent-eval/runs/*"])


def test_a_missing_metric_is_a_missed_gate(project: Project) -> None:
    _project(project, "{score: {min_mean: 5}}")
    text = (project.path / "eval.yaml").read_text()
    (project.path / "eval.yaml").write_text(text.replace("get('score', 8)", "get('none', 1 / 0)"))
    result = project.run("--agent-eval")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["GATE score min_mean >= 5*missed*"])


def test_the_run_directory(project: Project) -> None:
    _project(project, "{good: {min_pass_rate: 0.5}}")
    project.run("--agent-eval")
    run = project.latest
    header = json.loads((run / "run.json").read_text())
    assert header["exit_status"] == 0
    assert header["complete"] is True
    assert header["suites"][0]["file"] == "eval.yaml"
    assert (run.parent / "latest").resolve() == run
    assert (run.parent.parent / ".gitignore").read_text() == "*\n"
    assert (run / "cases" / "case-001" / "1" / "record.json").is_file()
    assert str(project.path) not in (run / "run.json").read_text()
    summary = project.summary()
    assert summary["judges"]["good"]["pass_rate"] == 0.9
    assert summary["per_case"]["case-001"]["good"]["value"] is False


def test_runs_option_and_unwritable_directory(project: Project) -> None:
    _project(project, "{}")
    project.run("--agent-eval", "--agent-eval-runs", "elsewhere")
    assert list((project.path / "elsewhere").glob("*/results.jsonl"))
    project.write("taken", "a file")
    result = project.subprocess("--agent-eval", "--agent-eval-runs", "taken")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert "taken" in result.stdout.str() + result.stderr.str()
