"""Judges as a suite has them: made from eval.yaml, with condition, time limit and name."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import SuiteError
from pytest_agent_eval.judges import BoundJudge, Judge, JudgeContext, builtin_names, make_judges
from pytest_agent_eval.results import Verdict
from pytest_agent_eval.suite import Known, Suite, load_suite

RecordFactory = Callable[..., dict[str, Any]]
Write = Callable[..., Suite]
HEAD = """\
name: s
dataset: {path: cases}
runner: {type: cli, command: "true"}
judges:
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a suite with these judges (YAML, not indented) and load it."""

    def write(judges: str, *, more: str = "", known: Known | None = None) -> Suite:
        folder = tmp_path / "evals"
        (folder / "cases").mkdir(parents=True, exist_ok=True)
        path = folder / "eval.yaml"
        text = HEAD + textwrap.indent(textwrap.dedent(judges), "  ") + more
        path.write_text(text, "utf-8")
        return load_suite(path, rootdir=tmp_path, known=known or Known())

    return write


@pytest.fixture
def make(write: Write, tmp_path: Path) -> Callable[..., tuple[BoundJudge, ...]]:
    def make(judges: str, *, more: str = "", **settings: Any) -> tuple[BoundJudge, ...]:
        return make_judges(write(judges, more=more), rootdir=tmp_path, **settings)

    return make


Make = Callable[..., tuple[BoundJudge, ...]]


def problems(caught: pytest.ExceptionInfo[SuiteError]) -> list[tuple[str, int | None, str]]:
    return [(item.path, item.line, item.message) for item in caught.value.problems]


# -- check --------------------------------------------------------------------------------------


def test_check(make: Make, record: RecordFactory) -> None:
    (judge,) = make("""
        - name: short
          check: |
            size = len(outputs["main_content"])
            return size <= arguments["limit"], f"{size} characters"
          arguments: {limit: 3}
    """)
    assert (judge.name, judge.kind, judge.gated) == ("short", "check", False)
    verdict = judge.judge(record(main_content="abcd"))
    assert (verdict.judge, verdict.value, verdict.passed) == ("short", False, False)
    assert verdict.rationale == "4 characters"
    assert 0 < verdict.duration_s < 10
    assert judge.judge(record(main_content="abc")).passed is True


def test_traceback_points_into_eval_yaml(make: Make, record: RecordFactory, tmp_path: Path) -> None:
    (judge,) = make("""
        - name: broken
          check: |
            import json

            def helper(text):
                return json.loads(text)["x"]

            return helper(outputs["main_content"])
    """)
    text = (tmp_path / "evals/eval.yaml").read_text("utf-8").splitlines()
    inner = next(n for n, line in enumerate(text, 1) if "json.loads" in line)
    outer = next(n for n, line in enumerate(text, 1) if "return helper" in line)
    verdict = judge.judge(record(main_content="{}"))
    assert verdict.error == f"KeyError: 'x' (eval.yaml:{inner})"
    lines = verdict.detail.splitlines()
    assert lines == [
        f"{tmp_path}/evals/eval.yaml:{outer}: in check",
        '    return helper(outputs["main_content"])',
        f"{tmp_path}/evals/eval.yaml:{inner}: in helper",
        '    return json.loads(text)["x"]',
        "KeyError: 'x'",
    ]
    # The deepest frames are the standard library's: the user's line is named.
    verdict = judge.judge(record(main_content="nonsense"))
    assert verdict.error.startswith("JSONDecodeError: Expecting value")
    assert verdict.error.endswith(f"(eval.yaml:{inner})")
    assert "json/decoder" not in verdict.detail


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("raise SystemExit(3)", "SystemExit: 3 (eval.yaml:"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (eval.yaml:"),
        ("raise GeneratorExit", "GeneratorExit (eval.yaml:"),
        ("raise BaseException('own')", "BaseException: own (eval.yaml:"),
        ("raise ValueError('one\\ntwo')", "ValueError: one (eval.yaml:"),
        ("assert outputs['main_content']", "AssertionError (eval.yaml:"),
        ("assert 0, 'empty'", "AssertionError: empty (eval.yaml:"),
        ("def f(): f()\n    f()", "RecursionError: maximum recursion depth exceeded"),
        ("compile('(', 'x', 'exec')", "SyntaxError: '(' was never closed (eval.yaml:"),
        ("outputs['nothing']", "KeyError: 'nothing' (eval.yaml:"),
    ],
)
def test_whatever_a_check_raises_is_a_judge_error(
    make: Make, record: RecordFactory, statement: str, error: str
) -> None:
    body = textwrap.indent(statement.replace("\n    ", "\n"), "    ")
    (judge,) = make(f"- name: j\n  check: |\n{body}\n")
    verdict = judge.judge(record())
    assert verdict.error.startswith(error)
    assert "\n" not in verdict.error
    assert (verdict.value, verdict.passed, verdict.skipped) == (None, None, False)
    assert verdict.detail


def test_assertion_error_gets_advice(make: Make, record: RecordFactory) -> None:
    (judge,) = make("- {name: j, check: 'assert 1 == 2'}")
    assert "a check returns its verdict" in judge.judge(record()).error


def test_an_error_that_cannot_be_shown(make: Make, record: RecordFactory) -> None:
    (judge,) = make("""
        - name: j
          check: |
            class Mute(Exception):
                def __str__(self):
                    raise RuntimeError
            raise Mute
    """)
    assert "Mute" in judge.judge(record()).error


def test_deep_tracebacks_are_cut(make: Make, record: RecordFactory) -> None:
    (judge,) = make("""
        - name: j
          check: |
            def f(n):
                return f(n - 1) if n else 1 / 0
            return f(100)
    """)
    detail = judge.judge(record()).detail
    assert "more frames" in detail
    assert detail.count("in f") == 19


def test_a_check_without_return_has_no_value(make: Make, record: RecordFactory) -> None:
    (judge,) = make("- {name: j, check: 'x = 1'}")
    assert "no value" in judge.judge(record()).error


def test_syntax_error_is_found_at_its_line(make: Make, tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as caught:
        make("""
            - name: j
              check: |
                x = 1
                return (
        """)
    text = (tmp_path / "evals/eval.yaml").read_text("utf-8").splitlines()
    line = next(n for n, item in enumerate(text, 1) if "return (" in item)
    assert [item.line for item in caught.value.problems] == [line]


def test_checks_do_not_share_globals_or_arguments(make: Make, record: RecordFactory) -> None:
    judges = make("""
        - name: a
          check: |
            global leak
            leak = 1
            arguments["seen"].append(1)
            return len(arguments["seen"])
          arguments: {seen: []}
        - {name: b, check: 'return "leak" in globals()'}
    """)
    assert judges[0].judge(record()).value == 1
    assert judges[0].judge(record()).value == 1
    assert judges[1].judge(record()).value is False


# -- what applies to all kinds ------------------------------------------------------------------


def test_declared_values(make: Make, record: RecordFactory) -> None:
    judges = make("""
        - {name: range, check: return 7, score_range: [1, 5]}
        - {name: bool, check: return 1, feedback_type: bool}
        - {name: pass, check: return 4, pass_if: value >= 4.5}
        - {name: plain, check: return 4}
    """)
    verdicts = [judge.judge(record()) for judge in judges]
    assert "outside" in verdicts[0].error
    assert [item.value for item in verdicts[1:]] == [True, 4, 4]
    assert [item.passed for item in verdicts] == [None, True, False, None]


def test_gated_judges(make: Make) -> None:
    judges = make(
        "- {name: a, check: return True}\n- {name: b, check: return True}\n",
        more="thresholds:\n  b: {min_pass_rate: 0.9}\n",
    )
    assert [(judge.name, judge.gated) for judge in judges] == [("a", False), ("b", True)]


@pytest.mark.parametrize(
    ("condition", "judged"),
    [
        ("annotations['tier'] == 'gold'", True),
        ("annotations.get('category') == 'x'", True),
        ("input['n'] > 3", False),
        ("name == case == 'case-001'", True),
        ("split == 'holdout'", False),
        ("tags.get('lang') == 'de'", True),
        ("group == 'g' and trial == 1 and variant == None", True),
        ("len(outputs['main_content']) > 2", True),
    ],
)
def test_if(make: Make, record: RecordFactory, condition: str, judged: bool) -> None:
    (judge,) = make(f'- {{name: j, check: return True, if: "{condition}"}}')
    outputs = record(
        annotations={"tier": "gold", "category": "x"},
        input={"n": 3},
        tags={"lang": "de"},
        group="g",
        main_content="abc",
    )
    verdict = judge.judge(outputs)
    assert verdict.skipped is not judged
    if not judged:
        assert condition in verdict.rationale
        assert (verdict.value, verdict.passed, verdict.error) == (None, None, "")


def test_if_that_raises_is_a_judge_error_of_this_case(make: Make, record: RecordFactory) -> None:
    (judge,) = make("- {name: j, check: return True, if: \"annotations['tier'] == 1\"}")
    verdict = judge.judge(record())
    assert verdict.error.startswith("if: ")
    assert "tier" in verdict.error
    assert judge.judge(record(annotations={"tier": 1})).value is True


def test_if_reads_only_what_it_names(make: Make, record: RecordFactory) -> None:
    class Careful(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            if key == "input":
                raise RuntimeError("unreadable")
            return super().__getitem__(key)

    judges = make("""
        - {name: a, check: return True, if: "split == 'dev'"}
        - {name: b, check: return True, if: "input == 1"}
    """)
    outputs = Careful(record())
    assert judges[0].judge(outputs).value is True
    assert judges[1].judge(outputs).error.startswith("if: RuntimeError: unreadable")


def test_endless_loop_ends_at_its_timeout(make: Make, record: RecordFactory) -> None:
    (judge,) = make("- name: j\n  timeout: 0.3\n  check: |\n    while True: pass\n")
    verdict = judge.judge(record())
    assert verdict.error.startswith("did not return within 0.3 s, at eval.yaml:")
    # The judge and its thread are usable again.
    assert judge.judge(record()).error.startswith("did not return")


def test_endless_loop_that_catches_exceptions(make: Make, record: RecordFactory) -> None:
    (judge,) = make("""
        - name: j
          timeout: 0.3
          check: |
            while True:
                try:
                    while True: pass
                except Exception:
                    pass
    """)
    assert "did not return within 0.3 s" in judge.judge(record()).error


def test_cancelled(make: Make, record: RecordFactory) -> None:
    (judge,) = make("- name: j\n  check: |\n    while True: pass\n")
    cancelled = threading.Event()
    cancelled.set()
    assert judge.judge(record(), cancelled=cancelled).error == "cancelled: the session ended"


def test_a_blocked_judge_is_left_behind_and_the_process_ends(write: Write, tmp_path: Path) -> None:
    write("- {name: j, timeout: 0.2, check: 'import time; time.sleep(300)'}")
    script = f"""
import sys
from pathlib import Path
from pytest_agent_eval.judges import make_judges
from pytest_agent_eval.suite import load_suite
root = Path({str(tmp_path)!r})
suite = load_suite(root / "evals/eval.yaml", rootdir=root)
(judge,) = make_judges(suite, rootdir=root)
print(judge.judge({{}}).error)
"""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        # Not measured: a tracer of Python 3.11 spins while an interruption waits for a C call.
        env={key: value for key, value in os.environ.items() if not key.startswith("COVERAGE")},
    )
    assert done.returncode == 0, done.stderr
    assert "did not return within 0.2 s" in done.stdout
    assert "could not be interrupted and was left behind" in done.stdout
    assert time.monotonic() - started < 60


class Viewed(Mapping[str, Any]):
    """A record with views, as trials have."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def view(self) -> dict[str, Any]:
        return {key: dict(value) for key, value in self.data.items()}


def test_what_one_judge_writes_no_other_sees(make: Make) -> None:
    judges = make("""
        - {name: a, check: 'outputs["files"]["x"] = "forged"; return True'}
        - {name: b, check: 'return outputs["files"].get("x") is None'}
    """)
    outputs = Viewed({"files": {}})
    assert [judge.judge(outputs).passed for judge in judges] == [True, True]


def test_a_judge_is_called_many_times(make: Make, record: RecordFactory) -> None:
    (judge,) = make("- {name: j, check: return True, if: \"split == 'dev'\"}")
    outputs = record()
    assert all(judge.judge(outputs).value is True for _ in range(1000))


def test_judges_may_be_used_from_several_threads(make: Make, record: RecordFactory) -> None:
    (judge,) = make("- {name: j, check: 'return outputs[\"trial\"]'}")
    seen: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        seen[number] = [judge.judge(record(trial=number)).value for _ in range(50)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {number: [number] * 50 for number in range(8)}


# -- module and function ------------------------------------------------------------------------


def test_function(make: Make, record: RecordFactory, tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/tone_judges.py").write_text(
        "from root_helper import SCORE\n\n\n"
        "def tone(outputs, minimum, words=()):\n"
        "    words.append(1)\n"
        "    return SCORE >= minimum and len(words) == 1, outputs['main_content']\n",
        "utf-8",
    )
    (tmp_path / "root_helper.py").write_text("SCORE = 3\n", "utf-8")
    before = list(sys.path)
    (judge,) = make("""
        - name: tone
          module: tone_judges
          function: tone
          arguments: {minimum: 3, words: []}
    """)
    assert sys.path == before
    assert judge.kind == "function"
    for _ in range(2):
        verdict = judge.judge(record(main_content="hello"))
        assert (verdict.value, verdict.rationale) == (True, "hello")


def test_traceback_of_a_function(make: Make, record: RecordFactory, tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/raising_judges.py").write_text(
        "def tone(outputs):\n    return outputs['main']\n", "utf-8"
    )
    (judge,) = make("- {name: tone, module: raising_judges, function: tone}")
    verdict = judge.judge(record())
    assert verdict.error == "KeyError: 'main' (raising_judges.py:2)"
    assert verdict.detail.splitlines()[1] == "    return outputs['main']"


MODULE = """
import json as other
_hidden = 1
number = 3
def tone(outputs, minimum): return True
def style(outputs, **anything): return True
def positional(outputs, /): return True
def bare(): return True
class Group:
    @staticmethod
    def inner(outputs): return True
"""


@pytest.mark.parametrize(
    ("entry", "path", "said"),
    [
        ("module: some_judge, function: tone", ".module", "no module some_judge; looked into"),
        ("module: some_judge, function: tone", ".module", "did you mean some_judges?"),
        ("module: some_judges.sub, function: x", ".module", "not a package"),
        ("module: breaking, function: x", ".module", "ZeroDivisionError"),
        ("module: breaking, function: x", ".module", "(breaking.py:1)"),
        ("module: leaving, function: x", ".module", "SystemExit(3)"),
        ("module: needing, function: x", ".module", "nothing_of_that_name"),
        ("module: some_judges, function: ton", ".function", "did you mean tone?"),
        ("module: some_judges, function: zzz", ".function", "there is Group, bare, positional"),
        ("module: some_judges, function: number", ".function", "is no function but int"),
        (
            "module: some_judges, function: tone, arguments: {minimun: 3}",
            ".arguments.minimun",
            "did you mean minimum?",
        ),
        ("module: some_judges, function: tone", ".arguments", "minimum is required"),
        ("module: some_judges, function: bare", ".arguments", "no argument named outputs"),
        ("module: some_judges, function: positional", ".arguments", "no argument named outputs"),
        (
            "module: some_judges, function: style, arguments: {outputs: 1}",
            ".arguments.outputs",
            "always given",
        ),
    ],
)
def test_function_that_does_not_fit(
    make: Make, tmp_path: Path, entry: str, path: str, said: str
) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/some_judges.py").write_text(MODULE, "utf-8")
    (tmp_path / "evals/breaking.py").write_text("1 / 0\n", "utf-8")
    (tmp_path / "evals/leaving.py").write_text("raise SystemExit(3)\n", "utf-8")
    (tmp_path / "evals/needing.py").write_text("import nothing_of_that_name\n", "utf-8")
    with pytest.raises(SuiteError) as caught:
        make(f"- {{name: j, {entry}}}")
    places = problems(caught)
    assert ("judges[0]" + path) in [place for place, _, _ in places]
    assert any(said in message for _, _, message in places), places
    assert all(line is not None for _, line, _ in places)


@pytest.mark.parametrize(
    "entry",
    [
        "function: Group.inner",
        "function: style, arguments: {anything: 1}",
        "function: tone, arguments: {minimum: 1}",
    ],
)
def test_function_that_fits(make: Make, record: RecordFactory, tmp_path: Path, entry: str) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/some_judges.py").write_text(MODULE, "utf-8")
    (judge,) = make(f"- {{name: j, module: some_judges, {entry}}}")
    assert judge.judge(record()).value is True


# -- builtin ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cost_budget", "efficiency/cost_budget"])
def test_builtin(make: Make, record: RecordFactory, name: str) -> None:
    (judge,) = make(f"- {{name: cheap, builtin: {name}, arguments: {{max_cost_usd: 0.5}}}}")
    assert judge.kind == "builtin"
    assert judge.judge(record(cost_usd=0.5)).passed is True
    assert judge.judge(record(cost_usd=0.51)).passed is False


def test_a_verdict_of_a_builtin_gets_the_judges_name(make: Make, record: RecordFactory) -> None:
    (judge,) = make("- {name: right, builtin: matches_expected}")
    verdict = judge.judge(record(annotations={"expected_output": "a"}, main_content="b"))
    assert (verdict.judge, verdict.passed) == ("right", False)
    missing = judge.judge(record())
    assert "annotations has no expected_output" in missing.error
    assert missing.detail == ""


@pytest.mark.parametrize(
    ("arguments", "path", "said"),
    [
        ("{max_cost: 1}", ".arguments.max_cost", "did you mean max_cost_usd?"),
        ("{max_cost_usd: lots}", ".arguments.max_cost_usd", "must be a number, not 'lots'"),
        ("{max_cost_usd: true}", ".arguments.max_cost_usd", "must be a number, not True"),
    ],
)
def test_builtin_arguments(make: Make, arguments: str, path: str, said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        make(f"- {{name: j, builtin: cost_budget, arguments: {arguments}}}")
    ((place, line, message),) = problems(caught)
    assert place == "judges[0]" + path
    assert line is not None
    assert said in message


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("builtin: token_budget", "max_tokens is required"),
        ("builtin: token_budget, arguments: {max_tokens: 1.5}", "must be an integer"),
        ("builtin: consulted_docs, arguments: {match: glob}", "one of suffix, exact, basename"),
        ("builtin: consulted_docs, arguments: {include_grep: 1}", "must be true or false"),
        ("builtin: consulted_docs, arguments: {preloaded_files: [1]}", "a text or a list"),
        ("builtin: consulted_docs, arguments: {min_coverage: 80}", "between 0 and 1"),
        ("builtin: regex, arguments: {pattern: '('}", "no regular expression"),
        ("builtin: json_schema, arguments: {schema: [1]}", "a mapping or true or false"),
    ],
)
def test_arguments_of_other_builtins(make: Make, entry: str, said: str) -> None:
    with pytest.raises(SuiteError, match=said):
        make(f"- {{name: j, {entry}}}")


def test_shipped_builtins() -> None:
    names = builtin_names()
    assert list(names) == [
        "efficiency/cost_budget",
        "efficiency/duration_budget",
        "efficiency/token_budget",
        "efficiency/turn_budget",
        "process/consulted_docs",
        "process/tool_call_validation",
        "process/tools_used",
        "quality/contains",
        "quality/json_schema",
        "quality/matches_expected",
        "quality/output_completeness",
        "quality/python_tests",
        "quality/regex",
        "safety/no_harmful_content",
    ]
    assert set(names) <= Known().builtins


def test_builtins_of_a_project(write: Write, record: RecordFactory, tmp_path: Path) -> None:
    folder = tmp_path / "judges"
    (folder / "style").mkdir(parents=True)
    (folder / "_drafts").mkdir()
    (folder / "_drafts/x.py").write_text("1 / 0", "utf-8")
    (folder / "style/_helper.py").write_text("1 / 0", "utf-8")
    (folder / "style/polite.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n"
        "@dataclass\nclass Answer:\n    value: bool\n    rationale: str\n\n\n"
        "def judge(outputs, word='please'):\n"
        "    return Answer(word in outputs['main_content'], word)\n",
        "utf-8",
    )
    (folder / "flat.py").write_text("def judge(outputs, **anything): return anything['x']", "utf-8")
    names = builtin_names([folder])
    assert names["style/polite"] == str(folder / "style/polite.py")
    assert "flat" in names
    assert not any(name.rpartition("/")[2].startswith("_") for name in names)
    known = Known(builtins=Known().builtins | {"style/polite", "polite", "flat"})
    suite = write(
        """
        - {name: a, builtin: polite}
        - {name: b, builtin: style/polite, arguments: {word: thanks}}
        - {name: c, builtin: flat, arguments: {x: 3}}
        """,
        known=known,
    )
    judges = make_judges(suite, rootdir=tmp_path, builtin_dirs=[folder])
    verdicts = [judge.judge(record(main_content="please")) for judge in judges]
    assert [verdict.value for verdict in verdicts] == [True, False, 3]


def test_names_that_are_there_twice(tmp_path: Path) -> None:
    (tmp_path / "regex.py").write_text("", "utf-8")
    with pytest.raises(SuiteError, match="two builtin judges are named regex") as caught:
        builtin_names([tmp_path])
    message = caught.value.problems[0].message
    assert str(tmp_path / "regex.py") in message
    assert "quality" in message
    with pytest.raises(SuiteError, match="there is no directory"):
        builtin_names([tmp_path / "nothing"])
    # The same directory named twice is no clash.
    (tmp_path / "regex.py").rename(tmp_path / "own.py")
    assert "own" in builtin_names([tmp_path, tmp_path])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero (own.py:1)"),
        ("def jugde(outputs): ...", "defines no function judge(outputs, **arguments)"),
        ("def judge(record): ...", "takes no argument named outputs"),
    ],
)
def test_builtins_of_a_project_that_do_not_work(
    write: Write, tmp_path: Path, text: str, said: str
) -> None:
    folder = tmp_path / "judges"
    folder.mkdir()
    (folder / "own.py").write_text(text, "utf-8")
    suite = write("- {name: j, builtin: own}", known=Known(builtins=frozenset({"own"})))
    with pytest.raises(SuiteError) as caught:
        make_judges(suite, rootdir=tmp_path, builtin_dirs=[folder])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("cost_budgte", "did you mean cost_budget?"), ("zzz", "there is efficiency/cost_budget")],
)
def test_unknown_builtins(write: Write, tmp_path: Path, name: str, said: str) -> None:
    suite = write(f"- {{name: j, builtin: {name}}}", known=Known(builtins=frozenset({name})))
    with pytest.raises(SuiteError) as caught:
        make_judges(suite, rootdir=tmp_path)
    assert said in str(caught.value)


def test_a_category_must_be_the_right_one(write: Write, tmp_path: Path) -> None:
    name = "quality/cost_budget"
    suite = write(f"- {{name: j, builtin: {name}}}", known=Known(builtins=frozenset({name})))
    with pytest.raises(SuiteError, match=r"did you mean efficiency/cost_budget\?"):
        make_judges(suite, rootdir=tmp_path)


# -- the whole suite ----------------------------------------------------------------------------


def test_all_problems_are_reported_together(write: Write, tmp_path: Path) -> None:
    suite = write("""
        - {name: a, module: no_such_module_here, function: f}
        - {name: b, builtin: cost_budget, arguments: {limit: 1}}
        - {name: c, prompt_file: nowhere.md, feedback_type: bool, model: some/model}
        - {name: d, check: return True}
    """)
    with pytest.raises(SuiteError) as caught:
        make_judges(suite, rootdir=tmp_path)
    places = problems(caught)
    assert [place for place, _, _ in places] == [
        "judges[0].module",
        "judges[1].arguments.limit",
        "judges[2].prompt_file",
    ]
    assert places[2][2] == "nowhere.md: cannot be read: No such file or directory"
    assert [line for _, line, _ in places] == sorted(line or 0 for _, line, _ in places)


def test_kinds_of_plugins(write: Write, record: RecordFactory, tmp_path: Path) -> None:
    def length(context: JudgeContext) -> Judge:
        limit = context.config.extra
        assert context.place == "judges[0]"
        return lambda record: Verdict("", len(record["main_content"]) <= limit, detail="d")

    suite = write("- {name: j, length: 3}", known=Known(judge_kinds=frozenset({"length"})))
    (judge,) = make_judges(suite, rootdir=tmp_path, kinds={"length": length})
    assert judge.kind == "length"
    assert judge.judge(record(main_content="abc")).value is True
    with pytest.raises(SuiteError, match="unknown kind of judge: length"):
        make_judges(suite, rootdir=tmp_path)


def test_a_plugins_kind_that_refuses(write: Write, tmp_path: Path) -> None:
    def refuse(context: JudgeContext) -> Judge:
        from pytest_agent_eval.errors import JudgeError, Problem

        if context.config.name == "a":
            raise JudgeError("no server")
        raise SuiteError(Problem("no key"))

    suite = write(
        "- {name: a, remote: 1}\n- {name: b, remote: 1}\n",
        known=Known(judge_kinds=frozenset({"remote"})),
    )
    with pytest.raises(SuiteError) as caught:
        make_judges(suite, rootdir=tmp_path, kinds={"remote": refuse})
    assert [(place, message) for place, _, message in problems(caught)] == [
        ("judges[0]", "no server"),
        ("judges[1].remote", "no key"),
    ]
