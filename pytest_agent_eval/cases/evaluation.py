"""Evaluates conditions with simpleeval, so that no condition can keep a session busy.

:mod:`.grammar` has refused everything that could reach further than the values in the scope. What
is left is work. Every node costs a step of a budget, and an operation that walks over its operands
costs more, by their size. Values can share their parts (a list of one long list, many times), and
comparing or writing out such a value costs what it would have without the sharing; so the size is
counted before it is done.

Imports simpleeval; imported when the first condition is compiled.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from types import GeneratorType
from typing import Any

from simpleeval import EvalWithCompoundTypes

from pytest_agent_eval.cases.grammar import MAPPING_METHODS, SEQUENCE_METHODS, TEXT_METHODS
from pytest_agent_eval.errors import ConditionError

__all__ = ["evaluate"]

MAX_STEPS = 200_000
"""A step takes about half a microsecond."""
MAX_LENGTH = 100_000
"""Of a text or list that an expression makes by ``*`` or ``+``."""
MAX_BITS = 4_096
"""Of a whole number that an expression makes; about 1,200 decimal digits."""

_Sized = (str, list, tuple)
_Container = (list, tuple, set, dict)


def evaluate(tree: ast.expr, names: dict[str, Any]) -> Any:
    """The value of an expression that :func:`.grammar.check_expression` has let pass.

    Raises:
        ConditionError: it takes too much work, or makes too large a value.
        Exception: whatever the expression raises.
    """
    evaluator = _Evaluator(names)
    value = evaluator._eval(tree)
    if isinstance(value, _Container):  # whoever prints it must not be kept busy either
        evaluator._weigh(value)
    return value


class _Evaluator(EvalWithCompoundTypes):  # type: ignore[misc]
    """One evaluation.

    simpleeval builds tables of its nodes and operators for every instance, which takes longer than
    a condition does; ours are made once.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._left = MAX_STEPS

    def _eval(self, node: ast.AST) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _too_much()
        return _NODES[type(node)](self, node)

    # -- budget ----------------------------------------------------------------------------

    def _charge(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _too_much()

    def _weigh(self, value: Any) -> int:
        """Count a value's parts as if nothing were shared, and charge for them."""
        weight = 0
        stack = [value]
        while stack:
            item = stack.pop()
            weight += 1
            if isinstance(item, str):
                weight += len(item) >> 6
            elif isinstance(item, dict):
                weight += len(item)
                stack.extend(item.values())
            elif isinstance(item, _Container):
                stack.extend(item)
            if weight + len(stack) > self._left:
                raise _too_much()
        self._charge(weight)
        return weight

    # -- nodes -----------------------------------------------------------------------------

    def _eval_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _eval_name(self, node: ast.Name) -> Any:
        return self.names[node.id]

    def _eval_unaryop(self, node: ast.UnaryOp) -> Any:
        value = self._eval(node.operand)
        return _UNARY[type(node.op)](value)

    def _eval_binop(self, node: ast.BinOp) -> Any:
        left, right = self._eval(node.left), self._eval(node.right)
        return _BINARY[type(node.op)](self, left, right)

    def _eval_compare(self, node: ast.Compare) -> Any:
        left = self._eval(node.left)
        result: Any = True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._eval(comparator)
            kind = type(op)
            if kind in (ast.In, ast.NotIn):
                self._weigh_membership(left, right)
            elif (
                isinstance(left, _Container)
                and isinstance(right, _Container)
                # Unequal lengths decide == at once, and most comparisons are with [] or {}.
                and (len(left) == len(right) or kind not in (ast.Eq, ast.NotEq))
            ):
                self._weigh(left)
                self._weigh(right)
            result = _COMPARE[kind](left, right)
            if not result:
                return result
            left = right
        return result

    def _weigh_membership(self, item: Any, container: Any) -> None:
        if isinstance(container, str):
            self._charge(len(container) >> 11)
        elif isinstance(container, list | tuple):
            if isinstance(item, _Container):
                self._weigh(container)
            self._charge(len(container))
        if isinstance(item, tuple):  # its hash walks over it
            self._weigh(item)

    def _eval_subscript(self, node: ast.Subscript) -> Any:
        container = self._eval(node.value)
        key = self._eval(node.slice)
        if not isinstance(container, (*_Sized, Mapping)):
            raise TypeError(f"{_kind(container)} has no parts to pick by [...]")
        if isinstance(key, slice):
            self._charge(len(container) >> 4)
        elif isinstance(key, tuple):
            self._weigh(key)
        return container[key]

    def _eval_set(self, node: ast.Set) -> set[Any]:
        return {self._hashable(self._eval(item)) for item in node.elts}

    def _eval_dict(self, node: ast.Dict) -> dict[Any, Any]:
        return {
            self._hashable(self._eval(key)): self._eval(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    def _hashable(self, value: Any) -> Any:
        if isinstance(value, tuple):
            self._weigh(value)
        return value

    # -- comprehensions --------------------------------------------------------------------

    def _eval_list_comprehension(self, node: ast.ListComp) -> list[Any]:
        return [self._within(names, node.elt) for names in self._loop(node, 0, self.names)]

    def _eval_set_comprehension(self, node: ast.SetComp) -> set[Any]:
        return {
            self._hashable(self._within(names, node.elt))
            for names in self._loop(node, 0, self.names)
        }

    def _eval_dict_comprehension(self, node: ast.DictComp) -> dict[Any, Any]:
        return {
            self._hashable(self._within(names, node.key)): self._within(names, node.value)
            for names in self._loop(node, 0, self.names)
        }

    def _eval_generator(self, node: ast.GeneratorExp) -> Iterator[Any]:
        # Lazy, so that any() and all() stop where Python's would.
        return (self._within(names, node.elt) for names in self._loop(node, 0, self.names))

    def _loop(self, node: Any, depth: int, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The names in sight for each round of a comprehension, from its loop at ``depth`` on."""
        loop = node.generators[depth]
        for item in _looped(self._within(names, loop.iter)):
            self._charge(1)
            inner = dict(names)
            _bind(loop.target, item, inner)
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
        arguments = [self._eval(argument) for argument in node.args]
        named = {item.arg or "": self._eval(item.value) for item in node.keywords}
        if isinstance(function, ast.Attribute):
            return self._method(target, function.attr, arguments, named)
        name: str = function.id  # type: ignore[attr-defined]
        if name not in ("any", "all"):
            arguments = [
                list(item) if isinstance(item, GeneratorType) else item for item in arguments
            ]
        return _FUNCTIONS[name](self, *arguments, **named)

    def _method(self, target: Any, name: str, arguments: list[Any], named: dict[Any, Any]) -> Any:
        if isinstance(target, str):
            allowed, cost = TEXT_METHODS, len(target) >> 5
            size = sum(len(item) for item in arguments if isinstance(item, str))
            cost += (len(target) * size) >> 14 if name.endswith("strip") else size >> 6
        elif isinstance(target, Mapping):
            allowed, cost = MAPPING_METHODS, 0 if name == "get" else len(target)
            for argument in arguments:
                self._hashable(argument)
        elif isinstance(target, list | tuple):
            allowed, cost = SEQUENCE_METHODS, len(target)
            if any(isinstance(argument, _Container) for argument in arguments):
                self._weigh(target)
        else:
            allowed, cost = frozenset(), 0
        if name not in allowed:
            raise TypeError(f"{_kind(target)} has no .{name}()")
        self._charge(cost)
        result = getattr(target, name)(*arguments, **named)
        # A view of a mapping would be compared and looked through as no list is.
        return list(result) if name in ("items", "keys", "values") else result

    def _call_len(self, value: Any) -> int:
        return len(value)

    def _call_any(self, items: Any) -> bool:
        return any(self._each(items))

    def _call_all(self, items: Any) -> bool:
        return all(self._each(items))

    def _each(self, items: Any) -> Any:
        if isinstance(items, GeneratorType):
            return items
        self._charge(len(items) >> 2)
        return _looped(items)

    def _call_sum(self, items: Any, start: Any = 0) -> Any:
        for item in (start, *self._each(items)):
            if not isinstance(item, int | float | timedelta):
                raise TypeError(f"sum() adds numbers, not {_kind(item)}")
        self._charge(len(items) >> 2)
        return _bounded(sum(items, start))

    def _call_sorted(self, items: Any, **named: Any) -> list[Any]:
        weight = self._weigh(items)
        self._charge((weight * weight.bit_length()) >> 3)
        return sorted(_looped(items), **named)

    def _call_min(self, *items: Any, **named: Any) -> Any:
        self._weigh(list(items))
        return min(*items, **named)

    def _call_max(self, *items: Any, **named: Any) -> Any:
        self._weigh(list(items))
        return max(*items, **named)

    def _call_str(self, value: Any = "") -> str:
        if isinstance(value, GeneratorType):
            raise TypeError("str() writes values, not a loop")
        self._weigh(value)
        return str(value)

    def _call_int(self, value: Any = 0, base: int = 10) -> int:
        if isinstance(value, str):
            if len(value) > MAX_BITS >> 2:
                raise ConditionError("makes too large a number")
            return int(value, base)
        number: int = _bounded(int(value))
        return number

    def _call_float(self, value: Any = 0.0) -> float:
        return float(value)

    def _call_bool(self, value: Any = False) -> bool:
        return bool(value)

    def _call_abs(self, value: Any) -> Any:
        return abs(value)

    def _call_round(self, value: Any, digits: Any = None) -> Any:
        if digits is not None and not -400 <= digits <= 400:
            raise ConditionError("rounds to too many digits")
        return round(value, digits)

    # -- operators -------------------------------------------------------------------------

    def _add(self, left: Any, right: Any) -> Any:
        if _is_sized(left) and _is_sized(right):
            self._make(len(left) + len(right))
        return _bounded(left + right)

    def _multiply(self, left: Any, right: Any) -> Any:
        if isinstance(right, _Sized):
            left, right = right, left
        if isinstance(left, _Sized) and isinstance(right, int):
            self._make(len(left) * max(right, 0))
        return _bounded(left * right)

    def _make(self, length: int) -> None:
        """Charge for a text or list that is about to be made."""
        if length > MAX_LENGTH:
            raise ConditionError(f"makes something longer than {MAX_LENGTH:,}")
        self._charge(length >> 4)

    def _subtract(self, left: Any, right: Any) -> Any:
        return _bounded(left - right)

    def _divide(self, left: Any, right: Any) -> Any:
        return left / right

    def _floor_divide(self, left: Any, right: Any) -> Any:
        return left // right

    def _modulo(self, left: Any, right: Any) -> Any:
        if not isinstance(left, int | float):
            raise TypeError(f"% needs numbers, not {_kind(left)}")
        return left % right

    def _power(self, base: Any, exponent: Any) -> Any:
        if not isinstance(base, int | float) or not isinstance(exponent, int | float):
            raise TypeError("** needs numbers")
        if isinstance(base, int) and isinstance(exponent, int):
            bits = max(base.bit_length(), 1) * abs(exponent)
            if bits > MAX_BITS:
                raise ConditionError("makes too large a number")
        return _bounded(base**exponent)


def _too_much() -> ConditionError:
    return ConditionError(f"takes too much work: more than {MAX_STEPS:,} steps")


def _is_sized(value: Any) -> bool:
    return isinstance(value, _Sized)


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ConditionError("makes too large a number")
    return value


def _looped(value: Any) -> Any:
    """What a comprehension may walk over."""
    if isinstance(value, (*_Sized, set, Mapping)):
        return value
    raise TypeError(f"{_kind(value)} has no items to walk over")


def _bind(target: ast.expr, value: Any, names: dict[str, Any]) -> None:
    """Bind loop variables, as ``for key, (a, b) in ...`` does."""
    if isinstance(target, ast.Name):
        names[target.id] = value
        return
    parts: list[ast.expr] = target.elts  # type: ignore[attr-defined]
    items = list(_looped(value))
    if len(items) != len(parts):
        raise ValueError(f"a loop over {len(parts)} variables met {len(items)} values")
    for part, item in zip(parts, items, strict=True):
        _bind(part, item, names)


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    names = {str: "a text", list: "a list", bool: "a boolean", int: "a number", float: "a number"}
    if value is None:
        return "None"
    if isinstance(value, date):
        return "a date"
    return names.get(type(value), f"a {type(value).__name__}")


_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}
_BINARY: dict[type[ast.AST], Callable[[_Evaluator, Any, Any], Any]] = {
    ast.Add: _Evaluator._add,
    ast.Div: _Evaluator._divide,
    ast.FloorDiv: _Evaluator._floor_divide,
    ast.Mod: _Evaluator._modulo,
    ast.Mult: _Evaluator._multiply,
    ast.Pow: _Evaluator._power,
    ast.Sub: _Evaluator._subtract,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name.removeprefix("_call_"): function
    for name, function in vars(_Evaluator).items()
    if name.startswith("_call_")
}
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
