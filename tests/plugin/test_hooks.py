"""The plugin's own hooks, from a conftest.py."""

from __future__ import annotations

import re
from pathlib import Path

from .conftest import ECHO, Project

CONFTEST = """\
from pytest_agent_eval import Execution


class Shout:
    def __init__(self, context):
        self.suffix = context.suite.config.runner.settings.get("suffix", "!")

    def run(self, task):
        return Execution(output=task.input["message"].upper() + self.suffix)


class EndsWith:
    def __init__(self, context):
        self.ending = context.config.extra

    def __call__(self, record):
        return record["final_message"].endswith(self.ending), f"looked for {self.ending!r}"


def pytest_agent_eval_runner_types(config):
    return {"shout": Shout}


def pytest_agent_eval_judge_kinds(config):
    return {"ends_with": EndsWith}


def pytest_agent_eval_trial_finished(config, result):
    print(f"FINISHED {result.case} {result.status}")


def pytest_agent_eval_run_finished(config, summary):
    print(f"RUN {summary.complete}")
"""

SUITE = """\
dataset: {path: cases}
runner: {type: shout, settings: {suffix: "?"}}
judges:
  - {name: asks, ends_with: "?"}
  - {name: shouts, ends_with: "!"}
thresholds: {shouts: {max_error_rate: 0}}
"""


def test_runner_types_and_judge_kinds_from_a_conftest(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.suite(SUITE)
    project.case("case-001")
    result = project.run("--agent-eval", "-s")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*FINISHED case-001 tolerated*", "*RUN True*"])
    verdicts = {verdict.judge: verdict for verdict in project.results()["case-001"].verdicts}
    assert verdicts["asks"].value is True
    assert verdicts["shouts"].value is False


def test_they_apply_below_their_directory_only(project: Project) -> None:
    project.write("a/conftest.py", CONFTEST)
    project.suite(SUITE, name="a/eval.yaml")
    project.suite(SUITE, name="b/eval.yaml")
    project.case("case-001", dataset="a/cases")
    project.case("case-001", dataset="b/cases")
    project.run("a/eval.yaml", "-s").stdout.fnmatch_lines(["*1 tolerated*"])
    result = project.run("b/eval.yaml")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*runner.type*shout*"])


def test_under_xdist_the_controller_hears_of_every_trial(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.suite(SUITE)
    project.cases(4)
    result = project.subprocess("--agent-eval", "-s", "-n", "2")
    text = result.stdout.str()
    assert sorted(re.findall(r"FINISHED (case-\d+) tolerated", text)) == [
        f"case-{number:03d}" for number in range(1, 5)
    ]
    assert text.count("RUN True") == 1


def test_the_documented_example_runs(project: Project) -> None:
    """The first conftest and suite of docs/extending.md work as they are printed."""
    page = Path(__file__).parents[2] / "docs" / "extending.md"
    text = page.read_text(encoding="utf-8")
    conftest = re.search(r"```python\n(# conftest\.py\n.*?)```", text, re.DOTALL)
    suite = re.search(r"```yaml\n(# eval\.yaml\n.*?)```", text, re.DOTALL)
    assert conftest is not None
    assert suite is not None
    project.write("conftest.py", conftest[1])
    project.suite(suite[1])
    project.case("case-001", {"message": "Where is my parcel?", "prompt": "Where is my parcel?"})
    result = project.run("--agent-eval")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*1 passed*"])


def test_a_hook_with_a_typo_is_loud(project: Project) -> None:
    project.suite(ECHO)
    project.cases(1)
    project.write("conftest.py", "def pytest_agent_eval_runnertypes(config):\n    return {}\n")
    assert project.subprocess("--agent-eval").ret != 0
