"""Evaluates conditions with simpleeval, so that no condition can keep a session busy.

:mod:`.grammar` has refused everything that could reach further than the values in the scope. What
is left is work: every node costs a step of a budget, and :mod:`.operations` charges more for what
walks over its operands.

Imports simpleeval; imported when the first condition is compiled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

from simpleeval import EvalWithCompoundTypes

from pytest_agent_eval.cases.operations import (
    BINARY,
    FUNCTIONS,
    UNARY,
    Budget,
    call_method,
    compare,
    looped,
    pick,
)

__all__ = ["bind", "evaluate"]


def evaluate(tree: ast.expr, names: dict[str, Any]) -> Any:
    """The value of an expression that :func:`.grammar.check_expression` has let pass.

    Raises:
        ConditionError: it takes too much work, or makes too large a value.
        Exception: whatever the expression raises.
    """
    evaluator = _Evaluator(names)
    value = evaluator._eval(tree)
    if isinstance(value, list | tuple | set | dict):
        # Whoever prints it must not be kept busy either.
        evaluator.budget.weigh(value)
    return value


class _Evaluator(EvalWithCompoundTypes):  # type: ignore[misc]
    """One evaluation.

    simpleeval makes its tables of nodes and operators anew for every instance, which takes longer
    than a condition does; ours are made once, so its constructor is not called.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.budget = Budget()

    def _eval(self, node: ast.AST) -> Any:
        self.budget.charge(1)
        return _NODES[type(node)](self, node)

    def _eval_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _eval_name(self, node: ast.Name) -> Any:
        return self.names[node.id]

    def _eval_unaryop(self, node: ast.UnaryOp) -> Any:
        value = self._eval(node.operand)
        return UNARY[type(node.op)](value)

    def _eval_binop(self, node: ast.BinOp) -> Any:
        left, right = self._eval(node.left), self._eval(node.right)
        return BINARY[type(node.op)](self.budget, left, right)

    def _eval_compare(self, node: ast.Compare) -> Any:
        left = self._eval(node.left)
        result: Any = True
        for comparison, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._eval(comparator)
            result = compare(self.budget, type(comparison), left, right)
            if not result:
                break
            left = right
        return result

    def _eval_subscript(self, node: ast.Subscript) -> Any:
        container = self._eval(node.value)
        return pick(self.budget, container, self._eval(node.slice))

    def _eval_set(self, node: ast.Set) -> set[Any]:
        return {self.budget.hashable(self._eval(item)) for item in node.elts}

    def _eval_dict(self, node: ast.Dict) -> dict[Any, Any]:
        return {
            self.budget.hashable(self._eval(key)): self._eval(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    # -- comprehensions --------------------------------------------------------------------

    def _eval_list_comprehension(self, node: ast.ListComp) -> list[Any]:
        return [self._within(names, node.elt) for names in self._loop(node, 0, self.names)]

    def _eval_set_comprehension(self, node: ast.SetComp) -> set[Any]:
        return {
            self.budget.hashable(self._within(names, node.elt))
            for names in self._loop(node, 0, self.names)
        }

    def _eval_dict_comprehension(self, node: ast.DictComp) -> dict[Any, Any]:
        return {
            self.budget.hashable(self._within(names, node.key)): self._within(names, node.value)
            for names in self._loop(node, 0, self.names)
        }

    def _eval_generator(self, node: ast.GeneratorExp) -> Iterator[Any]:
        # Lazy, so that any() and all() stop where Python's would.
        return (self._within(names, node.elt) for names in self._loop(node, 0, self.names))

    def _loop(self, node: Any, depth: int, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The names in sight in each round of a comprehension, from its loop at ``depth`` on."""
        loop: ast.comprehension = node.generators[depth]
        for item in looped(self._within(names, loop.iter)):
            self.budget.charge(1)
            inner = dict(names)
            bind(loop.target, item, inner)
            if all(self._within(inner, condition) for condition in loop.ifs):
                if depth + 1 < len(node.generators):
                    yield from self._loop(node, depth + 1, inner)
                else:
                    yield inner

    def _within(self, names: dict[str, Any], node: ast.expr) -> Any:
        before, self.names = self.names, names
        try:
            return self._eval(node)
        finally:
            self.names = before

    # -- calls -----------------------------------------------------------------------------

    def _eval_call(self, node: ast.Call) -> Any:
        function = node.func
        target = self._eval(function.value) if isinstance(function, ast.Attribute) else None
        name: str = function.attr if isinstance(function, ast.Attribute) else function.id  # type: ignore[attr-defined]
        arguments = [self._eval(argument) for argument in node.args]
        named = {item.arg or "": self._eval(item.value) for item in node.keywords}
        if name not in ("any", "all"):
            arguments = [
                list(item) if isinstance(item, GeneratorType) else item for item in arguments
            ]
        if isinstance(function, ast.Attribute):
            return call_method(self.budget, target, name, arguments, named)
        return FUNCTIONS[name](self.budget, *arguments, **named)


def bind(target: ast.expr, value: Any, names: dict[str, Any]) -> None:
    """Bind loop variables, as ``for key, (a, b) in ...`` does."""
    if isinstance(target, ast.Name):
        names[target.id] = value
        return
    parts: list[ast.expr] = target.elts  # type: ignore[attr-defined]
    if len(looped(value)) != len(parts):
        raise ValueError(f"a loop over {len(parts)} variables met {len(value)} values")
    for part, item in zip(parts, value, strict=True):
        bind(part, item, names)


_NODES: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.BinOp: _Evaluator._eval_binop,
    ast.BoolOp: _Evaluator._eval_boolop,
    ast.Call: _Evaluator._eval_call,
    ast.Compare: _Evaluator._eval_compare,
    ast.Constant: _Evaluator._eval_constant,
    ast.Dict: _Evaluator._eval_dict,
    ast.DictComp: _Evaluator._eval_dict_comprehension,
    ast.GeneratorExp: _Evaluator._eval_generator,
    ast.IfExp: _Evaluator._eval_ifexp,
    ast.List: _Evaluator._eval_list,
    ast.ListComp: _Evaluator._eval_list_comprehension,
    ast.Name: _Evaluator._eval_name,
    ast.Set: _Evaluator._eval_set,
    ast.SetComp: _Evaluator._eval_set_comprehension,
    ast.Slice: _Evaluator._eval_slice,
    ast.Subscript: _Evaluator._eval_subscript,
    ast.Tuple: _Evaluator._eval_tuple,
    ast.UnaryOp: _Evaluator._eval_unaryop,
}
