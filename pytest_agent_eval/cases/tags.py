"""The tags of a case: a list (``tags: [dedup]``) or a mapping (``tags: {length: short}``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_agent_eval.errors import DocumentError, Problem

__all__ = ["Tags", "read_category", "read_tags"]

_FILE = "annotations.yaml"


class Tags(NamedTuple):
    """Tags in both forms.

    Attributes:
        mapping: key -> value; a list entry ``x`` is ``x: "yes"``.
        flat: the entries of a list, in order, each once; empty for the mapping form.
    """

    mapping: Mapping[str, str]
    flat: tuple[str, ...]


_NONE = Tags(MappingProxyType({}), ())


def read_tags(annotations: Mapping[str, Any]) -> Tags:
    """The tags in a case's annotations.

    Raises:
        DocumentError: they have neither form, or an entry is no text. Every such entry is a
            problem of its own that says how to quote it.
    """
    value = annotations.get("tags")
    if value is None:
        return _NONE
    if isinstance(value, list):
        problems = list(_list_problems(value))
        if not problems:
            flat = tuple(dict.fromkeys(value))
            return Tags(dict.fromkeys(flat, "yes"), flat)
    elif isinstance(value, Mapping):
        problems = list(_mapping_problems(value))
        if not problems:
            return Tags(value, ())
    else:
        shown = value if isinstance(value, str) else "short"
        message = f"must be a list or a mapping of texts; write tags: [{shown}]"
        problems = [_problem("tags", message)]
    raise DocumentError(*problems)


def read_category(annotations: Mapping[str, Any]) -> str | None:
    """``annotations.category``, or None where it is absent, null or empty.

    Raises:
        DocumentError: it is no text.
    """
    value = annotations.get("category")
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise DocumentError(_problem("category", _no_text(value, "category: {}")))
    return value


def _list_problems(entries: list[Any]) -> Iterator[Problem]:
    for index, entry in enumerate(entries):
        if not isinstance(entry, str):
            yield _problem(f"tags[{index}]", _no_text(entry, "tags: [{}]"))
        elif not entry.strip():
            yield _problem(f"tags[{index}]", "a tag must not be empty")


def _mapping_problems(entries: Mapping[Any, Any]) -> Iterator[Problem]:
    for key, entry in entries.items():
        if not isinstance(key, str):
            yield _problem(f"tags.{key}", _no_text(key, 'tags: {{{}: "..."}}'))
        elif not key.strip():
            yield _problem("tags", "the key of a tag must not be empty")
        elif not isinstance(entry, str):
            yield _problem(f"tags.{key}", _no_text(entry, f"tags: {{{{{_braced(key)}: {{}}}}}}"))


def _braced(key: str) -> str:
    return key.replace("{", "{{").replace("}", "}}")


def _no_text(value: Any, form: str) -> str:
    """What a value is, why YAML made it so, and how to write the text that was meant."""
    if value is None:
        return f"must be a text, not empty; write {form.format(_quoted('yes'))}"
    if isinstance(value, bool):
        word, all_words = ("yes", "yes, on and true") if value else ("no", "no, off and false")
        return (
            f"must be a text, but YAML reads {all_words} without quotes as a boolean; "
            f"quote it: {form.format(_quoted(word))}"
        )
    if isinstance(value, Mapping | list):
        kind = "list" if isinstance(value, list) else "mapping"
        return f"must be a text, not a {kind}"
    kind = "number" if isinstance(value, int | float) else type(value).__name__
    return f"must be a text, not a {kind}; quote it: {form.format(_quoted(str(value)))}"


def _quoted(text: str) -> str:
    return f'"{text}"'


def _problem(path: str, message: str) -> Problem:
    return Problem(message, path=path, file=_FILE)
