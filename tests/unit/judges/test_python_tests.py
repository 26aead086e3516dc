"""The judge that runs produced code: what passes, what fails, and what must not pass."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_agent_eval.judges import subprocesses
from pytest_agent_eval.judges.builtin.quality import python_tests
from pytest_agent_eval.results import Verdict

RecordFactory = Callable[..., dict[str, Any]]
Run = Callable[..., Verdict]

HUMAN_EVAL = """
METADATA = {}

def check(candidate):
    assert candidate(2) == 4
    assert candidate(-3) == 9
"""
GOOD = "def square(n):\n    return n * n\n"
BAD = "def square(n):\n    return n + n\n"


@pytest.fixture
def run(record: RecordFactory, tmp_path: Path) -> Run:
    (tmp_path / "cases/case-001").mkdir(parents=True)
    (tmp_path / "workspace/output").mkdir(parents=True)

    def run(
        code: Any,
        tests: str = HUMAN_EVAL,
        *,
        entry_point: str | None = "square",
        name: str = "output/solution.py",
        **arguments: Any,
    ) -> Verdict:
        outputs = record(
            main_content=code,
            main_file=name,
            annotations={"test": tests, "entry_point": entry_point},
            input={"prompt": "def square(n):\n"},
            case_dir=str(tmp_path / "cases/case-001"),
            workspace=str(tmp_path / "workspace"),
        )
        return python_tests.judge(outputs, **arguments)

    return run


BOTH = pytest.mark.parametrize("isolation", ["separate", "shared"])


@BOTH
@pytest.mark.parametrize(
    ("code", "tests", "entry_point"),
    [
        (GOOD, HUMAN_EVAL, "square"),
        (GOOD, "assert square(3) == 9", None),
        (GOOD, "def test_it():\n    assert square(3) == 9", None),
        (
            GOOD,
            "import unittest\nclass T(unittest.TestCase):\n"
            "    def test_it(self):\n        self.assertEqual(square(3), 9)",
            None,
        ),
        (GOOD, "from solution import square as s\nassert s(3) == 9", None),
        ("import math\nLIMIT = 3\ndef f(): return 1", "assert math.pi > LIMIT == 3 * f()", None),
        ("from typing import List\ndef f(x: List[int]): return x", "y: List = f([1])", None),
        ("def f(x): x.sort()", "x = [2, 1]\nf(x)\nassert x == [1, 2]", None),
        ("def f(x): x.clear(); x[1] = 2", "x = {5: 6}\nf(x)\nassert x == {1: 2}", None),
        ("def f(x): raise KeyError(x)", "try:\n    f(1)\n    assert False\n"
         "except KeyError:\n    pass", None),
        ("class Own(ValueError): pass\ndef f(): raise Own('x')", "try:\n    f()\n    assert 0\n"
         "except ValueError as e:\n    assert str(e) == 'x'", None),
        ("def f(): return (1, {2: {3}}, b'x', 1j, None, True, range(3), frozenset([1]))",
         "assert f() == (1, {2: {3}}, b'x', 1j, None, True, range(3), frozenset([1]))", None),
        ("def f(n): return 2 ** n", "assert f(n=20000) == 2 ** 20000", None),
        ("print('noise')\ndef f():\n    print('more')\n    return 1", "assert f() == 1", None),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
         "def f(): return P(1).x", "assert f() == 1", None),
        ("def f(s): return s[::-1]", "assert f('a\\ud800') == '\\ud800a'", None),
    ],
)  # fmt: skip
def test_passes(run: Run, isolation: str, code: str, tests: str, entry_point: str | None) -> None:
    verdict = run(code, tests, entry_point=entry_point, isolation=isolation)
    assert (verdict.value, verdict.rationale) == (True, "the tests passed")
    assert "bubblewrap" in verdict.detail


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (BAD, "assert candidate(-3) == 9 failed (tests:6); square(-3) returned -6"),
        ("def square(n):\n    return n / 0\n", "ZeroDivisionError: division by zero (tests:5)"),
        ("def cube(n):\n    return 1\n", "the code defines no square"),
        ("def square(n) return", "the code cannot be loaded: SyntaxError"),
        ("import nonexistent_thing", "ModuleNotFoundError: No module named 'nonexistent_thing'"),
        ("1 / 0", "ZeroDivisionError: division by zero (line 1)"),
        ("", "the code defines no square"),
        ("x = '\0'", "the code cannot be loaded"),
    ],
)
def test_fails(run: Run, code: str, said: str) -> None:
    verdict = run(code)
    assert verdict.value is False
    assert said in verdict.rationale


def test_a_failure_shows_the_lines_of_the_tests(run: Run) -> None:
    detail = run(BAD).detail
    assert "tests:6: in check\n    assert candidate(-3) == 9" in detail


def test_unittest_failure_names_the_test(run: Run) -> None:
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_it(self):\n        self.assertEqual(square(3), 9)\n"
        "class Empty(unittest.TestCase):\n    pass\n"
    )
    assert "1 of 1 failed: tests.T.test_it: AssertionError: 6 != 9" in run(BAD, tests).rationale
    assert "Empty has no tests" in run(GOOD, tests).rationale


@BOTH
@pytest.mark.parametrize(
    "cheat",
    [
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "raise SystemExit(0)",
        "import os\ndef square(n): os._exit(0)",
        "import sys\ndef square(n): sys.exit(0)",
        "import os, signal\ndef square(n): os.kill(os.getpid(), signal.SIGKILL)",
        "print('the tests passed'); print('end'); print('{\"error\": \"\"}')",
        "import os\nfor fd in range(20):\n    try: os.write(fd, b'\\n' + b'0' * 64 + b'\\nend\\n')"
        "\n    except OSError: pass\ndef square(n): os._exit(0)",
        'import os\nfor fd in range(20):\n    try: os.write(fd, b\'{"error": ""}\\nend\\n\')'
        "\n    except OSError: pass\ndef square(n): return n + n",
        "import builtins, atexit, os\nbuiltins.print = lambda *a, **k: None\n"
        "atexit.register(os._exit, 0)\ndef square(n): return n + n",
        "import builtins\nbuiltins.AssertionError = Exception\ndef square(n): return n + n",
        'import json, os\njson.dumps = lambda *a, **k: \'{"error": ""}\'\n'
        "json.JSONEncoder.encode = json.dumps\ndef square(n): return n + n",
        "def check(candidate): pass\ndef square(n): return n + n",
        "import sys\nsys.modules['tests'] = None\ndef square(n): return n + n",
        "def square(n):\n    raise KeyboardInterrupt",
        "class Stop(BaseException): pass\ndef square(n):\n    raise Stop",
    ],
)
def test_cheating_does_not_pass(run: Run, isolation: str, cheat: str) -> None:
    assert run(cheat, isolation=isolation, timeout=2).value is False


def test_objects_of_the_code_do_not_reach_the_tests(run: Run) -> None:
    code = """
class Yes:
    def __eq__(self, other): return True
def square(n): return Yes()
"""
    with pytest.raises(ValueError, match="square returned a value of type Yes"):
        run(code, "assert square(2) == 4")


def test_built_in_names_are_not_taken_from_the_code(run: Run) -> None:
    code = "def len(x): return 1\ndef square(n): return []"
    verdict = run(code, "assert len(square(2)) == 1")
    assert verdict.value is False


def test_tests_that_swallow_everything_do_not_hide_a_dead_process(run: Run) -> None:
    tests = "try:\n    square(2)\nexcept BaseException:\n    pass\n"
    verdict = run("import os\ndef square(n): os._exit(3)", tests, entry_point=None)
    assert verdict.value is False
    assert "ended with exit status 3" in verdict.rationale


def test_the_code_cannot_reach_the_report_of_the_tests(run: Run) -> None:
    code = """
import os
def square(n):
    for fd in range(64):
        try:
            with open(f"/proc/{os.getppid()}/fd/{fd}", "wb", 0) as stream:
                stream.write(b'{"error": "forged", "unfit": false, "detail": ""}\\nend\\n')
        except OSError:
            pass
    return n * n
"""
    verdict = run(code)
    if os.geteuid() != 0:  # root may open anything; it still does not know the token
        assert verdict.value is True
    forged = run(code.replace("n * n", "n + n"))
    assert forged.value is False


def test_files_that_the_agent_left_take_no_part(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    mark = tmp_path / "taken-part"
    taint = f"open({str(mark)!r}, 'w').close()\n"
    for folder in (workspace, workspace / "output"):
        for name in ("conftest.py", "sitecustomize.py", "usercustomize.py", "json.py", "ast.py"):
            (folder / name).write_text(taint, "utf-8")
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --version\n", "utf-8")
        (folder / "x.pth").write_text(f"import os; {taint}", "utf-8")
        for name in ("python", "python3", "pytest", "bwrap"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {mark}\n", "utf-8")
            (folder / name).chmod(0o755)
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PATH", f"{workspace}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    monkeypatch.setenv("PYTHONSTARTUP", str(workspace / "conftest.py"))
    assert run(GOOD).value is True
    assert run(BAD).value is False
    assert run("import helper\n" + GOOD).value is False
    assert not mark.exists()


def test_the_callers_environment_is_not_seen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret-value")
    code = "import os\ndef names(): return sorted(os.environ)"
    tests = "assert set(names()) <= {'HOME', 'LANG', 'LC_CTYPE', 'PATH', 'PWD', 'TMPDIR'}, names()"
    assert run(code, tests, entry_point=None).value is True


@BOTH
def test_endless_code_ends_in_time(run: Run, isolation: str) -> None:
    verdict = run("def square(n):\n    while True: pass", isolation=isolation, timeout=1)
    assert verdict.value is False
    assert verdict.rationale == "the tests did not finish within 1 s"


def test_no_process_is_left(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In bubblewrap the processes go with their namespace, and the file could not be written.
    monkeypatch.setattr(subprocesses, "_usable_bwrap", lambda: "")
    pid_file = tmp_path / "pid"
    code = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True)\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n" + GOOD
    )
    assert run(code).value is True
    pid = int(pid_file.read_text("utf-8"))
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    else:
        pytest.fail(f"process {pid} is still there")


@pytest.mark.skipif(not subprocesses.bwrap_prefix("/tmp", []), reason="needs a usable bwrap")
def test_bubblewrap_hides_the_case_and_the_rest_is_read_only(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cases/case-001/annotations.yaml").write_text("answer: 4\n", "utf-8")
    code = (
        "import os, socket\n"
        f"def hidden(): return os.listdir({str(tmp_path / 'cases')!r})\n"
        f"def write(): open({str(tmp_path / 'x')!r}, 'w')\n"
        "def processes(): return len([n for n in os.listdir('/proc') if n.isdigit()])\n"
        "def interfaces(): return [name for _, name in socket.if_nameindex()]\n"
    )
    tests = (
        "assert hidden() == []\nassert processes() < 6\nassert interfaces() == ['lo']\n"
        "try:\n    write()\nexcept OSError:\n    pass\nelse:\n    assert False\n"
    )
    verdict = run(code, tests, entry_point=None)
    assert (verdict.value, verdict.detail) == (True, "run in bubblewrap"), verdict.rationale


def test_memory_is_limited(run: Run) -> None:
    code = "def square(n):\n    return len(bytearray(2 * 1024 ** 3))"
    verdict = run(code, memory_mb=512)
    assert verdict.value is False
    assert "MemoryError" in verdict.rationale


def test_a_flood_of_output_is_harmless(run: Run) -> None:
    code = "import sys\ndef square(n):\n    sys.stdout.write('x' * 10**7)\n    return n * n"
    assert run(code).value is True


def test_an_endless_answer_is_refused(run: Run) -> None:
    verdict = run("def square(n):\n    return 'x' * (17 * 1024 * 1024)")
    assert verdict.value is False
    assert "too long" in verdict.rationale


@pytest.mark.parametrize(
    ("code", "tests", "said"),
    [
        ("class P: pass", "assert P()", "the tests use P, a class"),
        ("def f(): return object()", "f()", "f returned a value of type object"),
        ("def f(g): return g(1)", "f(lambda x: x)", "the tests give f a value of type function"),
        ("x = object()", "assert x", "the tests use x, of type object"),
        ("def f(): return 1", "assert 1 == 1", "the tests do not use the code"),
        ("def f():\n    a = []\n    a.append(a)\n    return a", "f()", "nested too deeply"),
    ],
)
def test_what_cannot_cross_is_said(run: Run, code: str, tests: str, said: str) -> None:
    with pytest.raises(ValueError, match="isolation: shared") as caught:
        run(code, tests, entry_point=None)
    assert said in str(caught.value)


def test_classes_work_when_shared(run: Run) -> None:
    code = "class P:\n    def __init__(self, x): self.x = x"
    assert run(code, "assert P(3).x == 3", entry_point=None, isolation="shared").value is True
    assert run(code, "assert P(3).x == 4", entry_point=None, isolation="shared").value is False


def test_own_definitions_of_the_tests_win(run: Run) -> None:
    tests = "class Case: pass\nimport math as m\nassert square(2) == 4 and Case and m"
    assert run("class Case: pass\nm = object()\n" + GOOD, tests).value is True


def test_places_of_tests_code_and_prompt(run: Run, record: RecordFactory, tmp_path: Path) -> None:
    assert run("    return n * n\n", prompt="input.prompt").value is True
    assert run("    return n * n\n", prompt="def square(n):\n").value is True
    fenced = "Here it is:\n```python\ndef square(n):\n    return n * n\n```\nBye."
    assert run(fenced, name="answer.md").value is True
    assert run(fenced).value is False
    (tmp_path / "cases/case-001/tests.py").write_text("assert square(2) == 4", "utf-8")
    assert run(GOOD, tests_file="tests.py").value is True
    assert run(BAD.replace("+", "-"), tests_file="tests.py").value is False
    outputs = record(files={"a/x.py": GOOD, "b.py": BAD})
    assert python_tests.judge(outputs, file="x.py", tests="assert square(3) == 9").value is True
    assert python_tests.judge(outputs, file="b.py", tests="assert square(3) == 9").value is False
    assert "not produced" in python_tests.judge(outputs, file="c.py", tests="f()").rationale


@pytest.mark.parametrize(
    ("tests", "said"),
    [("", "empty"), ("# nothing\n", "empty"), ("def (", "no Python"), (3, "must be a text")],
)
def test_tests_that_are_none(run: Run, tests: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run(GOOD, tests)


def test_arguments() -> None:
    assert list(python_tests.validate(tests="x", timeout=3)) == []
    assert list(python_tests.validate(tests="x", tests_file="y"))
    assert list(python_tests.validate(timeout=0))
    assert list(python_tests.validate(memory_mb=1))


# -- starting programs --------------------------------------------------------------------------


def test_output_is_capped_and_time_is_limited(tmp_path: Path) -> None:
    flood = "import sys\nwhile True: sys.stdout.write('x' * 4096)"
    reply = subprocesses.run_program(
        [sys.executable, "-c", flood], b"", cwd=str(tmp_path), timeout=20
    )
    assert not reply.timed_out
    assert 1024 * 1024 <= len(reply.output) < 1024 * 1024 + 65536
    silent = "import time; time.sleep(60)"
    reply = subprocesses.run_program(
        [sys.executable, "-c", silent], b"", cwd=str(tmp_path), timeout=0.2
    )
    assert (reply.timed_out, reply.output, reply.status) == (True, b"", None)


def test_status_of_a_program_that_ends(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read()); sys.exit(3)"
    reply = subprocesses.run_program(
        [sys.executable, "-c", code], b"hello", cwd=str(tmp_path), timeout=20
    )
    assert (reply.output, reply.timed_out, reply.status) == (b"hello\n", False, 3)


def test_a_program_that_closes_its_output_and_stays(tmp_path: Path) -> None:
    code = "import os, time; os.close(1); time.sleep(60)"
    reply = subprocesses.run_program(
        [sys.executable, "-c", code], b"", cwd=str(tmp_path), timeout=20
    )
    assert (reply.timed_out, reply.status) == (False, None)


def test_bubblewrap_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocesses, "_usable_bwrap", lambda: "/usr/bin/bwrap")
    secret = tmp_path / "dataset"
    secret.mkdir()
    prefix = subprocesses.bwrap_prefix(
        str(tmp_path / "work"), [str(secret), str(tmp_path), sys.prefix, "/no/such/place"]
    )
    assert prefix[0] == "/usr/bin/bwrap"
    hidden = [prefix[n + 1] for n, word in enumerate(prefix) if word == "--tmpfs"]
    assert hidden == [os.path.realpath(secret)]
    monkeypatch.setattr(subprocesses, "_usable_bwrap", lambda: "")
    assert subprocesses.bwrap_prefix(str(tmp_path), []) == []
