"""What an agent can see and do: nothing of the answer key, nothing to the session."""

from __future__ import annotations

import json
import sys

import psutil

from .conftest import Project

SPY = """\
import json, os, pathlib

seen = {"cwd": os.getcwd(), "env": dict(os.environ), "files": []}
for root, _, names in os.walk("."):
    seen["files"] += [os.path.join(root, name) for name in names]
for parent in [pathlib.Path.cwd(), *pathlib.Path.cwd().parents][:3]:
    seen["files"] += [str(path) for path in parent.iterdir()]
pathlib.Path("output/seen.json").write_text(json.dumps(seen))
"""


def test_no_word_of_the_answer_key_reaches_the_agent(project: Project) -> None:
    project.suite(
        f"""\
        name: spy
        dataset: {{path: cases, workspace: {{files: [notes]}}}}
        runner: {{type: cli, command: ["{sys.executable}", "{{config_dir}}/spy.py"]}}
        judges: [{{name: any, check: "return True"}}]
        """
    )
    project.write("spy.py", SPY)
    project.case(
        "refund_is_the_answer",
        {"message": "hello"},
        {"expected_output": "THE-SECRET-ANSWER", "tags": ["secret-tag"]},
        answers__yaml="q: THE-OTHER-SECRET\n",
        reference__md="THE-GOLD",
    )
    project.write("cases/refund_is_the_answer/notes/a.md", "note")
    project.run("--agent-eval").assert_outcomes(passed=1)
    (found,) = project.latest.rglob("seen.json")
    seen = found.read_text()
    data = json.loads(seen)
    for word in ("SECRET", "THE-GOLD", "refund_is_the_answer", "annotations", "secret-tag"):
        assert word not in seen
    assert str(project.path / "cases") not in seen
    assert "./input.yaml" in data["files"]
    assert "./notes/a.md" in data["files"]
    assert "PYTEST_CURRENT_TEST" not in data["env"]
    assert data["env"]["AGENT_EVAL_WORKSPACE"] == data["cwd"]
    assert data["env"]["PWD"] == data["cwd"]


def test_what_the_agent_leaves_does_not_reach_pytest(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner:
          type: cli
          command:
            - sh
            - -c
            - |
              for name in conftest.py sitecustomize.py test_evil.py; do
                echo 'raise SystemExit(9)' > $name; cp $name output/
              done
              echo '[pytest]' > pytest.ini
              echo done
        judges: [{name: any, check: "return 'conftest.py' in outputs['files']"}]
        """
    )
    project.cases(2)
    project.subprocess("--agent-eval").assert_outcomes(passed=2)
    project.subprocess("--agent-eval", "--basetemp", "base").assert_outcomes(passed=2)


HOSTILE = "print('\\x1b[31mred\\x00 \\udcff'.encode('utf-8', 'surrogatepass').decode('latin-1'))"


def test_hostile_bytes_in_output(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner:
          type: cli
          command: ["sh", "-c", "printf 'esc \\\\033[31m nul \\\\000 bad \\\\377\\\\355\\\\260\\\\200 end\\\\n'"]
        judges:
          - name: rude
            check: return False, outputs['stdout'] + chr(0xd800) + chr(0) + chr(27)
        """
    )
    project.cases(1)
    result = project.subprocess("--agent-eval", "--junitxml=report.xml")
    result.assert_outcomes(failed=1)
    import xml.etree.ElementTree as ET

    ET.parse(project.path / "report.xml")
    assert project.results()["case-001"].status == "failed"
    assert "\x1b[31m nul" not in result.stdout.str()
    assert "\x00" not in result.stdout.str()
    xdist = project.subprocess("--agent-eval", "-n", "1")
    xdist.assert_outcomes(failed=1)


FLOOD = """\
import sys
chunk = b"x" * (1 << 20)
for _ in range(1024):
    sys.stdout.buffer.write(chunk)
"""

MEASURED = """\
import resource, subprocess, sys
status = subprocess.call([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "eval.yaml"])
print("PEAK", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def test_a_gibibyte_of_output(project: Project) -> None:
    project.suite(
        f"""\
        dataset: {{path: cases}}
        runner: {{type: cli, command: ["{sys.executable}", "{{config_dir}}/flood.py"]}}
        judges: [{{name: any, check: "return True"}}]
        """
    )
    project.write("flood.py", FLOOD)
    project.cases(1)
    result = project.pytester.run(sys.executable, project.write("measured.py", MEASURED))
    assert result.ret == 0
    (peak,) = [line for line in result.outlines if line.startswith("PEAK")]
    assert int(peak.split()[1]) < 300 * 1024
    (log,) = project.latest.rglob("stdout.log")
    assert 15 * 2**20 < log.stat().st_size <= 16 * 2**20 + 200
    assert b"bytes" in log.read_bytes()[8 * 2**20 - 200 : 8 * 2**20 + 200]


SLEEPER = """\
import os, subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('AGENT-GRANDCHILD', flush=True); time.sleep(300)"],
    start_new_session=True,
)
open(os.environ["AGENT_EVAL_OUTPUT_DIR"] + "/pid", "w").write(str(child.pid))
time.sleep(300)
"""


def _is_running(pid: int) -> bool:
    """A zombie has ended; whoever adopted it has only not asked yet."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_grandchildren_in_their_own_session_are_gone(project: Project) -> None:
    project.suite(
        f"""\
        dataset: {{path: cases}}
        execution: {{timeout: 1}}
        runner: {{type: cli, command: ["{sys.executable}", "{{config_dir}}/sleeper.py"]}}
        judges: [{{name: left_a_pid, check: "return 'pid' in outputs['files']"}}]
        """
    )
    project.write("sleeper.py", SLEEPER)
    project.cases(1)
    result = project.subprocess("--agent-eval", "-n", "2")
    result.assert_outcomes(failed=1)
    assert result.duration < 1 + 10 + 10  # its timeout, the promised grace, a slow machine
    stored = project.results()["case-001"]
    assert stored.kind == "timeout"
    assert stored.verdicts[0].value is True
    (pid,) = project.latest.rglob("pid")
    assert not _is_running(int(pid.read_text()))


def test_a_judge_that_never_returns_does_not_stop_the_session(project: Project) -> None:
    project.suite(
        """\
        dataset: {path: cases}
        runner: {type: cli, command: [cat, input.yaml]}
        judges:
          - name: endless
            timeout: 0.5
            check: |
              while True:
                  pass
          - name: asleep
            timeout: 0.5
            check: |
              import time
              time.sleep(600)
        """
    )
    project.cases(1)
    result = project.subprocess("--agent-eval")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*endless*did not return within 0.5 s*"])
