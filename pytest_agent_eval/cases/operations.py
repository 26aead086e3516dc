"""The operators, functions and methods of conditions, each with a bound on the work it does.

Every operation that walks over its operands is charged for by their size. Values can share their
parts (a list that holds one long list many times), and comparing or writing out such a value costs
what it would without the sharing; so the size is counted before that is done.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from types import GeneratorType
from typing import Any

from pytest_agent_eval.cases.grammar import MAPPING_METHODS, SEQUENCE_METHODS, TEXT_METHODS
from pytest_agent_eval.errors import ConditionError

__all__ = [
    "BINARY",
    "FUNCTIONS",
    "UNARY",
    "Budget",
    "call_method",
    "compare",
    "looped",
    "pick",
]

MAX_STEPS = 200_000
"""A step takes about half a microsecond."""
MAX_LENGTH = 100_000
"""Of a text or list that an expression makes by ``*`` or ``+``."""
MAX_BITS = 4_096
"""Of a whole number that an expression makes; about 1,200 decimal digits."""
MAX_ROUND = 400
"""Digits to round to; a double has no more than 308 before its point."""

_SEQUENCE = (str, list, tuple)
_CONTAINER = (list, tuple, set, dict)


class Budget:
    """The work that is left to one evaluation, in steps."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_STEPS

    def charge(self, steps: int) -> None:
        """Take steps.

        Raises:
            ConditionError: none are left.
        """
        self.left -= steps
        if self.left < 0:
            raise ConditionError(f"takes too much work: more than {MAX_STEPS:,} steps")

    def weigh(self, value: Any) -> int:
        """Count the parts of a value as if nothing were shared, and charge for them."""
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
            elif isinstance(item, _CONTAINER):
                stack.extend(item)
            if weight + len(stack) > self.left:
                break
        self.charge(weight + len(stack))
        return weight

    def hashable(self, value: Any) -> Any:
        """A key of a mapping or an item of a set; the hash of a tuple walks over it."""
        if isinstance(value, tuple):
            self.weigh(value)
        return value

    def make(self, length: int) -> None:
        """Charge for a text or list that is about to be made."""
        if length > MAX_LENGTH:
            raise ConditionError(f"makes something longer than {MAX_LENGTH:,}")
        self.charge(length >> 4)


def compare(budget: Budget, kind: type[ast.cmpop], left: Any, right: Any) -> Any:
    """``left == right``, ``left in right`` and so on."""
    if kind in (ast.In, ast.NotIn):
        _weigh_membership(budget, left, right)
    elif (
        isinstance(left, _CONTAINER)
        and isinstance(right, _CONTAINER)
        # Unequal lengths decide == at once, and most comparisons are with [] or {}.
        and (len(left) == len(right) or kind not in (ast.Eq, ast.NotEq))
    ):
        budget.weigh(left)
        budget.weigh(right)
    return _COMPARE[kind](left, right)


def _weigh_membership(budget: Budget, item: Any, container: Any) -> None:
    budget.hashable(item)
    if isinstance(container, str):
        budget.charge(len(container) >> 11)
    elif isinstance(container, list | tuple):
        if isinstance(item, _CONTAINER):
            budget.weigh(container)
        budget.charge(len(container) >> 3)


def pick(budget: Budget, container: Any, key: Any) -> Any:
    """``container[key]`` and ``container[a:b]``."""
    if not isinstance(container, (*_SEQUENCE, Mapping)):
        raise TypeError(f"{kind_of(container)} has no parts to pick by [...]")
    if isinstance(key, slice) and isinstance(container, _SEQUENCE):
        budget.charge(len(container) >> 4)
    return container[budget.hashable(key)]


def looped(value: Any) -> Any:
    """What a loop may walk over: the value itself."""
    if isinstance(value, (*_SEQUENCE, set, Mapping)):
        return value
    raise TypeError(f"{kind_of(value)} has no items to walk over")


def kind_of(value: Any) -> str:
    """What a value is, in words of YAML rather than of Python."""
    if value is None:
        return "None"
    for kind, word in _KINDS:
        if isinstance(value, kind):
            return word
    return f"a {type(value).__name__}"


_KINDS: tuple[tuple[type, str], ...] = (
    (str, "a text"),
    (bool, "a boolean"),
    (int, "a number"),
    (float, "a number"),
    (list, "a list"),
    (Mapping, "a mapping"),
    (date, "a date"),
)


# -- methods -----------------------------------------------------------------------------------


def call_method(
    budget: Budget, target: Any, name: str, arguments: list[Any], named: dict[str, Any]
) -> Any:
    """``target.name(...)`` for what the kind of target has of the methods that are allowed."""
    if isinstance(target, str):
        allowed, cost = TEXT_METHODS, _cost_of_text_method(target, name, arguments)
    elif isinstance(target, Mapping):
        allowed, cost = MAPPING_METHODS, 0 if name == "get" else len(target)
        for argument in arguments:
            budget.hashable(argument)
    elif isinstance(target, list | tuple):
        allowed, cost = SEQUENCE_METHODS, len(target) >> 3
        if any(isinstance(argument, _CONTAINER) for argument in arguments):
            budget.weigh(target)
    else:
        allowed, cost = frozenset(), 0
    if name not in allowed:
        raise TypeError(f"{kind_of(target)} has no .{name}()")
    budget.charge(cost)
    result = getattr(target, name)(*arguments, **named)
    # A view of a mapping is compared and looked through in ways that are not charged for.
    return list(result) if name in ("items", "keys", "values") else result


def _cost_of_text_method(target: str, name: str, arguments: list[Any]) -> int:
    size = sum(len(argument) for argument in arguments if isinstance(argument, _SEQUENCE))
    cost = (len(target) >> 5) + (size >> 6)
    # strip() looks for each of its target's letters in its argument.
    return cost + ((len(target) * size) >> 14) if name.endswith("strip") else cost


# -- functions ---------------------------------------------------------------------------------


def _items(budget: Budget, items: Any) -> Any:
    if isinstance(items, GeneratorType):  # its own steps are charged for
        return items
    budget.charge(len(looped(items)) >> 2)
    return items


def _any(budget: Budget, items: Any) -> bool:
    return any(_items(budget, items))


def _all(budget: Budget, items: Any) -> bool:
    return all(_items(budget, items))


def _sum(budget: Budget, items: Any, start: Any = 0) -> Any:
    for item in (start, *_items(budget, items)):
        if not isinstance(item, int | float | timedelta):
            raise TypeError(f"sum() adds numbers, not {kind_of(item)}")
    return _bounded(sum(items, start))


def _mean(budget: Budget, items: Any) -> Any:
    """Of formulas only: :mod:`.grammar` does not know it. Of nothing it is 0."""
    return _sum(budget, items) / len(items) if len(looped(items)) else 0.0


def _sorted(budget: Budget, items: Any, **named: Any) -> list[Any]:
    weight = budget.weigh(items)
    budget.charge((weight * weight.bit_length()) >> 3)
    return sorted(looped(items), **named)


def _min(budget: Budget, *items: Any, **named: Any) -> Any:
    budget.weigh(items)
    return min(*items, **named)


def _max(budget: Budget, *items: Any, **named: Any) -> Any:
    budget.weigh(items)
    return max(*items, **named)


def _str(budget: Budget, value: Any = "") -> str:
    budget.weigh(value)
    return str(value)


def _int(budget: Budget, value: Any = 0, *base: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_BITS >> 2:
        raise ConditionError("makes too large a number")
    return _bounded(int(value, *base))


def _round(budget: Budget, value: Any, digits: Any = None) -> Any:
    # The number of digits is the exponent of a power of ten.
    if digits is not None and not -MAX_ROUND <= digits <= MAX_ROUND:
        raise ConditionError(f"rounds to more than {MAX_ROUND} digits")
    return round(value, digits)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda budget, value: abs(value),
    "all": _all,
    "any": _any,
    "bool": lambda budget, value=False: bool(value),
    "float": lambda budget, value=0.0: float(value),
    "int": _int,
    "len": lambda budget, value: len(value),
    "max": _max,
    "mean": _mean,
    "min": _min,
    "round": _round,
    "sorted": _sorted,
    "str": _str,
    "sum": _sum,
}


# -- operators ---------------------------------------------------------------------------------


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ConditionError("makes too large a number")
    return value


def _add(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, _SEQUENCE):
        budget.make(len(left) + len(right))
    total: Any = left + right
    return _bounded(total)


def _multiply(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(right, _SEQUENCE):
        left, right = right, left
    if isinstance(left, _SEQUENCE) and isinstance(right, int):
        budget.make(len(left) * max(right, 0))
    return _bounded(left * right)


def _modulo(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, str | bytes):  # would format, to any width
        raise TypeError(f"% needs numbers, not {kind_of(left)}")
    return left % right


def _power(budget: Budget, base: Any, exponent: Any) -> Any:
    if not isinstance(base, int | float) or not isinstance(exponent, int | float):
        raise TypeError("** needs numbers")
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and int(base).bit_length() * abs(exponent) > MAX_BITS:
        raise ConditionError("makes too large a number")
    return _bounded(base**exponent)


BINARY: dict[type[ast.operator], Callable[[Budget, Any, Any], Any]] = {
    ast.Add: _add,
    ast.Div: lambda budget, left, right: left / right,
    ast.FloorDiv: lambda budget, left, right: left // right,
    ast.Mod: _modulo,
    ast.Mult: _multiply,
    ast.Pow: _power,
    ast.Sub: lambda budget, left, right: _bounded(left - right),
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
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
