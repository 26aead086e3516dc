"""Hooks and batch mode in real sessions, also over several workers."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project

WORKERS = [(), ("-n", "3")]

SUITE = """\
name: hooked
dataset: {{path: cases}}
runner: {{type: cli, command: ["sh", "-c", "echo $FROM_HOOK {{message}} $CASE_ID"]}}
hooks:
  before_all: [{{command: "echo before_all >> {log}; echo 'env: {{FROM_HOOK: handed}}' > .hook-outputs.yaml"}}]
  before_each: [{{command: "echo before_each $CASE_ID >> {log}"}}]
  after_each: [{{command: "echo after_each $CASE_ID >> {log}; exit 1"}}]
  before_scoring: [{{command: "echo before_scoring >> {log}"}}]
  after_all: [{{command: "echo after_all >> {log}"}}]
  before_report: [{{command: "echo before_report >> {log}"}}]
judges:
  - name: said
    check: |
      return outputs['stdout'] == 'handed ' + outputs['input']['message'] + '\\n', outputs['stdout']
"""


@pytest.mark.parametrize("workers", WORKERS)
def test_hooks_run_once_a_session_and_around_each_case(
    project: Project, workers: tuple[str, ...]
) -> None:
    log = project.path / "log.txt"
    project.suite(SUITE.format(log=log))
    project.cases(4)
    result = project.subprocess("--agent-eval", *workers)
    result.assert_outcomes(passed=4)
    lines = log.read_text().splitlines()
    assert lines.count("before_all") == lines.count("after_all") == 1
    assert lines.count("before_scoring") == lines.count("before_report") == 1
    assert lines[0] == "before_all"
    assert lines[-2:] == ["after_all", "before_report"]
    for number in range(1, 5):
        assert lines.count(f"before_each case-{number:03d}") == 1
        assert lines.count(f"after_each case-{number:03d}") == 1
    assert any("after_each" in note for note in project.results()["case-001"].notes)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_failing_before_all_is_an_error_of_every_case(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: cli, command: touch ../../ran}
        hooks: {before_all: [{command: "echo no database >&2; exit 7"}], after_all: [{command: "touch after"}]}
        judges: [{name: any, check: return True}]
        """
    )
    project.cases(3)
    result = project.subprocess("--agent-eval", *workers)
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(["*no database*"])


def test_after_all_runs_when_a_session_is_stopped(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: cli, command: echo x}
        hooks: {after_all: [{command: "touch after"}]}
        judges: [{name: never, check: return False}]
        """
    )
    project.cases(3)
    project.subprocess("--agent-eval", "-x").assert_outcomes(failed=1)
    assert (project.path / "after").exists()


BATCH = """\
name: batch
dataset: {{path: cases}}
execution: {{mode: batch}}
outputs: [{{path: out, batch_pattern: "item-{{n}}"}}]
runner: {{type: cli, command: "python {agent}"}}
judges:
  - name: answered
    check: |
      name = next(n for n in outputs['files'] if n.startswith('out/'))
      return outputs['files'][name] == outputs['input']['message'], name
"""

BATCH_AGENT = """\
import pathlib, yaml
entries = yaml.safe_load(open("batch.yaml"))
open("{calls}", "a").write("x")
for number, entry in enumerate(entries, start=1):
    pathlib.Path("out").mkdir(exist_ok=True)
    pathlib.Path(f"out/item-{{number}}.txt").write_text(entry["message"])
pathlib.Path("output").mkdir(exist_ok=True)
pathlib.Path("output/metrics.json").write_text('{{"cost_usd": 3.0}}')
"""


@pytest.mark.parametrize("workers", WORKERS)
def test_one_task_for_all_cases(project: Project, workers: tuple[str, ...]) -> None:
    calls = project.path / "calls"
    agent = project.write("batch_agent.py", BATCH_AGENT.format(calls=calls))
    project.suite(BATCH.format(agent=agent))
    project.cases(3)
    result = project.subprocess("--agent-eval", *workers)
    result.assert_outcomes(passed=3)
    assert calls.read_text() == "x"
    assert project.summary()["usage"]["cost_usd"] == pytest.approx(3.0)
    assert {r.record for r in project.results().values()} == {
        f"cases/case-00{number}/1" for number in (1, 2, 3)
    }
    again = project.subprocess("--agent-eval", "--agent-eval-resume", *workers)
    again.assert_outcomes(passed=3)
    assert calls.read_text() == "x"


def test_a_pipeline_with_runners_of_its_own(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: cli, command: ["sh", "-c", "echo {message} > draft.txt; echo drafted"]}
        execution:
          steps:
            - {id: draft, prompt: "write"}
            - {id: check, prompt: "check {{ steps.draft.output }}", runner: {type: python, function: "steps_agent:check"}}
        judges:
          - {name: both, check: "return outputs['steps']['check']['final_message'].strip() == 'checked drafted', str(outputs['steps'])"}
        """
    )
    project.write(
        "steps_agent.py", "def check(task):\n    return 'checked ' + task.prompt.split()[-1]\n"
    )
    project.cases(2)
    project.subprocess("--agent-eval").assert_outcomes(passed=2)


@pytest.mark.parametrize(("phase", "tried"), [("before_scoring", 1), ("before_each", 3)])
def test_a_failing_hook_is_not_said_to_be_the_agent(
    project: Project, phase: str, tried: int
) -> None:
    """What runs once a session fails once; what runs for each case may work the next time."""
    project.suite(
        f"""\
        dataset: {{path: cases}}
        runner: {{type: cli, command: echo done}}
        execution: {{retries: {tried - 1 or 2}}}
        hooks: {{{phase}: [{{command: "exit 3"}}]}}
        judges: [{{name: any, check: return True}}]
        """
    )
    project.cases(1)
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"case-001: a hook failed (infrastructure): hooks.{phase}*"])
    result.stdout.no_fnmatch_line("*could not be run*")
    assert project.results()["case-001"].record.startswith("cases/case-001/1")
    attempts = project.results()["case-001"].notes
    assert sum("attempt" in note for note in attempts) == tried - 1
