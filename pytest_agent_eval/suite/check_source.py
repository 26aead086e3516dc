"""Compiling the ``check`` of a judge: the body of a function, with eval.yaml's own line numbers."""

from __future__ import annotations

import ast
import textwrap
import warnings
from types import CodeType

from pytest_agent_eval.errors import Problem, SuiteError

__all__ = ["compile_check"]

_FUNCTION = "def check(outputs, arguments):\n    pass\n"


def compile_check(source: str, *, file: str, line: int, name: str) -> CodeType:
    """Compile the body of a function of ``outputs`` and ``arguments``.

    Executing the code defines ``check(outputs, arguments)``.

    Args:
        source: the body.
        file: shown in tracebacks.
        line: 1-based line of ``file`` on which the body starts.
        name: of the judge, for messages.

    Raises:
        SuiteError: a body that does not compile, at its line of ``file``.
    """
    try:
        with warnings.catch_warnings():
            # Warnings about style (an escape, `is` with a number) would fail under -W error.
            warnings.simplefilter("ignore")
            return compile(_module(source, line), file, "exec", dont_inherit=True)
    except SyntaxError as error:
        said, at = error.msg, error.lineno or line
    except (ValueError, RecursionError, MemoryError) as error:
        said, at = str(error) or "nested too deeply", line
    message = f"the check of {name} does not compile: {said}"
    raise SuiteError(Problem(message, file=file, line=at))


def _module(source: str, line: int) -> ast.Module:
    """A module that defines the function, at the lines of the file.

    The body becomes a function as a tree: indenting its text would also indent what its
    multi-line strings hold.
    """
    if source[:1].isspace():
        source = textwrap.dedent(source)
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        error.lineno = (error.lineno or 1) + line - 1
        raise
    if not body:
        raise ValueError("it holds no statement")
    module = ast.parse(_FUNCTION)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    for statement in body:
        ast.increment_lineno(statement, line - 1)
    function.body = body
    function.lineno = function.end_lineno = line
    return module
