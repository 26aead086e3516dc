"""Templates in Jinja2, in a sandbox: no attributes of Python's inside, no runaway work.

Imports jinja2; imported when the first such template is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, StrictUndefined, TemplateSyntaxError, Undefined, nodes
from jinja2 import Template as Template_
from jinja2.exceptions import SecurityError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from pytest_agent_eval.cases.rendering import to_json, to_text
from pytest_agent_eval.cases.templates import Template
from pytest_agent_eval.errors import TemplateError

__all__ = ["JinjaTemplate", "compiled", "generated", "sandbox"]

MAX_TEXT = 5 * 1024 * 1024
"""Of what a template renders to, and of a text that it makes by an operator; characters."""
MAX_ROUNDS = 100_000
"""Of all ``range()`` of one rendering together."""
MAX_BITS = 4_096
MAX_DIGITS = 3
"""Of a width in a format: ``%999d``."""

_WIDENING = frozenset({"center", "expandtabs", "ljust", "rjust", "zfill"})
_CONDITIONAL = (nodes.CondExpr, nodes.Test, nodes.And, nodes.Or, nodes.Not)


class JinjaTemplate(Template):
    """A template in Jinja2."""

    __slots__ = ("_template",)

    def __init__(self, source: str) -> None:
        self._template, tree = compiled(source, _environment())
        self.source = source
        self.fields = frozenset(_needed(tree.body))

    def render(
        self, input: Mapping[str, Any], case: str = "", steps: Mapping[str, Any] | None = None
    ) -> str:
        """As :meth:`Template.render`; ``input`` and ``steps`` are the names it may use."""
        try:
            return generated(self._template, {"input": input, "steps": steps or {}})
        except TemplateError as error:
            raise TemplateError(f"{case}: {error}" if case else str(error)) from None

    def missing(self, input: Mapping[str, Any]) -> frozenset[str]:
        """Fields that are plainly needed and that this input lacks."""
        return frozenset(name for name in self.fields if name not in input)


def compiled(source: str, environment: Environment) -> tuple[Template_, nodes.Template]:
    """A template of an environment, and its tree.

    Raises:
        TemplateError: it cannot be parsed; says the line.
    """
    try:
        return environment.from_string(source), environment.parse(source)
    except TemplateSyntaxError as error:
        raise TemplateError(f"line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise TemplateError("nested too deeply") from None


def generated(template: Template_, names: Mapping[str, Any]) -> str:
    """What a template makes of these names, and of a bounded ``range``.

    Raises:
        TemplateError: whatever its expressions raise, or it makes too much.
    """
    parts: list[str] = []
    size = 0
    try:
        for part in template.generate({**names, "range": _Ranges().make}):
            parts.append(part)
            size += len(part)
            if size > MAX_TEXT:
                raise TemplateError(f"makes more than {MAX_TEXT:,} characters")
    except Exception as error:  # of the template
        raise TemplateError(_message(error)) from None
    return "".join(parts)


_FIELDS = 12
"""Of a mapping that a message names."""


class _Missing(StrictUndefined):
    """An undefined value whose message says what may have been meant."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        name, owner = self._undefined_name, self._undefined_obj
        if self._undefined_hint:
            return self._undefined_hint
        if owner is missing:
            return f"{name} is undefined; a field of the input is input.{name}"
        if isinstance(owner, Mapping):
            known = sorted(str(key) for key in owner)
            more = f" and {len(known) - _FIELDS} more" if len(known) > _FIELDS else ""
            what = "its only field is" if len(known) == 1 else "its fields are"
            fields = f"{what} {', '.join(known[:_FIELDS])}{more}" if known else "it has no fields"
            return f"there is no field {name}; {fields}"
        return f"{type(owner).__name__} has no {name}"


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox with keys before attributes and with bounded operators."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def getattr(self, obj: Any, attribute: str) -> Any:
        # A field may be called items, keys or values, as mappings' methods are.
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str | bytes) and attr in _WIDENING:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        _check_operands(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Any:
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            _check_format(value.__self__)
        return wrapped


def _check_operands(operator: str, left: Any, right: Any) -> None:
    """Refuse an operation that would make something huge.

    Raises:
        TemplateError: it would.
    """
    if operator == "%" and isinstance(left, str | bytes):
        _check_format(left if isinstance(left, str) else left.decode("latin-1"))
    if operator == "+" and isinstance(left, str) and isinstance(right, str):
        _check_size(len(left) + len(right))
    if operator == "*":
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str | list | tuple) and isinstance(times, int):
                _check_size(len(sequence) * times)
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() + right.bit_length()
        if operator == "**":
            bits = max(left.bit_length(), 1) * abs(right)
        if bits > MAX_BITS:
            raise TemplateError("makes too large a number")


def _check_size(size: int) -> None:
    if size > MAX_TEXT:
        raise TemplateError(f"makes something longer than {MAX_TEXT:,}")


def _check_format(text: str) -> None:
    """Refuse widths that are huge, or that are values themselves."""
    if re.search(rf"[0-9]{{{MAX_DIGITS + 1},}}|%[^a-zA-Z%]*\*|:[^{{}}]*\{{", text):
        raise TemplateError(f"a format may have no width of more than {MAX_DIGITS} digits")


class _Ranges:
    """The ``range`` of one rendering: all of them together are bounded."""

    def __init__(self) -> None:
        self._left = MAX_ROUNDS

    def make(self, *arguments: int) -> range:
        made = range(*arguments)
        self._left -= len(made)
        if self._left < 0:
            raise TemplateError(f"range() makes more than {MAX_ROUNDS:,} rounds")
        return made


@cache
def _environment() -> _Environment:
    return sandbox(_finalize)


def sandbox(finalize: Callable[..., Any], undefined: type[Undefined] = _Missing) -> _Environment:
    """An environment for templates of a suite.

    Args:
        finalize: what is written for the value of an expression.
        undefined: what an unknown name is.
    """
    environment = _Environment(
        undefined=undefined, autoescape=False, finalize=finalize, keep_trailing_newline=True
    )
    for name in ("lipsum", "range"):
        environment.globals.pop(name)
    filters = environment.filters
    for name in ("center", "random", "urlize", "xmlattr"):
        filters.pop(name)
    filters["tojson"] = to_json
    filters["format"] = _bounded_format
    filters["indent"] = _bounded_indent
    return environment


def _finalize(value: Any) -> Any:
    return value if isinstance(value, Undefined) else to_text(value)


def _bounded_format(text: str, *args: Any, **kwargs: Any) -> str:
    """Jinja2's ``format`` filter: ``"%s"|format(x)``."""
    _check_format(str(text))
    return str(text) % (kwargs or args)


def _bounded_indent(text: str, width: int = 4, first: bool = False, blank: bool = False) -> str:
    """Jinja2's ``indent`` filter for a number of blanks."""
    _check_size(width * (text.count("\n") + 1))
    pad = " " * width
    lines = text.split("\n")
    return "\n".join(
        pad + line if (index or first) and (line or blank) else line
        for index, line in enumerate(lines)
    )


def _message(error: Exception) -> str:
    if isinstance(error, TemplateError | UndefinedError):
        return str(error)
    if isinstance(error, SecurityError):
        return f"not allowed in a template: {error}"
    return f"{type(error).__name__}: {error}"[:300]


def _needed(body: list[Any]) -> Iterator[str]:
    """Fields of ``input`` that every rendering reads."""
    for statement in body:
        if isinstance(statement, nodes.Output):
            for expression in statement.nodes:
                yield from _read(expression)


def _read(node: Any) -> Iterator[str]:
    """Fields of ``input`` that an expression reads whatever their values are."""
    if isinstance(node, _CONDITIONAL):
        return
    if isinstance(node, nodes.Filter) and node.name in ("default", "d"):
        return
    if isinstance(node, nodes.Call) and _field(node.node):
        # input.get(...) is a method; whether input has a field of that name does not matter.
        for argument in node.args:
            yield from _read(argument)
        return
    name = _field(node)
    if name:
        yield name
        return
    for child in node.iter_child_nodes():
        yield from _read(child)


def _field(node: Any) -> str:
    """``prompt`` for ``input.prompt`` and ``input['prompt']``; empty for anything else."""
    if not isinstance(node, nodes.Getattr | nodes.Getitem):
        return ""
    if not isinstance(node.node, nodes.Name) or node.node.name != "input":
        return ""
    if isinstance(node, nodes.Getattr):
        return node.attr
    key = node.arg
    return key.value if isinstance(key, nodes.Const) and isinstance(key.value, str) else ""
