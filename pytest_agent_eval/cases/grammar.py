"""What a condition may consist of: an allow-list over Python's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

from pytest_agent_eval.errors import ConditionError

__all__ = ["FUNCTIONS", "MAPPING_METHODS", "SEQUENCE_METHODS", "TEXT_METHODS", "check_expression"]

MAX_NODES = 200

FUNCTIONS = frozenset(
    {
        *("abs", "all", "any", "bool", "float", "int", "len"),
        *("max", "min", "round", "sorted", "str", "sum"),
    }
)
MAPPING_METHODS = frozenset({"get", "items", "keys", "values"})
SEQUENCE_METHODS = frozenset({"count", "index"})
TEXT_METHODS = frozenset(
    {
        "casefold",
        "count",
        "endswith",
        "find",
        "index",
        "isalnum",
        "isalpha",
        "isdigit",
        "islower",
        "isnumeric",
        "isspace",
        "isupper",
        "lower",
        "lstrip",
        "removeprefix",
        "removesuffix",
        "rsplit",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "upper",
    }
)
METHODS = MAPPING_METHODS | SEQUENCE_METHODS | TEXT_METHODS

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_PLAIN = (
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.Dict,
    ast.IfExp,
    ast.List,
    ast.Set,
    ast.Slice,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
)
"""Nodes that may hold anything that is allowed itself."""

_OPERATORS = (
    *(ast.And, ast.Or, ast.Not),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn),
)

_CALLED = {
    ast.Await: "await",
    ast.FormattedValue: "an f-string",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "lambda",
    ast.NamedExpr: ":=",
    ast.Starred: "*",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}


def check_expression(tree: ast.expr, names: frozenset[str]) -> frozenset[str]:
    """The names that an expression reads, if it holds nothing that conditions do not have.

    Args:
        tree: the expression.
        names: what it may read.

    Raises:
        ConditionError: says what is not allowed, and what would do.
    """
    parts = sum(isinstance(node, ast.expr | ast.comprehension) for node in ast.walk(tree))
    if parts > MAX_NODES:
        raise ConditionError(f"too large: {parts} parts, where {MAX_NODES} are allowed")
    checker = _Checker(names)
    checker.check(tree, frozenset())
    return frozenset(checker.reads)


class _Checker:
    """Walks one expression; ``local`` holds the loop variables around a node."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.reads: set[str] = set()

    def check(self, node: ast.AST, local: frozenset[str]) -> None:
        if isinstance(node, ast.Name):
            self._name(node.id, local)
        elif isinstance(node, ast.Constant):
            if not isinstance(node.value, str | int | float | None):
                _refuse(f"{ast.unparse(node)} is not allowed; texts and numbers are")
        elif isinstance(node, ast.Call):
            self._call(node, local)
        elif isinstance(node, ast.Attribute):
            _refuse(_attribute_message(node.attr))
        elif isinstance(node, ast.GeneratorExp):
            _refuse("a generator is allowed as an argument only, as in any(...); use [...]")
        elif isinstance(node, _Comprehension):
            self._comprehension(node, local)
        elif isinstance(node, _PLAIN):
            self._children(node, local)
        else:
            _refuse(f"{_CALLED.get(type(node), type(node).__name__)} is not allowed")

    def _children(self, node: ast.AST, local: frozenset[str]) -> None:
        if isinstance(node, ast.Dict) and None in node.keys:
            _refuse("** is not allowed")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (*_OPERATORS, ast.expr_context)):
                continue
            if isinstance(child, ast.operator | ast.unaryop):
                _refuse(f"the operator {type(child).__name__} is not allowed")
            self.check(child, local)

    def _name(self, name: str, local: frozenset[str]) -> None:
        if name in local:
            return
        if name not in self._names:
            _refuse(_unknown_name(name, self._names | local))
        self.reads.add(name)

    def _call(self, node: ast.Call, local: frozenset[str]) -> None:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id not in FUNCTIONS:
                near = _nearest(function.id, FUNCTIONS)
                known = near or f"; there are {', '.join(sorted(FUNCTIONS))}"
                _refuse(f"{function.id}(): there is no such function{known}")
        elif isinstance(function, ast.Attribute):
            if function.attr not in METHODS:
                _refuse(f".{function.attr}() is not allowed{_nearest(function.attr, METHODS)}")
            self.check(function.value, local)
        else:
            _refuse("only functions and methods can be called, by their name")
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(argument, ast.GeneratorExp):
                self._comprehension(argument, local)
            else:
                self.check(argument, local)
        if any(keyword.arg is None for keyword in node.keywords):
            _refuse("** is not allowed")

    def _comprehension(self, node: _Comprehension, local: frozenset[str]) -> None:
        for generator in node.generators:
            if generator.is_async:
                _refuse("async is not allowed")
            self.check(generator.iter, local)
            local |= self._targets(generator.target)
            for condition in generator.ifs:
                self.check(condition, local)
        if isinstance(node, ast.DictComp):
            self.check(node.key, local)
            self.check(node.value, local)
        else:
            self.check(node.elt, local)

    def _targets(self, node: ast.expr) -> frozenset[str]:
        """The names that a loop binds."""
        if isinstance(node, ast.Name):
            if node.id in self._names:
                _refuse(f"{node.id} has a meaning already; give the loop variable another name")
            if node.id.startswith("__"):
                _refuse(f"{node.id}: a loop variable must not begin with two underscores")
            return frozenset({node.id})
        if not isinstance(node, ast.Tuple | ast.List):
            _refuse("a loop variable must be a name")
        return frozenset().union(*(self._targets(item) for item in node.elts))


def _unknown_name(name: str, known: frozenset[str]) -> str:
    if name in FUNCTIONS:
        return f"{name} is a function; call it, as in {name}(...)"
    near = _nearest(name, known)
    if near:
        return f"{name}: unknown name{near}"
    if "annotations" in known and not name.startswith("_"):
        return f"{name}: unknown name; for an annotation write annotations.get({name!r})"
    return f"{name}: unknown name; there are {', '.join(sorted(known))}"


def _attribute_message(name: str) -> str:
    if name in METHODS:
        return f".{name} is a method; call it, as in .{name}(...)"
    if name.startswith("_"):
        return f".{name} is not allowed"
    return f".{name} is not allowed; write ['{name}'] or .get('{name}')"


def _nearest(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _refuse(message: str) -> NoReturn:
    raise ConditionError(message)
