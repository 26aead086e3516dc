"""How verdicts become the outcome of one test, and what a person reads about it."""

from __future__ import annotations

import fnmatch
import xml.etree.ElementTree as ET

import pytest

from .conftest import Project

VERDICTS = """\
name: verdicts
dataset: {path: cases}
runner: {type: python, function: "agent:run"}
judges:
  - name: strict
    check: return outputs['annotations'].get('strict', True), 'the strict judge looked'
  - name: gated
    check: return outputs['annotations'].get('gated', True), 'the gated judge looked'
  - name: number
    score_range: [1, 5]
    check: return 3, 'a number asserts nothing'
thresholds:
  gated: {min_pass_rate: 0.1}
"""

AGENT = """\
def run(task):
    return task.input.get("say", "ok")
"""


@pytest.fixture
def verdicts(project: Project) -> Project:
    project.suite(VERDICTS)
    project.write("agent.py", AGENT)
    return project


def test_a_failing_verdict_fails_the_case(verdicts: Project) -> None:
    verdicts.case("case-001", {"message": "Hello?", "say": "the answer"}, {"strict": False})
    verdicts.case("case-002")
    result = verdicts.run("--agent-eval")
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "*_ case-001 _*",
            "case-001: 1 of 3 judges failed: strict*",
            "*the strict judge looked*",
            "*message*Hello?*",
            "*the answer*",
            "FAILED eval.yaml::case-001 - case-001: 1 of 3 judges failed: strict*",
        ]
    )
    assert "pytest_agent_eval/" not in text
    assert "Traceback" not in text
    assert verdicts.results()["case-001"].status == "failed"


def test_only_gated_failures_are_tolerated(verdicts: Project) -> None:
    verdicts.case("case-001", annotations={"gated": False})
    verdicts.case("case-002")
    result = verdicts.run("--agent-eval", "-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["eval.yaml::case-001 TOLERATED*", "*1 passed, 1 tolerated*"])
    short = verdicts.run("--agent-eval")
    short.stdout.fnmatch_lines(["eval.yaml t.*"])


def test_numbers_without_pass_if_are_recorded(verdicts: Project) -> None:
    verdicts.case("case-001")
    verdicts.run("--agent-eval").assert_outcomes(passed=1)
    number = {verdict.judge: verdict for verdict in verdicts.results()["case-001"].verdicts}
    assert number["number"].value == 3
    assert number["number"].passed is None


def test_pass_if_turns_a_number_into_an_assertion(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: cli, command: [cat, input.yaml]}
        judges:
          - {name: score, score_range: [1, 5], pass_if: value >= 4, check: "return outputs['input']['n'], 'n'"}
        """
    )
    project.case("case-001", {"n": 4})
    project.case("case-002", {"n": 3})
    project.run("--agent-eval").assert_outcomes(passed=1, failed=1)


def test_all_judges_skipped_skips_the_case(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: cli, command: [cat, input.yaml]}
        judges:
          - {name: only, if: "annotations.get('wanted')", check: return True}
        """
    )
    project.case("case-001")
    project.case("case-002", annotations={"wanted": True})
    result = project.run("--agent-eval", "-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*eval.yaml*only*annotations.get('wanted')*"])
    assert "items.py" not in result.stdout.str()


def test_a_judge_error_fails_and_points_into_eval_yaml(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: cli, command: [cat, input.yaml]}
        judges:
          - name: broken
            check: |
              found = outputs['files']
              return found['nowhere'], 'x'
        """
    )
    project.case("case-001")
    result = project.run("--agent-eval")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["case-001: 1 judge error: broken (KeyError*eval.yaml:7*", "*return found*nowhere*"]
    )
    assert "bound.py" not in result.stdout.str()
    assert project.summary()["judges"]["broken"]["errored_cases"] == 1


@pytest.mark.parametrize(
    ("command", "says", "outcome"),
    [
        ("sh -c 'echo working; exit 3'", "exited with status 3", "failed"),
        ("true", "produced nothing", "failed"),
        ("sleep 60", "timed out after 0.5 s", "failed"),
        ("no-such-command-anywhere", "no-such-command-anywhere", "errors"),
    ],
)
def test_the_agent_and_the_infrastructure(
    project: Project, command: str, says: str, outcome: str
) -> None:
    project.suite(
        f"""\
        dataset: {{path: cases}}
        execution: {{timeout: 0.5}}
        runner: {{type: cli, command: "{command}"}}
        judges:
          - {{name: any, check: return True}}
        """
    )
    project.case("case-001")
    result = project.run("--agent-eval")
    result.assert_outcomes(**{outcome: 1})
    result.stdout.fnmatch_lines([f"*case-001: *{says}*"])
    assert "Traceback" not in result.stdout.str()


def test_allowed_exit_codes(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        execution: {allow_exit_codes: [0, 3]}
        runner: {type: cli, command: "sh -c 'echo done; exit 3'"}
        judges: [{name: any, check: "return outputs['exit_code'] == 3"}]
        """
    )
    project.case("case-001")
    project.run("--agent-eval").assert_outcomes(passed=1)


def test_an_agent_over_its_budget_fails(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        execution: {max_budget_usd: 0.5}
        runner:
          type: cli
          command: ["sh", "-c", "echo '{\\"cost_usd\\": 0.75}' > output/metrics.json; echo hi"]
        judges: [{name: any, check: return True}]
        """
    )
    project.case("case-001")
    result = project.run("--agent-eval")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["case-001: *0.75*0.50*"])
    assert project.results()["case-001"].kind == "budget"


def test_an_exception_of_a_python_agent_shows_its_own_frames(verdicts: Project) -> None:
    verdicts.write("agent.py", "def run(task):\n    raise ValueError('no such order')\n")
    verdicts.case("case-001")
    result = verdicts.run("--agent-eval")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["case-001: *ValueError: no such order*", "*agent.py*line 2*"])
    assert "deadline.py" not in result.stdout.str()


def test_missing_python_agent_is_an_error_of_the_infrastructure(verdicts: Project) -> None:
    verdicts.write("agent.py", "def other(task):\n    return 'x'\n")
    verdicts.case("case-001")
    result = verdicts.run("--agent-eval")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*case-001: *agent*run*"])


def test_verdicts_are_junit_properties(verdicts: Project) -> None:
    verdicts.case("case-001", annotations={"strict": False})
    verdicts.run("--agent-eval", "--junitxml=report.xml")
    tree = ET.parse(verdicts.path / "report.xml")
    properties = {(item.get("name") or ""): item.get("value") for item in tree.iter("property")}
    assert properties["agent_eval.verdict.strict"] == "false"
    assert properties["agent_eval.verdict.number"] == "3"
    assert properties["agent_eval.status"] == "failed"
    names = [item.get("name") for item in tree.iter("property")]
    assert len(names) == len(set(names))


def test_subtests_report_each_verdict(verdicts: Project) -> None:
    verdicts.case("case-001", annotations={"strict": False, "gated": False})
    result = verdicts.run("--agent-eval", "--agent-eval-subtests", "-v")
    assert project_usage(verdicts) == 1
    result.stdout.fnmatch_lines(["*SUBFAILED[[]strict[]]*", "*SUBXFAIL[[]gated[]]*"])
    assert result.ret == 1


def project_usage(project: Project) -> int:
    """Trials that the summary counts."""
    trials = project.summary()["usage"]["trials"]
    assert isinstance(trials, int)
    return trials


def test_async_and_fixture_runners(project: Project) -> None:
    project.suite(VERDICTS.replace("agent:run", "agent:later"))
    project.write("agent.py", "async def later(task):\n    return 'ok'\n")
    project.suite(VERDICTS.replace("agent:run", "fixture:my_agent"), name="fixture/eval.yaml")
    project.case("case-001")
    project.case("case-002", dataset="fixture/cases")
    project.case("case-003", dataset="fixture/cases")
    project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(scope="session")
        def my_agent():
            calls = []

            def run(task):
                calls.append(1)
                return f"call {len(calls)}"

            return run
        """,
    )
    project.run("--agent-eval").assert_outcomes(passed=3)
    messages = {
        path.parent.parent.name: path.read_text()
        for path in (project.latest / "cases").rglob("record.json")
    }
    said = [messages["case-002"], messages["case-003"]]
    assert sorted(f"call {number}" in text for text in said for number in (1, 2)) == [
        *(False, False),
        *(True, True),
    ]
    assert "call 1" not in said[0] or "call 2" in said[1]


def test_unknown_fixture_is_explained(project: Project) -> None:
    project.suite(VERDICTS.replace("agent:run", "fixture:nobody"))
    project.case("case-001")
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*(infrastructure): eval.yaml:*: runner.function:*"])
    assert project.results()["case-001"].kind == "infrastructure"


def test_workspaces_follow_pytests_retention_policy(verdicts: Project) -> None:
    verdicts.case("case-001")
    verdicts.case("case-002", annotations={"strict": False})
    base = verdicts.path / "base"
    for policy, kept in (("all", 2), ("failed", 1), ("none", 0)):
        verdicts.run(
            "--agent-eval", f"--basetemp={base}", "-o", f"tmp_path_retention_policy={policy}"
        )
        roots = list(base.glob(".agent-eval*"))
        assert sum(1 for root in roots if not root.is_symlink() for _ in root.iterdir()) == kept


def test_a_case_that_another_plugin_runs_again_is_tried_again(project: Project) -> None:
    """One stored line per attempt; the last one is the result, and each call's cost is counted."""
    project.suite(VERDICTS.replace("{min_pass_rate: 0.1}", "{max_error_rate: 1}"))
    project.write(
        "agent.py",
        """\
        from pytest_agent_eval import Execution, Usage

        calls = []

        def run(task):
            calls.append(task.workspace)
            return Execution(output=str(len(calls)), usage=Usage(cost_usd=0.25))
        """,
    )
    project.write(
        "conftest.py",
        """\
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            runtestprotocol(item, nextitem=nextitem, log=False)
            for report in runtestprotocol(item, nextitem=nextitem, log=False):
                item.ihook.pytest_runtest_logreport(report=report)
            return True
        """,
    )
    project.case("case-001")
    project.run("--agent-eval").assert_outcomes(passed=1)
    lines = (project.latest / "results.jsonl").read_text().splitlines()
    assert len(lines) == 2
    stored = project.results()["case-001"]
    assert stored.record == "cases/case-001/1.2"
    assert (project.latest / stored.record / "record.json").is_file()


AGENT_FIXTURE = "dataset: {path: cases}\nrunner:\n  type: python\n  function: fixture:my_agnet\n"
FIXTURES = """\
import pytest

@pytest.fixture
def my_agent():
    return lambda task: "done"

@pytest.fixture(params=[1, 2])
def both(request):
    return lambda task: "done"

@pytest.fixture
def needs_more(not_there):
    return lambda task: "done"

@pytest.fixture
def raises():
    raise ValueError("no model here")
"""


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "my_agnet",
            [
                "*eval.yaml:4: runner.function: there is no fixture 'my_agnet';*",
                "*did you mean 'my_agent'?*conftest.py*",
            ],
        ),
        ("zzzzzz", ["*there is no fixture 'zzzzzz'; the*project has both, my_agent, needs*"]),
        ("both", ["*eval.yaml:4: runner.function: fixture 'both' has params*"]),
        ("needs_more", ["*def needs_more(not_there)*", "*fixture 'not_there' not found*"]),
        ("raises", ["conftest.py:17: ValueError", "*no model here*"]),
    ],
)
def test_a_fixture_that_is_no_agent(project: Project, name: str, lines: list[str]) -> None:
    project.suite(AGENT_FIXTURE.replace("my_agnet", name))
    project.write("conftest.py", FIXTURES)
    project.cases(2)
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=2)
    text = " ".join(line.strip() for line in result.outlines)
    for line in lines:
        assert fnmatch.fnmatch(text, f"*{line}*"), line
    # What went wrong is not in this package, and it is told without 30 names of fixtures.
    result.stdout.no_fnmatch_line("*items.py*")
    if name != "needs_more":
        result.stdout.no_fnmatch_line("*tmp_path_factory*")
