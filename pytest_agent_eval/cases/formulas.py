"""Formulas over numbers with names: what ``reward.formula`` is written in.

A formula is assignments, if any, and an expression at the end. It is held against an allow-list
when it is compiled, and evaluated by what evaluates conditions (:mod:`.evaluation`), never by
``eval``. It knows numbers only: no texts, no attributes, no loops, no ``**``.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pytest_agent_eval.errors import ConditionError

__all__ = ["FORMULA_FUNCTIONS", "Formula", "MissingValue", "compile_formula"]

MAX_SOURCE = 10_000
MAX_NODES = 200
MAX_NUMBER = 1_000_000
FORMULA_FUNCTIONS = frozenset({"min", "max", "abs", "round", "sum", "len", "mean"})
_ALLOWED = (
    ast.Module, ast.Expr, ast.Assign, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Call,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.UnaryOp, ast.USub,
    ast.UAdd, ast.Not, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Eq, ast.NotEq, ast.Lt,
    ast.LtE, ast.Gt, ast.GtE, ast.IfExp, ast.List, ast.Tuple,
)  # fmt: skip


class MissingValue(Exception):
    """A formula reads a name that has no value.

    Attributes:
        name: which.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Values(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise MissingValue(name)


class Formula:
    """A compiled formula; made by :func:`compile_formula`. Usable from several threads."""

    __slots__ = ("_assignments", "_expression", "source")

    def __init__(self, source: str, tree: ast.Module) -> None:
        self.source = source
        self._assignments = [one for one in tree.body if isinstance(one, ast.Assign)]
        last = tree.body[-1]
        assert isinstance(last, ast.Expr)
        self._expression = last.value

    def value(self, values: Mapping[str, float]) -> float:
        """What the formula comes to: a finite number.

        Args:
            values: name -> number; a name without one may be left out as long as the branch that
                reads it is not taken.

        Raises:
            MissingValue: a name that is read has no value.
            ConditionError: it raised, or comes to something else than a finite number.
        """
        from pytest_agent_eval.cases.evaluation import bind, evaluate

        names = _Values(values)
        try:
            for statement in self._assignments:
                result = evaluate(statement.value, names)
                for target in statement.targets:
                    bind(target, result, names)
            result = evaluate(self._expression, names)
        except (MissingValue, ConditionError):
            raise
        except Exception as error:
            raise ConditionError(f"raised {type(error).__name__}: {error}") from None
        if not isinstance(result, int | float) or not math.isfinite(result):
            raise ConditionError(f"comes to {str(result)[:40]}, which is no number")
        return float(result)


def compile_formula(source: str, names: Iterable[str]) -> Formula:
    """Compile a formula that may read ``names``.

    Raises:
        ConditionError: says what is not allowed, and what would do.
    """
    text = source.strip()
    if len(text) > MAX_SOURCE:
        raise ConditionError(f"is longer than {MAX_SOURCE:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of no concern to the suite's run
            tree = ast.parse(text)
        nodes = list(ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error) or "nested too deeply"
        raise ConditionError(f"is no expression: {said}") from None
    if len(nodes) > MAX_NODES:
        raise ConditionError(f"has {len(nodes)} parts; at most {MAX_NODES} are allowed")
    for node in nodes:
        problem = _wrong(node)
        if problem:
            raise ConditionError(problem)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        raise ConditionError("must end in an expression: that is its value")
    known = set(names)
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            _check_names(statement.value, known)
            for target in statement.targets:
                known |= _assigned(target)
        else:
            assert isinstance(statement, ast.Expr)
            if statement is not tree.body[-1]:
                raise ConditionError("only its last statement may be an expression")
            _check_names(statement.value, known)
    return Formula(text, tree)


def _wrong(node: ast.AST) -> str:
    """What is not allowed about one part of a formula, names aside; empty if it is."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            return ""
        if not isinstance(value, int | float) or value != value or value in (math.inf, -math.inf):
            return f"must hold numbers and names only, not {value!r}"
        if abs(value) > MAX_NUMBER:
            return f"the number {value} is too large; at most {MAX_NUMBER}"
    elif isinstance(node, ast.Call):
        function = node.func
        known = isinstance(function, ast.Name) and function.id in FORMULA_FUNCTIONS
        if not known or node.keywords:
            call = "with names" if known else ast.unparse(function)[:40]
            return f"may call {', '.join(sorted(FORMULA_FUNCTIONS))} only, not {call}"
    elif not isinstance(node, _ALLOWED):
        return f"{type(node).__name__} is not allowed in a formula"
    return ""


def _check_names(expression: ast.expr, known: set[str]) -> None:
    called = {id(node.func) for node in ast.walk(expression) if isinstance(node, ast.Call)}
    for node in ast.walk(expression):
        if not isinstance(node, ast.Name) or id(node) in called or node.id in known:
            continue
        if node.id in FORMULA_FUNCTIONS:
            raise ConditionError(f"{node.id} is a function; call it, as in {node.id}(...)")
        raise ConditionError(f"unknown name {node.id}{_hint(node.id, known)}")


def _hint(name: str, known: set[str]) -> str:
    close = get_close_matches(name, sorted(known), n=1)
    if close:
        return f"; did you mean {close[0]}?"
    unwritable = next((one for one in sorted(known) if not one.isidentifier() and name in one), "")
    if unwritable:
        return f"; {unwritable!r} is no name that a formula can hold: rename that judge"
    return f"; there are {', '.join(sorted(known))}" if known else ""


def _assigned(target: ast.expr) -> set[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return {name for part in target.elts for name in _assigned(part)}
    assert isinstance(target, ast.Name)
    if target.id.startswith("_"):
        raise ConditionError(f"{target.id}: a name must not begin with _")
    return {target.id}
