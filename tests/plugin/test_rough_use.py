"""What people and agents do to a session that nobody planned for."""

from __future__ import annotations

import signal

import pytest

from .conftest import ECHO, Project


def test_names_that_are_another_name_and_a_number(project: Project) -> None:
    project.suite()
    for name in ("refund", "refund2", "refund10", "2", "02", "a1b", "a1"):
        project.case(name)
    result = project.run("--agent-eval", "--collect-only", "-q")
    names = [line.partition("::")[2] for line in result.outlines if "::" in line]
    assert names == ["02", "2", "a1", "a1b", "refund", "refund2", "refund10"]


@pytest.mark.parametrize("target", [".", "case-001", "../cases/case-001"])
def test_pytest_started_inside_the_dataset(
    project: Project, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Neither pytest's cache nor the run's own files are taken for the agent's doing."""
    (project.path / "tox.ini").unlink()  # so that pytest takes the directory for its root
    project.suite(name="evals/eval.yaml")
    project.case("case-001", dataset="evals/cases")
    inside = "evals/cases/case-001" if target == "." else "evals/cases"
    monkeypatch.chdir(project.path / inside)
    result = project.pytester.runpytest_subprocess("-p", "no:anyio", target)
    result.assert_outcomes(passed=1)
    left = {path.name for path in (project.path / "evals/cases/case-001").iterdir()}
    assert left - {".pytest_cache", "runpytest-0", "runpytest-current"} == {"input.yaml"}
    assert list((project.path / "evals/.agent-eval/runs").glob("*/results.jsonl"))


def test_what_makes_cases_run_one_by_one_is_said(project: Project) -> None:
    project.suite()
    project.cases(1)
    assert "one at a time" not in project.run("--agent-eval").stdout.str()
    result = project.run("--agent-eval", "-s", "--agent-eval-parallelism", "4")
    result.stdout.fnmatch_lines(["agent-eval: echo: 1 case (1 dev), one at a time (-s)"])


def test_a_suite_without_judges_says_so(project: Project) -> None:
    project.suite("dataset: {path: cases}\nrunner: {type: cli, command: cat input.yaml}\n")
    project.cases(1)
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*there are no judges*"])


def test_an_agent_that_removes_what_is_above_its_workspace(project: Project) -> None:
    project.suite(
        ECHO.replace(
            '"cp input.yaml {output_dir}/copy.yaml"',
            """["sh", "-c", 'cp input.yaml output/copy.yaml; echo hi; test "$0" = no || rm -rf "$(dirname "$PWD")"', "{destroy}"]""",
        )
        + "execution: {parallelism: 1}\n"
    )
    project.case("case-001", {"destroy": "yes"})
    project.case("case-002", {"destroy": "no"})
    project.run("--agent-eval")
    assert project.results()["case-002"].status == "passed"


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_agent_that_edits_another_case(project: Project, workers: tuple[str, ...]) -> None:
    project.suite(
        ECHO.replace(
            "cp input.yaml {output_dir}/copy.yaml",
            "sh -c 'cp input.yaml output/copy.yaml; echo x >> {config_dir}/cases/victim/notes.md'",
        )
    )
    project.case("case-001")
    project.case("victim", notes__md="a note\n")
    run = project.subprocess if workers else project.run
    result = run("--agent-eval", "-k", "case-001", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*the dataset was changed*victim/notes.md*"])


def test_a_runner_of_a_plugin_that_raises_shows_where(project: Project) -> None:
    project.write(
        "conftest.py",
        """\
        class Broken:
            def __init__(self, context):
                pass

            def run(self, task):
                return {}["nowhere"]

        def pytest_agent_eval_runner_types(config):
            return {"broken": Broken}
        """,
    )
    project.suite("dataset: {path: cases}\nrunner: {type: broken}\njudges: []\n")
    project.cases(1)
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the runner raised KeyError: 'nowhere'*", "*conftest.py*line 6*"])
    assert "trial.py" not in result.stdout.str()


def test_a_broken_file_that_was_named_shows_its_line(project: Project) -> None:
    project.write("eval.yaml", "dataset: {path: cases\n")
    result = project.run("eval.yaml")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*eval.yaml:1:22: not valid YAML*"])


def test_a_missing_runner_is_named(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        execution: {prompt: x, env: {PATH: /nowhere}}
        judges: [{name: a, check: return True}]
        """
    )
    project.cases(1)
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*Claude Code is not installed*",
            "*no runner.type is set, and claude-code is the default*",
        ]
    )


def test_a_typo_in_a_command_is_hinted_at(project: Project) -> None:
    project.suite(ECHO.replace("cp input.yaml", "true {mesage} ${HOME} ; cp input.yaml"))
    project.cases(1)
    result = project.run("--agent-eval", "--no-header")
    text = " ".join(result.stdout.str().split())
    assert (
        "{mesage} is left as it is: no case's input has this field; did you mean {message}?" in text
    )
    assert "{HOME}" not in text


def test_plugins_of_pytest_that_are_switched_off(project: Project) -> None:
    project.suite()
    project.cases(1)
    assert project.subprocess("--agent-eval", "-p", "no:setuponly").ret == 0
    assert project.subprocess("--agent-eval", "-p", "no:terminal").ret == 0


def test_each_process_keeps_its_signal_handlers(project: Project) -> None:
    before = signal.getsignal(signal.SIGTERM)
    project.suite()
    project.cases(1)
    project.run("--agent-eval").assert_outcomes(passed=1)
    assert signal.getsignal(signal.SIGTERM) is before
