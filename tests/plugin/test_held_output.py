"""What threads print while pytest writes to the terminal."""

from __future__ import annotations

import pytest

from .conftest import Project

LOUD = """\
import os
import sys
import threading


def pytest_runtest_logreport(report):
    # pytest captures nothing here. A thread of the engine may print at this very moment.
    def whisper():
        print("whispered", os.environ["SERVICE_API_KEY"])
        sys.stderr.writelines(["muttered", " twice\\n"])

    if report.when == "setup":
        thread = threading.Thread(target=whisper)
        thread.start()
        thread.join()
    if report.when == "teardown":
        print("said by pytest's own thread")
"""

SUITE = """\
dataset: {path: cases}
runner: {type: cli, command: [sh, -c, "echo {message}"]}
judges: [{name: fine, check: "return outputs['case'] != 'case-002'"}]
"""


@pytest.mark.parametrize("capture", ["fd", "sys"])
def test_it_is_shown_with_the_next_case_and_without_secrets(
    project: Project, monkeypatch: pytest.MonkeyPatch, capture: str
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "sk-live-0123456789")
    project.suite(SUITE)
    project.write("conftest.py", LOUD)
    project.cases(3)
    result = project.subprocess("--agent-eval", "-vv", f"--capture={capture}")
    result.assert_outcomes(passed=2, failed=1)
    printed = result.stdout.str()
    assert "sk-live" not in printed + result.stderr.str()
    assert "whispered" not in printed.partition("= FAILURES =")[0]
    result.stdout.fnmatch_lines(
        ["*Captured stdout setup*", "whispered [*][*][*]SERVICE_API_KEY[*][*][*]"]
    )
    result.stdout.fnmatch_lines(["*Captured stderr setup*", "muttered twice"])
    assert printed.count("said by pytest's own thread") == 3, "which is none of our business"


def test_streams_are_given_back(project: Project) -> None:
    project.suite(SUITE)
    project.write(
        "conftest.py",
        "import sys\n\n\ndef pytest_unconfigure(config):\n    print(type(sys.stdout).__name__)\n",
    )
    project.cases(1)
    result = project.subprocess("--agent-eval")
    assert result.outlines[-1] == "TextIOWrapper"


def test_where_nothing_is_captured_all_is_printed(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: python, function: agent:run}
        judges: [{name: fine, check: "return True"}]
        """
    )
    project.write("agent.py", "def run(task):\n    print('aloud')\n    return 'done'\n")
    project.cases(1)
    result = project.subprocess("--agent-eval", "-s")
    assert "aloud" in result.stdout.str()
