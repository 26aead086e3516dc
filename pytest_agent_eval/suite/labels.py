"""``labels`` of a judge: a file of human values by case, read and checked with the suite."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_agent_eval.documents import MAX_BYTES, Document, parse_yaml
from pytest_agent_eval.errors import DocumentError, Problem
from pytest_agent_eval.suite.checks.judges import is_llm
from pytest_agent_eval.suite.findings import Findings, Place, entries, text
from pytest_agent_eval.suite.known import PAIRWISE, Known
from pytest_agent_eval.suite.messages import shown
from pytest_agent_eval.suite.models.base import is_number

__all__ = [
    "LabelFiles",
    "Labels",
    "check_labels",
    "climbs",
    "misfits",
    "read_mapping",
    "shown_path",
]

_FORM = "labels are a mapping of case names to human values, such as case-001: true"


@dataclass(frozen=True)
class Labels:
    """One file of labels.

    Attributes:
        file: as messages name it.
        values: case name -> bool, int or float; what is neither is left out, with a problem.
        lines: case name -> 1-based line.
        problems: of the file, whatever the judge; one without a line where it cannot be read.
    """

    file: str
    values: Mapping[str, bool | int | float] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


class LabelFiles:
    """The label files of one suite, each read once however many judges and variants name it.

    Args:
        directory: of the suite; paths are relative to it.
        shown: the suite's file as messages name it.
    """

    def __init__(self, directory: str, shown: str) -> None:
        self._directory = directory
        self._above = os.path.dirname(shown)
        self.read: dict[str, Labels] = {}

    def get(self, path: str) -> Labels:
        """The labels in a file; what is wrong with it is in ``problems``."""
        if path not in self.read:
            file = shown_path(path, self._above)
            self.read[path] = _read(os.path.join(self._directory, path), file)
        return self.read[path]


def check_labels(
    data: Mapping[str, Any], findings: Findings, known: Known, files: LabelFiles
) -> None:
    """Read the labels that judges name and note what is wrong with them, in their own file."""
    for index, judge in entries(data, "judges"):
        path = judge.get("labels")
        if not isinstance(path, str) or not path.strip() or "\0" in path or climbs(path):
            continue  # absent, or reported by the model
        place: Place = ("judges", index, "labels")
        if text(judge, "name") == PAIRWISE:
            findings.problem(place, f"{PAIRWISE} compares two runs; no label fits that")
            continue
        labels = files.get(path)
        if labels.problems and labels.problems[0].line is None:
            findings.problem(place, f"{labels.file} {labels.problems[0].message}")
            continue
        wrong = misfits(judge, labels.file, labels.values, labels.lines, known)
        for problem in (*labels.problems, *wrong):
            findings.elsewhere((*place, problem.line or 1, problem.path), problem)


def shown_path(path: str, above: str) -> str:
    """A file that a suite names as messages name it; ``above``: the suite's directory in them."""
    above = "" if os.path.isabs(path) else above
    return os.path.normpath(os.path.join(above, path)).replace(os.sep, "/")


def climbs(path: str) -> bool:
    """Whether a path has a component ``..``."""
    return ".." in path.replace("\\", "/").split("/")


def read_mapping(path: str, file: str, form: str) -> Document | tuple[Problem, ...]:
    """A YAML file that holds a mapping with something in it, or why there is none: a problem
    without a line where the file cannot be read.

    Args:
        path: absolute.
        file: as messages name it.
        form: what the file should hold, for messages.
    """
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        return (Problem(f"cannot be read: {error.strerror or type(error).__name__}"),)
    if len(content) > MAX_BYTES:
        return (Problem(f"is larger than {MAX_BYTES // 1024 // 1024} MiB"),)
    try:
        document = parse_yaml(content, file=file, positions=True, keep_going=True)
    except DocumentError as error:
        return error.problems
    if isinstance(document.data, dict) and document.data:
        return document
    empty = document.data in (None, {})
    found = "the file is empty" if empty else f"this is {shown(document.data)}"
    return (*document.problems, Problem(f"{found}; {form}", file=file, line=1))


def _read(path: str, file: str) -> Labels:
    document = read_mapping(path, file, _FORM)
    if isinstance(document, tuple):
        return Labels(file, problems=document)
    values: dict[str, bool | int | float] = {}
    lines: dict[str, int] = {}
    problems = document.problems
    for key, value in document.data.items():
        line = document.positions.get((key,), (1, 1))[0]
        if isinstance(value, dict) and "value" in value:
            value = value["value"]  # the file serves as a source of examples as well
        message = ""
        if not isinstance(key, str):
            message = "a case's name is text: put it in quotes"
        elif value is None:
            message = "no value: a label is true, false or a number"
        elif not isinstance(value, bool) and not is_number(value):
            message = f"a label is true, false or a number, not {shown(value)}"
        if message:
            path = key if isinstance(key, str) else shown(key)
            problems += (Problem(message, path, file, line),)
            continue
        name = unicodedata.normalize("NFC", key)
        values[name], lines[name] = value, line
    return Labels(file, values, lines, problems)


def misfits(
    judge: Mapping[str, Any],
    file: str,
    values: Mapping[str, bool | int | float],
    lines: Mapping[str, int],
    known: Known,
    noun: str = "label",
) -> list[Problem]:
    """Human values of another type than the judge's, or beyond its scale.

    Args:
        judge: its entry.
        file: that holds the values, as messages name it.
        values: by case.
        lines: of each in that file.
        known: names that plugins and the project add.
        noun: what the values are called.
    """
    wanted = _wanted(judge, known)
    why = f"the values of {text(judge, 'name') or 'the judge'} are {_WORDS[wanted]}"
    if wanted == "unknown":
        first = next(iter(values.values()), None)
        wanted = "bool" if isinstance(first, bool) else "number"
        why = f"the {noun}s above are {_WORDS[wanted]}"
    scale = judge.get("score_range")
    bounds = None
    if isinstance(scale, list) and len(scale) == 2 and all(map(is_number, scale)):
        bounds = scale
    found = []
    for name, value in values.items():
        message = ""
        if isinstance(value, bool) != (wanted == "bool"):
            message = f"{why}, this {noun} is {shown(value)}"
        elif wanted == "number" and bounds and not bounds[0] <= value <= bounds[1]:
            message = f"{shown(value)} is outside of score_range {_range(bounds)}"
        if message:
            found.append(Problem(message, name, file, lines[name]))
    return found


_WORDS = {"bool": "booleans", "number": "numbers", "unknown": "unknown"}


def _range(bounds: list[float]) -> str:
    return f"[{shown(bounds[0])}, {shown(bounds[1])}]"


def _wanted(judge: Mapping[str, Any], known: Known) -> Literal["bool", "number", "unknown"]:
    """What a judge's values are, as far as its entry tells."""
    kind, builtin = judge.get("feedback_type"), judge.get("builtin")
    if kind == "bool" or (isinstance(builtin, str) and builtin in known.llm_builtins):
        return "bool"
    if kind in ("int", "float") or isinstance(judge.get("score_range"), list):
        return "number"
    return "number" if is_llm(judge, known) else "unknown"
