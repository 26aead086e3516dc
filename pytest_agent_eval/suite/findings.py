"""Collecting what is wrong with a suite's file, each thing once and with its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.documents import Document, format_place
from pytest_agent_eval.errors import Problem

__all__ = ["Findings", "Place", "block", "entries", "text"]

Place = tuple[str | int, ...]
"""A place inside the file: keys and list indices from the root."""


class Findings:
    """Problems and warnings of one file, in the order they are found.

    Args:
        document: parsed with positions.
        prefix: put before every place, for a part of the file that is checked by itself.
        hidden: (place, message) pairs that were reported already.
    """

    def __init__(
        self,
        document: Document,
        prefix: Place = (),
        hidden: frozenset[tuple[Place, str]] = frozenset(),
    ) -> None:
        self._document = document
        self._prefix = prefix
        self._hidden = hidden
        self.problems: dict[tuple[Place, str], Problem] = {}
        self.warnings: dict[tuple[Place, str], Problem] = {}

    def problem(self, place: Place, message: str, line: int | None = None) -> None:
        """Note an error. ``line`` only where it is not that of the place's key."""
        self._note(self.problems, place, message, line)

    def warn(self, place: Place, message: str) -> None:
        """Note something that stops nothing."""
        self._note(self.warnings, place, message, None)

    def elsewhere(self, place: Place, problem: Problem) -> None:
        """Note an error in another file that the suite names; ``place`` tells it from others."""
        if (place, problem.message) not in self._hidden:
            self.problems.setdefault((place, problem.message), problem)

    def value_line(self, place: Place) -> int:
        """1-based line where a value starts; of the nearest place around it if it is not there."""
        place = self._prefix + place
        found = self._document.values.get(place)
        return found[0] if found else self._document.position(place)[0] or 1

    def _note(
        self,
        notes: dict[tuple[Place, str], Problem],
        place: Place,
        message: str,
        line: int | None,
    ) -> None:
        if (place, message) in self._hidden or (place, message) in notes:
            return
        whole = self._prefix + place
        key_line, column = self._document.position(whole)
        notes[place, message] = Problem(
            message,
            path=format_place(whole),
            file=self._document.file,
            line=line or key_line or 1,
            column=None if line else column,
        )


def block(data: Any, key: str) -> Mapping[Any, Any]:
    """The mapping under a key; empty if there is none, or something else."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def entries(data: Any, key: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Index and value of the mappings in the list under a key."""
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, list):
        return []
    return [(index, item) for index, item in enumerate(value) if isinstance(item, dict)]


def text(data: Any, key: str) -> str:
    """The string under a key; empty if there is none, or something else."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""
