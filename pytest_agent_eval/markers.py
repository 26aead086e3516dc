"""The marks of a case: its half, its tags, its category and the judges that apply to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case

__all__ = ["MARKERS", "Marks"]

MARKERS = (
    "dev: case of the half that may be looked at as often as one likes (pytest_agent_eval)",
    "holdout: case of the half that confirms and is looked at rarely (pytest_agent_eval)",
    "tag(**tags): the tags of a case, e.g. -m 'tag(length=\"short\")' (pytest_agent_eval)",
    "category(name): annotations.category of a case (pytest_agent_eval)",
    "judge(name): one for each judge whose condition does not exclude the case (pytest_agent_eval)",
    "variant(name): the variant a case runs under (pytest_agent_eval)",
)

# What -m can parse as one name, without ":" and "(", which end a name in a marker's registration.
_FLAT = re.compile(r"(?!_)[\w+.\[\]\\/-]+")
_WORDS_OF_M = frozenset({"and", "or", "not", "None", "True", "False"})


class Marks:
    """Makes the marks of the cases of one session; equal marks are made once.

    Args:
        config: flat tags are registered here when they first appear.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._reserved = {_name_of(line) for line in config.getini("markers")}
        self._flat: dict[str, pytest.MarkDecorator | None] = {}
        self._judges: dict[str, pytest.MarkDecorator] = {}
        self._categories: dict[str, pytest.MarkDecorator] = {}

    def of(self, case: Case, judges: Iterable[str]) -> list[pytest.MarkDecorator]:
        """All marks of a case; ``judges`` are the names of those that apply to it."""
        marks = [pytest.mark.dev if case.split == "dev" else pytest.mark.holdout]
        if case.tags:
            marks.append(pytest.mark.tag.with_args(**_keywords(case.tags)))
        for tag in case.flat_tags:
            flat = self._flat_mark(tag)
            if flat is not None:
                marks.append(flat)
        if case.category is not None:
            marks.append(_named("category", case.category, self._categories))
        marks.extend(_named("judge", name, self._judges) for name in judges)
        return marks

    def _flat_mark(self, tag: str) -> pytest.MarkDecorator | None:
        """The plain marker of a list-style tag, or None where the name would do something.

        A tag called ``skip`` must not skip the case; it is still reachable as
        ``tag(skip="yes")`` and through ``--agent-eval-tag``.
        """
        if tag not in self._flat:
            usable = (
                _FLAT.fullmatch(tag) is not None
                and tag not in self._reserved
                and tag not in _WORDS_OF_M
            )
            if usable:
                self._config.addinivalue_line("markers", f"{tag}: tag of an agent-eval case")
            self._flat[tag] = getattr(pytest.mark, tag) if usable else None
        return self._flat[tag]


def _named(kind: str, name: str, made: dict[str, pytest.MarkDecorator]) -> pytest.MarkDecorator:
    mark = made.get(name)
    if mark is None:
        mark = made[name] = getattr(pytest.mark, kind).with_args(name=name)
    return mark


def _keywords(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags that can be written as ``key="value"`` in -m; ``self`` cannot be passed on."""
    return {key: value for key, value in tags.items() if key.isidentifier() and key != "self"}


def _name_of(line: str) -> str:
    return line.split(":", 1)[0].split("(", 1)[0].strip()
