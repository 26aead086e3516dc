"""One case: a directory that holds an input for the agent and an answer key for the judges."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_agent_eval.cases.split import Half
from pytest_agent_eval.errors import CaseError, DocumentError, Problem

__all__ = ["ANNOTATIONS", "INPUT_NAMES", "BrokenCase", "Case"]

INPUT_NAMES = ("input.yaml", "input.yml", "input.json")
ANNOTATIONS = "annotations.yaml"
ANSWERS = "answers.yaml"


@dataclass(frozen=True, slots=True)
class Case:
    """A case as it is known at collection; its input is read when it is needed.

    Attributes:
        name: its directory's name, NFC-normalised.
        path: its directory (absolute). Text, because there may be 10,000 of them.
        input_name: ``input.yaml``, ``input.yml`` or ``input.json``.
        annotations: the answer key; empty if there is none.
        split: its half.
        group: what it shares that half with, or None.
        tags: all tags; a tag of the list form has the value ``yes``.
        flat_tags: the tags of the list form.
        category: ``annotations.category``, or None.
    """

    name: str
    path: str
    input_name: str
    annotations: dict[str, Any]
    split: Half
    group: str | None
    tags: Mapping[str, str]
    flat_tags: tuple[str, ...]
    category: str | None

    @property
    def directory(self) -> Path:
        """The case's directory."""
        return Path(self.path)

    @property
    def input_path(self) -> Path:
        """The input file."""
        return Path(self.path, self.input_name)

    def input(self) -> dict[str, Any]:
        """Read the input. Each call reads the file anew and gives a value of its own.

        Raises:
            CaseError: unreadable, not a mapping, empty, or a link that leaves the case.
        """
        file = os.path.join(self.path, self.input_name)
        if os.path.islink(file) and not _is_inside(file, self.path):
            raise CaseError(
                self.name, f"{self.input_name}: a link that leaves the case's directory"
            )
        value = _read_mapping(file, self.name, "write the fields of the task, such as prompt: ...")
        if not value:
            message = f"{self.input_name} is empty: the agent needs an input, such as prompt: ..."
            raise CaseError(self.name, message)
        return value

    def answers(self) -> dict[str, Any]:
        """Read ``answers.yaml`` (guidance for the question answerer); empty if there is none.

        Raises:
            CaseError: unreadable, or not a mapping.
        """
        file = os.path.join(self.path, ANSWERS)
        if not os.path.lexists(file):
            return {}
        return _read_mapping(file, self.name, "write questions and their answers")

    def scope(self, names: Iterable[str]) -> dict[str, Any]:
        """What a condition's names mean for this case before it has run; reads the input if asked.

        Raises:
            CaseError: ``input`` is asked for and cannot be read.
        """
        return {name: self.input() if name == "input" else getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class BrokenCase:
    """A directory of a dataset that cannot be used as a case, and why.

    Attributes:
        name: its directory's name, NFC-normalised, with unprintable characters escaped.
        path: its directory (absolute).
        error: what is wrong; ``str(error)`` starts with the case's name.
    """

    name: str
    path: str
    error: CaseError

    @property
    def directory(self) -> Path:
        """The case's directory."""
        return Path(self.path)


def _is_inside(path: str, directory: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(directory).rstrip(os.sep) + os.sep)


def _read_mapping(file: str, case: str, hint: str) -> dict[str, Any]:
    """Read a YAML or JSON file that must hold a mapping; an empty file is an empty mapping.

    Raises:
        CaseError: with file, line and column where they are known.
    """
    from pytest_agent_eval.documents import read_document

    try:
        value = read_document(Path(file))
    except DocumentError as error:
        raise CaseError(case, str(error)) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CaseError(case, str(no_mapping(value, os.path.basename(file), _line(file), hint)))
    return value


def no_mapping(value: Any, file: str, line: int | None, hint: str) -> Problem:
    """The problem of a file that holds something else than a mapping."""
    kinds: dict[type, str] = {list: "a list", str: "a text"}
    kind = kinds.get(type(value)) or repr(value)[:60]
    return Problem(f"must be a mapping, not {kind}; {hint}", file=file, line=line)


def _line(file: str) -> int | None:
    """Where the value of a file starts, for a message."""
    from pytest_agent_eval.documents import read_yaml

    try:
        return read_yaml(Path(file), positions=True).position(())[0]
    except DocumentError:  # JSON that is no YAML
        return None


_UNPRINTABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]")


def escaped(name: str) -> str:
    """A name that can be printed and stored: control characters and stray bytes are escaped."""
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], name)
