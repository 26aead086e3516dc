from __future__ import annotations

import traceback
import types
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.errors import SuiteError
from pytest_agent_eval.suite.check_source import compile_check


def run(source: str, **outputs: Any) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile_check(source, file="eval.yaml", line=10, name="a"), namespace)
    return namespace["check"](outputs, {"n": 1})


def test_a_body_returns() -> None:
    assert run("import re\nreturn bool(re.match('a', outputs['x'])), arguments['n']", x="ab") == (
        True,
        1,
    )
    assert run("pass") is None


def test_strings_of_several_lines_stay_as_they_are() -> None:
    assert run('return """a\nb"""') == "a\nb"


def test_an_indented_body() -> None:
    assert run("  x = 1\n  return x\n") == 1


def test_a_traceback_has_the_lines_of_the_file() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run("x = 0\n\nreturn 1 / x\n")
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno == 12
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == "eval.yaml"


@pytest.mark.parametrize(
    ("source", "line", "word"),
    [
        ("x = (1\nreturn True", 10, "does not compile"),
        ("x = 1\n\nreturn x x", 12, "does not compile"),
        ("x = 1\nbreak\n", 11, "break"),
        ("x = 1\nawait x\n", 11, "await"),
        ("x = 1\nnonlocal x\n", 11, "nonlocal"),
        ("# nothing\n", 10, "no statement"),
        ("", 10, "no statement"),
        ("x = '\ud800'", 10, "does not compile"),
        ("a = 1\0", 10, "null bytes"),
        ("x = 1\n  return x", 11, "indent"),
    ],
)
def test_what_does_not_compile(source: str, line: int, word: str) -> None:
    with pytest.raises(SuiteError) as caught:
        compile_check(source, file="eval.yaml", line=10, name="quality")
    (problem,) = caught.value.problems
    assert problem.line == line
    assert problem.file == "eval.yaml"
    assert "quality" in problem.message
    assert word in problem.message


def test_deep_nesting() -> None:
    with pytest.raises(SuiteError, match="does not compile"):
        compile_check("x = " + "-" * 100_000 + "1", file="e", line=1, name="a")


def test_style_warnings_are_not_errors() -> None:
    assert run(r"return 1 is 1, '\d'") == (True, r"\d")


def test_future_imports_do_not_leak() -> None:
    assert run("def f(x: int): ...\nreturn f.__annotations__['x']") is int


@given(st.text(max_size=60))
def test_any_text_compiles_or_is_a_suite_error(source: str) -> None:
    try:
        code = compile_check(source, file="e", line=1, name="a")
    except SuiteError as error:
        lines = [problem.line for problem in error.problems]
    else:
        lines = [1]
        assert isinstance(code, types.CodeType)
    assert all(lines)
