"""Templates: ``execution.prompt``, ``execution.arguments`` and the words of ``runner.command``.

Two styles. A template that holds ``{{`` or ``{%`` is Jinja2 (:mod:`.jinja`, imported for those
alone). Every other one has placeholders in braces: ``{field}``, ``{field?}``. Either way a value is
put in once and never read as a template again.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pytest_agent_eval.cases.rendering import to_text
from pytest_agent_eval.errors import TemplateError

__all__ = ["Template", "command_words", "compile_template", "placeholders"]

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)(\?)?\}")
_ABSENT = object()


class Template:
    """A compiled template; made by :func:`compile_template`. Usable from several threads.

    Attributes:
        source: as written.
        fields: top-level fields of the input without which it cannot be rendered: those of
            ``{field}`` (``nested`` for ``{nested.key}``), and for Jinja2 those that are plainly
            needed (``{{ input.field }}`` outside of conditions, loops and ``default``).
    """

    __slots__ = ("fields", "source")

    source: str
    fields: frozenset[str]

    def __init__(self, source: str) -> None:
        self.source = source
        self.fields = frozenset(name.partition(".")[0] for name in _required(source))

    def render(
        self, input: Mapping[str, Any], case: str = "", steps: Mapping[str, Any] | None = None
    ) -> str:
        """The text for one case.

        Args:
            input: the case's input.
            case: its name, for messages.
            steps: id -> output, exit_code and files of the steps before this one (Jinja2 only).

        Raises:
            TemplateError: a required field is missing, null or an empty text; or rendering failed.
                Names the case and the field.
        """
        try:
            return _fill(self.source, input)
        except TemplateError as error:
            raise TemplateError(f"{case}: {error}" if case else str(error)) from None

    def missing(self, input: Mapping[str, Any]) -> frozenset[str]:
        """Placeholders that this input does not provide, as they are written: ``nested.key``."""
        return frozenset(name for name in _required(self.source) if _lookup(input, name) is _ABSENT)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r})"


def compile_template(source: str) -> Template:
    """Compile a template; its style is Jinja2 if it holds ``{{`` or ``{%``.

    Raises:
        TemplateError: Jinja2 cannot parse it; says the line.
    """
    if "{{" in source or "{%" in source:
        from pytest_agent_eval.cases.jinja import JinjaTemplate

        return JinjaTemplate(source)
    return Template(source)


def command_words(command: str | Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """The words of a command, with its placeholders filled.

    A string is split as a POSIX shell splits words, and only then are the placeholders in each
    word replaced: a value stays part of one word and can neither become two nor run anything. A
    list is used as it is. A value that is null or empty leaves an empty place: commands have
    options that may be empty.

    Args:
        command: ``runner.command``.
        values: placeholder -> value.

    Raises:
        TemplateError: the quotes do not match, there is no word, there is nothing of a
            placeholder's name, or a value holds a NUL character.
    """
    filled = [_fill(word, values, blank=True) for word in _words(command)]
    for word in filled:
        if "\0" in word:
            message = "holds a NUL character, which no argument of a command can"
            raise TemplateError(f"runner.command: {word[:40]!r} {message}")
    return filled


def _words(command: str | Sequence[str]) -> list[str]:
    if not isinstance(command, str):
        words = [_word(word) for word in command]
    else:
        try:
            words = [*_split(command)]
        except ValueError as error:
            said = str(error)[:1].lower() + str(error)[1:]
            raise TemplateError(f"runner.command: {said}: {command}") from None
    if not words:
        raise TemplateError("runner.command: is empty")
    return words


@functools.lru_cache(maxsize=32)
def _split(command: str) -> tuple[str, ...]:
    # The same few commands are asked for in every trial.
    return tuple(shlex.split(command))


def _word(word: Any) -> str:
    if not isinstance(word, str | int | float):
        kind = type(word).__name__
        raise TemplateError(f"runner.command: every word must be a text, not {kind}")
    return to_text(word)


def _required(source: str) -> Iterator[str]:
    return (name for name, optional in _PLACEHOLDER.findall(source) if not optional)


def placeholders(command: str | Sequence[str]) -> frozenset[str]:
    """Names in a command that must be provided.

    Raises:
        TemplateError: it cannot be split into words.
    """
    return frozenset(name for word in _words(command) for name in _required(word))


def _fill(source: str, values: Mapping[str, Any], *, blank: bool = False) -> str:
    """Replace the placeholders of one text in one pass; ``blank``: they may be empty."""

    def fill(found: re.Match[str]) -> str:
        name, optional = found[1], found[2]
        value = _lookup(values, name)
        if value is not _ABSENT and value is not None and value != "":
            return to_text(value)
        if optional or (blank and value is not _ABSENT):
            return ""
        raise TemplateError(_unfilled(name, value, values))

    return _PLACEHOLDER.sub(fill, source)


def _lookup(values: Mapping[str, Any], name: str) -> Any:
    """A field by its name, or by the path of keys that a dotted name is."""
    if name in values:
        return values[name]
    if "." not in name:
        return _ABSENT
    value: Any = values
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _ABSENT
        value = value[part]
    return value


def _unfilled(name: str, value: Any, values: Mapping[str, Any]) -> str:
    """Why a required placeholder cannot be filled, and how to allow for it."""
    if value is not _ABSENT:
        state = "is null" if value is None else "is empty"
        return f"{{{name}}}: the field {name} {state}; write {{{name}?}} if it may be"
    known = [str(key) for key in values]  # the input's fields come first
    near = get_close_matches(name, known, n=1)
    if near:
        hint = f"did you mean {{{near[0]}}}?"
    else:
        shown = ", ".join(known[:12]) + (" ..." if len(known) > 12 else "")
        hint = f"there is {shown or 'none'}; write {{{name}?}} if it may be absent"
    return f"{{{name}}}: there is no field {name}; {hint}"
