"""Faults that users of tools of this kind met elsewhere, each tested as the kind it is of.

The numbers are those of the list of public reports that the acceptance tests follow. Rows 1, 2, 3, 6, 7
and 23 are in ``test_models_of_public_reports.py``, 9 and 12 in ``test_agents_of_public_reports.py``.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.plugin.conftest import ECHO, Project

PYTHON_AGENT = """\
name: python agent
dataset: {{path: cases}}
runner: {{type: python, function: "agent:run"}}
judges:
{judges}
"""


def python_suite(project: Project, agent: str, judges: str, rest: str = "") -> None:
    project.suite(PYTHON_AGENT.format(judges=judges) + rest)
    project.write("agent.py", agent)


# -- 4: a score that is none ---------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "float('nan')",
        "float('inf')",
        "-float('inf')",
        "None",
        "'4'",
        "''",
        "[4]",
        "11",
        "-1",
        "(None, 'no idea')",
        "10 ** 400",
        "outputs['annotations']['absent']",
        "1 / 0",
    ],
)
def test_one_score_of_five_that_is_none_is_left_out_and_counted(
    project: Project, answer: str
) -> None:
    """Row 4."""
    project.suite(
        f"""\
        dataset: {{path: cases, split: {{holdout: 0}}}}
        runner: {{type: cli, command: [cat, input.yaml]}}
        judges:
          - name: score
            score_range: [0, 10]
            check: |
              number = outputs['input']['n']
              return number if number else {answer}
        thresholds: {{score: {{min_mean: 2.5, max_error_rate: 0.1}}}}
        """
    )
    for number in range(5):
        project.case(f"case-{number}", {"n": number})
    result = project.run("--agent-eval")
    result.stdout.fnmatch_lines(
        [
            "*score*mean 2.50*4*of*5*scored*1 judge error*",
            "GATE score min_mean >= 2.5: 2.50 *over 4 *passed",
            "GATE score max_error_rate <= 0.1: 0.20 *over 5 cases*missed",
        ]
    )
    assert result.ret == 1, "the error rate fails the run although the mean holds"
    score = project.summary()["judges"]["score"]
    assert (score["mean"], score["scored_cases"], score["errored_cases"]) == (2.5, 4, 1)
    (verdict,) = project.results()["case-0"].verdicts
    assert verdict.value is None
    assert verdict.error
    assert project.results()["case-0"].status == "tolerated"


def test_a_score_that_is_none_fails_a_case_without_a_gate(project: Project) -> None:
    """Row 4: neither a pass nor the lowest score."""
    project.suite(ECHO + "  - {name: score, check: \"return float('nan')\"}\n")
    project.cases(1)
    result = project.run("--agent-eval")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["case-001: 1 judge error: score *not finite*"])
    assert project.summary()["judges"]["score"]["mean"] is None


# -- 5: what is printed and the exit status -------------------------------------------------

SITUATIONS: Mapping[str, tuple[dict[str, Any], str, int]] = {
    "all good": ({}, "{}", 0),
    "one fails": ({"good": False}, "{}", 1),
    "gate holds": ({"good": False}, "{good: {min_pass_rate: 0.5}}", 0),
    "gate missed": ({"good": False}, "{good: {min_pass_rate: 0.9}}", 1),
    "gate missed, all cases pass": ({}, "{good: {min_cases: 9, min_pass_rate: 0}}", 1),
    "judge error": ({"good": None}, "{}", 1),
    "judge error, tolerated": ({"good": None}, "{good: {max_error_rate: 0.5}}", 0),
    "judge error, gate missed": ({"good": None}, "{good: {max_error_rate: 0.1}}", 1),
    "every verdict an error": ({"all": None}, "{good: {min_pass_rate: 0}}", 1),
    "agent fails": ({"agent": 3}, "{good: {min_pass_rate: 0.1}}", 1),
    "broken case": ({"tags": 3}, "{good: {min_pass_rate: 0.1}}", 1),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_is_printed_and_the_exit_status_agree(project: Project, situation: str) -> None:
    """Row 5: terminal, exit status, run.json, summary.yaml and JUnit say the same."""
    annotations, thresholds, status = SITUATIONS[situation]
    python_suite(
        project,
        "def run(task):\n    return str(task.input['number'])\n",
        "  - {name: good, check: \"return outputs['annotations'].get('good', True)\"}",
        f"thresholds: {thresholds}\n",
    )
    for number in range(4):
        special = "all" in annotations or number == 0
        asked: dict[str, Any] = {"number": number}
        if special and "agent" in annotations:
            asked = {"other": 1}
        wanted = {"good": None} if "all" in annotations else annotations
        project.case(f"case-{number}", asked, wanted if special else None)
    result = project.run("--agent-eval", "--junitxml=report.xml")
    text = result.stdout.str()
    printed = re.findall(r"^GATE (\S+) (\S+) .*-> (\w+)", text, re.MULTILINE)
    counts = result.parseoutcomes()
    bad = counts.get("failed", 0) + counts.get("errors", 0)
    missed = sum(outcome == "missed" for _, _, outcome in printed)
    assert result.ret == status
    assert (bad + missed > 0) == (status == 1)
    header = json.loads((project.latest / "run.json").read_text())
    assert header["exit_status"] == status
    summary = project.summary()
    stored = [(gate["judge"], gate["key"], gate["outcome"]) for gate in summary.get("gates", [])]
    assert stored == printed
    states = [result.status for result in project.results().values()]
    assert bad == states.count("failed") + states.count("error")
    (suite,) = ET.parse(project.path / "report.xml").iter("testsuite")
    assert int(suite.get("failures", -1)) >= states.count("failed")
    assert int(suite.get("errors", -1)) == states.count("error")


# -- 8: an agent's child that goes on -------------------------------------------------------

CHILD = """\
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("output/pid", "w").write(str(os.getpid()))
while True:
    print("still here", flush=True)
    open("output/growing.txt", "a").write("more\\n")
    time.sleep(0.01)
"""

PARENT = """\
import pathlib, subprocess, sys, time
pathlib.Path("output/metrics.json").write_text('{"cost_usd": 0.25}')
print("began", flush=True)
subprocess.Popen([sys.executable, pathlib.Path(sys.argv[0]).with_name("child.py")], start_new_session=True)
time.sleep(300)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "3")], ids=["alone", "workers"])
def test_a_child_that_holds_stdout_and_writes_on_after_the_timeout(
    project: Project, workers: tuple[str, ...]
) -> None:
    """Row 8."""
    project.suite(
        f"""\
        dataset: {{path: cases}}
        execution: {{timeout: 1}}
        runner: {{type: cli, command: ["{sys.executable}", "{{config_dir}}/parent.py"]}}
        judges:
          - name: seen
            check: |
              import time
              before = outputs['files']['output/growing.txt'], outputs['stdout']
              time.sleep(0.2)
              from pathlib import Path
              after = Path(outputs['workspace'], 'output', 'growing.txt').read_text()
              return before[0] == after and 'began' in before[1], str(len(before[0]))
        """
    )
    project.write("parent.py", PARENT)
    project.write("child.py", CHILD)
    project.cases(1)
    started = time.monotonic()
    result = (project.subprocess if workers else project.run)("--agent-eval", *workers)
    assert time.monotonic() - started < 1 + 5 + 30, "timeout, grace, and a slow machine"
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["case-001: *timed out after 1 s*", "*still here*"])
    stored = project.results()["case-001"]
    assert stored.kind == "timeout"
    assert stored.usage.cost_usd == 0.25
    assert project.summary()["usage"]["cost_usd"] == 0.25
    (seen,) = stored.verdicts
    assert seen.passed, seen
    (kept,) = project.latest.rglob("growing.txt")
    assert kept.stat().st_size == int(seen.rationale)
    (log,) = project.latest.rglob("stdout.log")
    assert log.read_text().startswith("began\nstill here\n")
    (pid,) = project.latest.rglob("pid")
    assert not is_running(int(pid.read_text()))


def is_running(pid: int) -> bool:
    """A zombie has ended; whoever adopted it has only not asked yet."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# -- 10: what the agent leaves for whoever grades it ----------------------------------------

SABOTEUR = """\
import os, pathlib, stat, sys

EVIL = (
    "import builtins, os, pathlib\\n"
    "pathlib.Path({mark!r}).touch()\\n"
    "os._exit(0)\\n"
)
mark = os.environ["MARK"]
home = pathlib.Path(os.environ["HOME"])
version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
site = home / ".local/lib" / version / "site-packages"
places = [pathlib.Path("."), pathlib.Path("output"), site, pathlib.Path("..")]
for place in places:
    place.mkdir(parents=True, exist_ok=True)
    for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "test_solution.py",
                 "unittest.py", "json.py", "ast.py", "random.py", "pytest.py"):
        (place / name).write_text(EVIL.format(mark=mark))
    (place / "evil.pth").write_text("import pathlib; pathlib.Path(%r).touch()\\n" % mark)
    (place / "pytest.ini").write_text("[pytest]\\naddopts = --co -q\\n")
    (place / "setup.cfg").write_text("[tool:pytest]\\naddopts = --co -q\\n")
    (place / "pyproject.toml").write_text("[tool.pytest.ini_options]\\naddopts = '--co -q'\\n")
    (place / "pyvenv.cfg").write_text("home = /nowhere\\n")
    for name in ("python", "python3", "pytest", "bwrap", "env", "sh"):
        (place / name).write_text(f"#!/bin/sh\\ntouch {mark}\\nexit 0\\n")
        (place / name).chmod(0o755)
pathlib.Path("output/solution.py").write_text(f"def square(n):\\n    return {os.environ['EXPRESSION']}\\n")
"""


@pytest.mark.parametrize(("expression", "passes"), [("n * n", True), ("n + n", False)])
def test_nothing_the_agent_leaves_takes_part_in_grading_or_collection(
    project: Project, monkeypatch: pytest.MonkeyPatch, expression: str, passes: bool
) -> None:
    """Row 10."""
    monkeypatch.setenv("HOME", str(project.path / "home"))
    monkeypatch.setenv("PATH", os.pathsep.join([".", "output", os.environ["PATH"]]))
    mark = project.path / "mark"
    project.suite(
        f"""\
        dataset: {{path: cases}}
        execution: {{env: {{MARK: "{mark}", EXPRESSION: "{expression}"}}}}
        runner: {{type: cli, command: ["{sys.executable}", "{{config_dir}}/saboteur.py"]}}
        judges:
          - {{name: right, builtin: python_tests, arguments: {{file: output/solution.py}}}}
        """
    )
    project.write("saboteur.py", SABOTEUR)
    tests = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(3) == 9\n"
    for number in (1, 2):
        project.case(f"case-{number}", annotations={"test": tests, "entry_point": "square"})
    result = project.run("--agent-eval", "--basetemp", str(project.path / "base"))
    result.assert_outcomes(**{"passed" if passes else "failed": 2})
    # The workspaces are still below the root directory: pytest must not look into them.
    again = project.run("--agent-eval", "--collect-only", "-q")
    assert again.ret == 0
    assert [line for line in again.outlines if "::" in line] == [
        "eval.yaml::case-1",
        "eval.yaml::case-2",
    ]
    assert not mark.exists()


# -- 11: what an agent can find out ---------------------------------------------------------

SPY = """\
import json, os, pathlib

seen = {"cwd": os.getcwd(), "env": dict(os.environ)}
seen["argv"] = pathlib.Path("/proc/self/cmdline").read_bytes().decode().split("\\0")
seen["inside"], seen["links"] = [], []
for root, directories, names in os.walk("."):
    for name in directories + names:
        path = os.path.join(root, name)
        seen["inside"].append(path)
        if os.path.islink(path) or os.path.realpath(path) != os.path.abspath(path):
            seen["links"].append([path, os.path.realpath(path)])
        if os.path.isfile(path):
            seen.setdefault("contents", []).append(pathlib.Path(path).read_text())
            seen.setdefault("hard links", []).append(os.stat(path).st_nlink)
seen["parents"] = {}
for parent in pathlib.Path.cwd().parents:
    try:
        seen["parents"][str(parent)] = sorted(os.listdir(parent))
    except OSError:
        pass
seen["descriptors"] = []
for number in os.listdir("/proc/self/fd"):
    try:
        seen["descriptors"].append(os.readlink(f"/proc/self/fd/{number}"))
    except OSError:
        pass
pathlib.Path("output/seen.json").write_text(json.dumps(seen))
"""


@pytest.mark.parametrize("policy", ["inherit", "clean"])
def test_an_agent_that_looks_around_finds_nothing_of_the_case(
    project: Project, tmp_path_factory: pytest.TempPathFactory, policy: str
) -> None:
    """Row 11: parents, links, environment, arguments, descriptors, the directory's name."""
    project.suite(
        f"""\
        dataset: {{path: hidden-dataset, workspace: {{files: [notes, note.md]}}}}
        execution: {{prompt: "{{message}}"}}
        runner:
          type: cli
          env_policy: {policy}
          command: ["{sys.executable}", "{{config_dir}}/spy.py", "{{prompt}}"]
        judges: [{{name: any, check: "return True"}}]
        """
    )
    project.write("spy.py", SPY)
    for name in ("refund-granted-7f3a", "refund-denied-91bc"):
        project.case(
            name,
            {"message": "hello"},
            {
                "expected_output": "KEY-ANSWER",
                "tags": {"KEY-tag": "KEY-value"},
                "category": "KEY-category",
            },
            dataset="hidden-dataset",
            answers__yaml="q: KEY-ANSWERS\n",
            reference__md="KEY-REFERENCE",
            note__md="a note",
        )
        project.write(f"hidden-dataset/{name}/notes/deep/a.md", "a deep note")
        os.symlink(
            project.path / "hidden-dataset" / name / "reference.md",
            project.path / "hidden-dataset" / name / "notes" / "linked.md",
        )
    base = tmp_path_factory.mktemp("elsewhere") / "base"
    result = project.run("--agent-eval", "--basetemp", str(base))
    result.assert_outcomes(passed=2)
    reports = [json.loads(path.read_text()) for path in project.latest.rglob("seen.json")]
    assert len({seen["cwd"] for seen in reports}) == len(reports) == 2
    for seen in reports:
        told = json.dumps(seen)
        for word in ("KEY-", "refund-granted", "refund-denied", "hidden-dataset"):
            assert word not in told, word
        for word in ("annotations.yaml", "answers.yaml", "reference.md"):
            assert word not in told, word
        assert "./notes/deep/a.md" in seen["inside"]
        assert "./input.yaml" in seen["inside"]
        assert seen["links"] == []
        assert set(seen["hard links"]) == {1}, "a hard link would let it edit the dataset"
        assert "dev" not in Path(seen["cwd"]).name
        assert "holdout" not in Path(seen["cwd"]).name
        assert not any(
            "results" in where or ".agent-eval/" in where for where in seen["descriptors"]
        )
        assert all("PYTEST" not in name for name in seen["env"])


# -- 13: hostile text -----------------------------------------------------------------------

HOSTILE_AGENT = """\
import json, os

EVIL = "esc \\x1b[31m\\x1b]0;title\\x07 nul \\x00 lone \\ud800\\udfff bom \\ufeff end \\u2028\\u202e\\x85 ]]> & <x>"

def run(task):
    (task.output_dir / "text.md").write_bytes(EVIL.encode("utf-8", "surrogatepass") + b"\\xff\\xfe")
    (task.output_dir / "bad.json").write_bytes(b'{"a": "\\xed\\xb0\\x80"}')
    (task.output_dir / "metrics.json").write_text(json.dumps({"cost_usd": 0.5, "model": EVIL}))
    with open(os.fsencode(task.output_dir) + b"/name-\\xff\\x1b.txt", "w") as stream:
        stream.write("x")
    with open(task.log_dir / "stderr.log", "wb") as stream:
        stream.write(b"stderr \\x1b[2J \\x00 \\xff\\xed\\xa0\\x80")
    if task.input["message"] == "raises":
        raise ValueError(EVIL)
    return EVIL
"""

HOSTILE_JUDGES = """\
  - name: says
    check: |
      import agent
      text = outputs['files']['output/text.md']
      return False, agent.EVIL + str(text) + outputs['stdout'] + outputs['final_message']
  - name: raises
    check: |
      import agent
      raise ValueError(agent.EVIL)
"""


def test_hostile_text_from_everywhere_leaves_every_report_readable(project: Project) -> None:
    """Row 13: output, files and their names, metrics, rationales and exceptions."""
    python_suite(project, HOSTILE_AGENT, HOSTILE_JUDGES)
    project.case("case-1", {"message": "returns"}, {"category": "c\u202e\x85", "tags": ["t\ufeff"]})
    project.case("case-2", {"message": "raises"})
    result = project.run("--agent-eval", "-v", "-rA", "--junitxml=report.xml")
    result.assert_outcomes(failed=2)
    for character in ("\x1b", "\x00", "\x07", "\x85", "\u202e", "\ud800"):
        assert character not in result.stdout.str() + result.stderr.str()
    ET.parse(project.path / "report.xml")
    stored = project.results()
    assert stored["case-1"].usage.cost_usd == 0.5
    for file in project.latest.rglob("*.json*"):
        if "files" not in file.relative_to(project.latest).parts:
            content = file.read_bytes()
            for line in content.splitlines() if file.suffix == ".jsonl" else [content]:
                json.loads(line.decode("utf-8"), parse_constant=pytest.fail)
    assert project.summary()["status"] == {"failed": 2}


# -- 14: YAML of all kinds ------------------------------------------------------------------

BROKEN: Mapping[str, tuple[bytes, str]] = {
    "tabs": (b"a:\n\tb: 1\n", "annotations.yaml:2"),
    "duplicate": (b"a: 1\nb: 2\na: 3\n", "annotations.yaml:3"),
    "nested-duplicate": (b"a:\n  b: 1\n  b: 2\n", "annotations.yaml:3"),
    "tags": (b"note: x\ntags: [no, on, 1.0]\n", "annotations.yaml:2"),
    "documents": (b"a: 1\n---\nb: 2\n", "annotations.yaml:2"),
    "latin": (b"a: 1\nnote: caf\xe9\n", "annotations.yaml:2"),
    "list": (b"- a\n", "annotations.yaml:1"),
    "text": (b"just text\n", "annotations.yaml:1"),
    "open": (b"a: 1\nb: [1\n", "annotations.yaml:"),
    "nul": (b"a: 1\nb: \x00\n", "annotations.yaml:2"),
}
FINE: Mapping[str, bytes] = {
    "bom": b"\xef\xbb\xbfcategory: caf\xc3\xa9\n",
    "empty": b"",
    "comment": b"# nothing\n",
    "null": b"null\n",
    "crlf": b"category: a\r\ntags: [a, b]\r\n",
    "end": b"---\ncategory: a\n...\n",
}


@pytest.mark.parametrize("locale", ["utf-8", "C"])
def test_each_bad_case_is_one_item_with_file_and_line(
    project: Project, monkeypatch: pytest.MonkeyPatch, locale: str
) -> None:
    """Row 14: the others run, also where the locale is not UTF-8."""
    project.suite(ECHO.replace("looked for copy.yaml", "gr\u00fc\u00dfe \u6848"))
    for name, (content, _) in BROKEN.items():
        project.case(name, annotations=content)
    for name, content in FINE.items():
        project.case(name, {"message": "gr\u00fc\u00dfe \u6848"}, content)
    run = project.run
    if locale == "C":
        monkeypatch.setenv("LC_ALL", "C")
        monkeypatch.setenv("PYTHONUTF8", "0")
        monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
        run = project.subprocess
    result = run("--agent-eval", "--junitxml=report.xml")
    result.assert_outcomes(passed=len(FINE), errors=len(BROKEN))
    for name, (_, place) in BROKEN.items():
        result.stdout.fnmatch_lines([f"{name}: *{place}*"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert "Error:" not in result.stderr.str()
    ET.parse(project.path / "report.xml")
    stored = project.results()
    assert {name for name, result in stored.items() if result.status == "error"} == set(BROKEN)
    assert stored["empty"].verdicts[0].rationale == "gr\u00fc\u00dfe \u6848"
    assert stored["bom"].category == "caf\u00e9"


def test_names_and_texts_do_not_depend_on_the_locale(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 14: the same halves and texts in a locale that is not UTF-8; where the locale has no
    characters for the name of a case, that case says so and the others run.
    """
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    project.suite(
        ECHO.replace("'looked for copy.yaml'", "outputs['files']['output/copy.yaml']")
        + 'execution: {prompt: "{message}"}\n'
    )
    for name in ("Gr\u00f6\u00dfe", "\u6848\u4f8b", "plain", "ascii-2"):
        project.case(name, {"message": "gr\u00fc\u00dfe"}, {"note": "gr\u00fc\u00dfe"})
    told = []
    for variables in ({"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        result = project.subprocess("--agent-eval")
        assert "Traceback" not in result.stdout.str() + result.stderr.str()
        stored = project.results()
        assert len(stored) == 4
        told.append(
            {
                name: (result.split, result.verdicts[0].rationale)
                for name, result in stored.items()
                if result.status == "passed"
            }
        )
        assert {result.kind for result in stored.values()} <= {"", "case"}
    assert len(told[0]) == 4
    assert {"plain", "ascii-2"} <= set(told[1])
    assert told[1].items() <= told[0].items()
    assert told[0]["plain"][1] == "message: gr\u00fc\u00dfe\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xef\xbb\xbf" + ECHO.encode(), ""),
        (ECHO.replace("\n", "\r\n").encode(), ""),
        (ECHO.encode() + b"---\na: 1\n", "eval.yaml:8:*"),
        (ECHO.encode() + b"name: again\n", "eval.yaml:8:*duplicate key*"),
        (ECHO.encode() + b"outputs:\n\t- {path: x}\n", "eval.yaml:9:*"),
        (ECHO.encode() + b"description: caf\xe9\n", "eval.yaml:8:*UTF-8*"),
    ],
)
def test_a_suite_of_odd_yaml_loads_or_says_where(project: Project, text: bytes, says: str) -> None:
    """Row 14, for eval.yaml itself."""
    project.write("eval.yaml", text)
    project.cases(1)
    result = project.run("--agent-eval")
    if says:
        assert result.ret == pytest.ExitCode.INTERRUPTED
        result.stdout.fnmatch_lines([f"*{says}"])
        assert "Traceback" not in result.stdout.str()
    else:
        result.assert_outcomes(passed=1)


# -- 15: nothing to run ---------------------------------------------------------------------

NOTHING_LEFT = {
    "tag": (["--agent-eval", "--agent-eval-tag", "nowhere"], "no case is left"),
    "tag value": (["--agent-eval", "--agent-eval-tag", "kind=other"], "no case is left"),
    "condition": (["--agent-eval", "--agent-eval-if", "False"], "no case is left"),
    "named file": (["eval.yaml", "--agent-eval-tag", "nowhere"], "no case is left"),
    "keyword": (["--agent-eval", "-k", "nowhere"], "deselected"),
    "marker": (["--agent-eval", "-m", "holdout"], "deselected"),
    "unknown marker": (["--agent-eval", "-m", "nowhere"], "nowhere"),
    "tag marker": (["--agent-eval", "-m", "tag(kind='other')"], "deselected"),
    "node id": (["eval.yaml::nowhere"], "nowhere"),
    "case directory": (["cases/nowhere"], "cases/nowhere"),
    "suite": (["nowhere/eval.yaml"], "nowhere/eval.yaml"),
    "directory": (["nowhere", "--agent-eval"], "nowhere"),
    "deselect": (["--agent-eval", "--deselect", "eval.yaml"], "deselected"),
    "workers": (["--agent-eval", "-n", "1", "--agent-eval-tag", "nowhere"], "no case is left"),
}


@pytest.mark.parametrize("what", NOTHING_LEFT)
def test_a_selection_of_nothing_is_never_green(project: Project, what: str) -> None:
    """Row 15: an exit status and a reason."""
    arguments, reason = NOTHING_LEFT[what]
    project.suite(ECHO.replace("{path: cases}", "{path: cases, split: {holdout: 0}}"))
    project.cases(2, tags={"kind": "one"})
    run = project.subprocess if what == "workers" else project.run
    result = run(*arguments)
    said = result.stdout.str() + result.stderr.str()
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.INTERNAL_ERROR)
    assert reason in said
    assert "Traceback" not in said
    assert " passed" not in said


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        ("{path: nowhere}", "nowhere"),
        ("{path: empty}", "empty"),
        ("{path: eval.yaml}", "eval.yaml"),
        ("{path: files}", "files"),
        ("{path: cases, cases: [{include: 'x*'}]}", "cases"),
        ("{path: cases, cases: [{exclude: '*'}]}", "cases"),
        ("{path: cases, if: \"name == 'x'\"}", "name == 'x'"),
        ("{path: cases, split: {default: holdout, holdout: 0}}", "holdout"),
    ],
)
def test_a_dataset_of_nothing_is_never_green(project: Project, dataset: str, reason: str) -> None:
    """Row 15: an exit status and a reason."""
    project.suite(ECHO.replace("{path: cases}", dataset))
    project.cases(2)
    (project.path / "empty").mkdir()
    project.write("files/readme.md", "no case")
    project.write("test_ordinary.py", "def test_it():\n    pass\n")
    result = project.run("--agent-eval")
    said = result.stdout.str() + result.stderr.str()
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.INTERNAL_ERROR)
    assert reason in said.split("collected", 1)[-1] or "no case is left" in said
    assert "Traceback" not in said


# -- 16: order and what crosses processes ---------------------------------------------------

SHUFFLED = """\
import os
import random

scandir, listdir = os.scandir, os.listdir
shuffle = random.Random(os.getpid()).shuffle


class Shuffled:
    def __init__(self, *args):
        with scandir(*args) as entries:
            self.entries = list(entries)
        shuffle(self.entries)

    def __iter__(self):
        return iter(self.entries)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def __next__(self):
        if not self.entries:
            raise StopIteration
        return self.entries.pop()

    def close(self):
        pass


def shuffled(*args):
    names = listdir(*args)
    shuffle(names)
    return names


os.scandir, os.listdir = Shuffled, shuffled
"""

ODD_JUDGES = """\
  - name: odd
    score_range: [0, 10]
    check: |
      import decimal, fractions, numpy
      kinds = (numpy.float64, numpy.int8, decimal.Decimal, fractions.Fraction, float)
      return kinds[outputs['input']['n'] % 5](3), {1, object, numpy.array([1, 2])[0]}
  - name: raises
    check: |
      class Odd(Exception):
          def __str__(self):
              return '\\ud800' if outputs['input']['n'] % 2 else None
      raise Odd(lambda: 1)
  - name: text
    check: "return True, lambda: 1"
thresholds: {raises: {max_error_rate: 1}}
"""


def test_any_order_of_listing_and_any_value_under_workers(project: Project) -> None:
    """Row 16."""
    project.write("shuffled.py", SHUFFLED)
    python_suite(
        project,
        "def run(task):\n    return {'since': str(task.input['since']), 3: [None]}\n",
        ODD_JUDGES,
    )
    for number in range(12):
        project.case(
            f"case-{number}",
            f"n: {number}\nsince: 2024-01-01\n",
            f"when: 2024-01-01 10:00:00\nblob: !!binary aGVsbG8=\nnot: .nan\nkeys: {{1: a}}\ncategory: '{number}'\n",
        )
    result = project.subprocess("-p", "shuffled", "--agent-eval", "-n", "3", "--junitxml=r.xml")
    assert "different tests" not in result.stdout.str().lower()
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*12 tolerated*"])
    stored = project.results()
    assert sorted(stored) == sorted(f"case-{number}" for number in range(12))
    for result_ in stored.values():
        odd, raises, text = result_.verdicts
        assert odd.value == 3
        assert type(odd.value) in (int, float)
        assert raises.error
        assert text.passed
    ET.parse(project.path / "r.xml")
    listed = [
        [line for line in run.outlines if "::" in line]
        for run in (
            project.subprocess("-p", "shuffled", "--agent-eval", "--collect-only", "-q")
            for _ in range(2)
        )
    ]
    assert listed[0] == listed[1] == [f"eval.yaml::case-{number}" for number in range(12)]


# -- 17: rows lost --------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", ["load", "worksteal"])
def test_no_row_is_lost_or_doubled_under_four_workers(project: Project, distribution: str) -> None:
    """Row 17: two suites whose cases have the same names, rationales longer than a page."""
    text = ECHO.replace("'looked for copy.yaml'", "'long ' * 4000")
    for folder in ("one", "two"):
        project.suite(text.replace("name: echo", f"name: {folder}"), name=f"{folder}/eval.yaml")
        for number in range(15):
            project.case(f"case-{number}", dataset=f"{folder}/cases")
    result = project.subprocess("--agent-eval", "-n", "4", "--dist", distribution)
    result.assert_outcomes(passed=30)
    lines = (project.latest / "results.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    found = sorted((row["suite"], row["case"]) for row in rows)
    wanted = sorted(
        (f"{folder}/eval.yaml", f"case-{number}")
        for folder in ("one", "two")
        for number in range(15)
    )
    assert found == wanted
    assert all(len(row["verdicts"][0]["rationale"]) == 20_000 for row in rows)
    summaries = project.summary()["suites"]
    assert sorted(summaries) == ["one/eval.yaml", "two/eval.yaml"]
    for summary in summaries.values():
        assert summary["judges"]["copied"]["scored_cases"] == 15
        assert len(summary["per_case"]) == 15
        assert summary["status"] == {"passed": 15}
    assert len(list(project.latest.rglob("record.json"))) == 30
    assert not list(project.latest.glob("results-*"))


# -- 18: reruns -------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n", "3")], ids=["alone", "workers"])
def test_reruns_are_one_row_a_case_and_each_call_is_paid_once(
    project: Project, workers: tuple[str, ...]
) -> None:
    """Row 18: three attempts of one case, each of which costs money; all but the last fail."""
    project.suite(
        """\
        dataset: {path: cases}
        runner:
          type: cli
          command: [sh, -c, "echo {message} >> {config_dir}/calls; echo '{\\"cost_usd\\": 0.25}' > {output_dir}/metrics.json;
            echo attempt $(grep -c {message} {config_dir}/calls)"]
        judges:
          - name: third
            check: return outputs['case'] != 'case-001' or 'attempt 3' in outputs['stdout']
        """
    )
    project.cases(4)
    plain = [word for name in ("cacheprovider", "randomly") for word in ("-p", f"no:{name}")]
    result = project.pytester.runpytest_subprocess(
        *plain, "--agent-eval", "--reruns", "4", "--junitxml=r.xml", *workers
    )
    assert result.ret == 0
    assert (result.parseoutcomes()["passed"], result.parseoutcomes()["rerun"]) == (4, 2)
    assert len((project.path / "calls").read_text().split()) == 6
    assert sorted(project.results()) == [f"case-{number:03d}" for number in range(1, 5)]
    summary = project.summary()
    assert len(summary["per_case"]) == 4
    assert summary["judges"]["third"]["scored_cases"] == 4
    assert summary["judges"]["third"]["pass_rate"] == 1
    assert summary["usage"]["cost_usd"] == 6 * 0.25
    attempts = sorted(path.name for path in (project.latest / "cases" / "case-001").iterdir())
    assert attempts == ["1", "1.2", "1.3"]
    assert len(ET.parse(project.path / "r.xml").findall(".//testcase")) >= 4


# -- 19: a budget for everything -----------------------------------------------------------------


@pytest.mark.parametrize("workers", [(), ("-n", "3")], ids=["alone", "workers"])
def test_a_budget_stops_what_has_not_started_in_all_workers(
    project: Project, workers: tuple[str, ...]
) -> None:
    """Row 19: running ones end, "not run: budget" is no failure and no pass."""
    project.suite(
        """\
        dataset: {path: cases}
        runner:
          type: cli
          command: [sh, -c, "echo '{\\"cost_usd\\": 0.5}' > {output_dir}/metrics.json; echo done"]
        execution: {parallelism: 1}
        judges: [{name: fine, check: return True}]
        thresholds: {fine: {min_pass_rate: 0.5}}
        """
    )
    project.cases(24)
    result = (project.subprocess if workers else project.run)(
        "--agent-eval", "--agent-eval-max-cost", "3", "-rs", *workers
    )
    outcomes = result.parseoutcomes()
    ran, processes = outcomes["passed"], 3 if workers else 1
    assert result.ret == 0
    assert 6 <= ran < 6 + 2 * processes, "at work or being judged when the budget was spent"
    assert outcomes["skipped"] == 24 - ran
    result.stdout.fnmatch_lines(["*not run: the session's budget of $3 is spent*"])
    summary = project.summary()
    assert summary["usage"]["cost_usd"] == 0.5 * ran
    assert summary["status"] == {"passed": ran, "skipped": 24 - ran}
    assert summary["judges"]["fine"]["scored_cases"] == ran
    assert summary["complete"] is False
    result.stdout.fnmatch_lines(["GATE fine min_pass_rate*not decided*"])


# -- 20: a judge that does not return -------------------------------------------------------

ENDLESS_JUDGES = """\
def loop(outputs):
    while True:
        pass

def stubborn(outputs):
    import time
    until = time.monotonic() + 600
    while time.monotonic() < until:
        try:
            time.sleep(0.01)
        except Exception:
            pass

def generator(outputs):
    return sum(1 for _ in iter(int, 1)), "never"

def waits(outputs):
    import threading
    threading.Event().wait(600)

def child(outputs):
    import subprocess, sys
    subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"], timeout=4)

def locked(outputs):
    import threading
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""


def test_judges_that_never_return_are_errors_and_the_session_goes_on(project: Project) -> None:
    """Row 20: pure loops, stubborn ones, and calls that cannot be interrupted."""
    names = ("loop", "stubborn", "generator", "waits", "child", "locked")
    judges = "".join(
        f"  - {{name: {name}, module: endless, function: {name}, timeout: 0.2, "
        f"if: \"input['message'] == '{name}'\"}}\n"
        for name in names
    )
    project.suite(
        ECHO + judges + "thresholds: {copied: {min_pass_rate: 1}}\nexecution: {parallelism: 1}\n"
    )
    project.write("endless.py", ENDLESS_JUDGES)
    for name in (*names, "last"):
        project.case(name)
    started = time.monotonic()
    result = project.subprocess("--agent-eval")
    assert time.monotonic() - started < 60, "sixty seconds are the limit without a timeout"
    result.assert_outcomes(failed=len(names), passed=1)
    stored = project.results()
    for name in names:
        verdicts = {verdict.judge: verdict for verdict in stored[name].verdicts}
        assert "did not return within 0.2 s" in verdicts[name].error
        assert verdicts[name].value is None
        assert verdicts["copied"].passed
        assert stored[name].kind == "judge"
    result.stdout.fnmatch_lines(["GATE copied min_pass_rate*passed*"])


# -- 21: what is not equal, and what is not code --------------------------------------------

AGAINST_ZERO = {
    '{"total": null}': False,
    '{"total": NaN}': False,
    '{"total": ""}': False,
    '{"total": "0"}': False,
    '{"total": false}': False,
    '{"total": []}': False,
    '{"total": {}}': False,
    '{"total": 1e-3}': False,
    '{"other": 0}': False,
    "{}": False,
    "null": False,
    "": False,
    "0": False,
    "[0]": False,
    '{"total": 0}': True,
    '{"total": 0.0}': True,
    '{"total": -0.0}': True,
    '{"total": 0, "more": 1}': True,
}


def test_nothing_else_equals_an_expected_zero(project: Project) -> None:
    """Row 21."""
    python_suite(
        project,
        "def run(task):\n    (task.output_dir / 'a.json').write_text(task.input['say'])\n    return 'done'\n",
        "  - {name: equal, builtin: matches_expected, arguments: {file: output/a.json}}",
    )
    for number, said in enumerate(AGAINST_ZERO):
        project.case(f"case-{number}", {"say": said}, {"expected_output": {"total": 0}})
    project.run("--agent-eval")
    stored = project.results()
    found = {
        said: stored[f"case-{number}"].verdicts[0].passed
        for number, said in enumerate(AGAINST_ZERO)
    }
    assert found == AGAINST_ZERO


INJECTION = (
    "__import__('pathlib').Path('HACKED').touch() or True; $(touch HACKED) `touch HACKED` "
    "{{ 7 * 7 }} {% for x in ().__class__.__base__.__subclasses__() %}{% endfor %} {cwd} "
    "{output_dir} !!python/object/apply:os.system ['touch HACKED'] %s \\x41 ' \" | tee HACKED"
)


def test_text_of_the_agent_and_of_the_input_is_never_evaluated(project: Project) -> None:
    """Row 21: not as Python, a template, a shell's words, YAML tags or a format."""
    project.suite(
        f"""\
        dataset: {{path: cases}}
        execution: {{prompt: "{{message}}"}}
        runner:
          type: cli
          command: ["{sys.executable}", "{{config_dir}}/echo.py", "{{prompt}}", "{{message}}"]
        judges:
          - name: told
            check: |
              import json
              first, second, _ = json.loads(outputs['files']['output/argv.json'])
              return first == second == outputs['input']['message'], first
          - {{name: contains, builtin: contains, arguments: {{text: "touch HACKED"}}}}
          - name: number
            builtin: matches_expected
            arguments: {{file: output/a.yaml, expected: annotations.data}}
          - name: guarded
            if: "'HACKED' in outputs['stdout']"
            check: return True
        """
    )
    project.write(
        "echo.py",
        """\
        import json, pathlib, sys
        pathlib.Path("output/argv.json").write_text(json.dumps([*sys.argv[1:3], sys.argv[2]]))
        pathlib.Path("output/a.yaml").write_text("!!python/object/apply:os.system ['touch HACKED']\\n")
        print(sys.argv[1])
        """,
    )
    project.case("case-1", {"message": INJECTION}, {"data": {"total": 0}})
    project.run("--agent-eval")
    verdicts = {verdict.judge: verdict for verdict in project.results()["case-1"].verdicts}
    assert verdicts["told"].passed
    assert verdicts["told"].rationale == INJECTION
    assert verdicts["contains"].passed
    assert verdicts["guarded"].passed
    assert verdicts["number"].passed is False
    assert "49" not in verdicts["told"].rationale
    assert not list(project.path.rglob("HACKED"))


# -- 22: a project that only has the plugin -------------------------------------------------

WATCH = """\
import sys
import threading

HEAVY = ("pydantic", "yaml", "jinja2", "litellm", "simpleeval", "psutil", "xxhash", "numpy")
BEFORE = {name for name in HEAVY if name in sys.modules}


def pytest_unconfigure(config):
    loaded = sorted({name for name in HEAVY if name in sys.modules} - BEFORE)
    threads = [t.name for t in threading.enumerate() if "agent" in t.name]
    rooms = sorted(
        name for name in sys.modules
        if name.startswith(("pytest_agent_eval.suite", "pytest_agent_eval.execution",
                            "pytest_agent_eval.judges", "pytest_agent_eval.runners"))
    )
    with open(f"seen-{config.workerinput['workerid'] if hasattr(config, 'workerinput') else 'main'}", "w") as out:
        out.write(f"{loaded} {threads} {rooms}")
"""

ORDINARY = """\
import pytest

@pytest.mark.parametrize("n", [1, 2])
def test_passes(n):
    pass

def test_fails():
    assert [1] == [2]

def test_skips():
    pytest.skip("why")

class TestClass:
    def test_method(self, tmp_path):
        assert tmp_path.is_dir()
"""


@pytest.mark.parametrize("arguments", [(), ("-n", "2"), ("--collect-only",), ("-q", "-rA")])
def test_a_project_without_suites_notices_nothing(
    project: Project, arguments: tuple[str, ...]
) -> None:
    """Row 22: the same output, files and threads as without the plugin; nothing imported."""
    project.write("watch.py", WATCH)
    project.write("test_ordinary.py", ORDINARY)
    project.write("evaluation.yaml", "a: 1\n")
    project.write("cases/case-1/input.yaml", "a: 1\n")
    outputs, files = [], []
    for switch in (("-p", "no:agent-eval"), ()):
        result = project.subprocess("-p", "watch", *switch, *arguments)
        assert result.parseoutcomes().get("failed", 0) == (
            0 if "--collect-only" in arguments else 1
        )
        outputs.append(sorted(_steady(result.outlines)))
        files.append(
            {
                str(path.relative_to(project.path))
                for path in project.path.rglob("*")
                if "__pycache__" not in path.parts and "runpytest" not in str(path)
            }
        )
    assert outputs[0] == outputs[1]
    assert files[0] == files[1]
    seen = sorted(project.path.glob("seen-*"))
    assert len(seen) == (3 if "-n" in arguments else 1)
    assert {path.read_text() for path in seen} == {"[] [] []"}


def _steady(lines: list[str]) -> list[str]:
    """Lines of a session without what differs from one to the next.

    Two workers end their tests in any order, and so come the letters of a progress line.
    """
    steady = [
        re.sub(r"runpytest-\d+|gw\d|\d+\.\d+s|\d+%|0x[0-9a-f]+", "X", line)
        for line in lines
        if not line.startswith(("plugins:", "gw", "bringing up", "created: "))
    ]
    return [
        "".join(sorted(line)) if re.fullmatch(r"[.FEsxX]+ +\[ *X\]", line) else line
        for line in steady
    ]
