"""``examples`` of a judge: a file of human-scored outputs, read and checked with the suite."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_agent_eval.errors import Problem
from pytest_agent_eval.suite.checks.judges import is_llm
from pytest_agent_eval.suite.findings import Findings, Place, entries, text
from pytest_agent_eval.suite.known import PAIRWISE, Known
from pytest_agent_eval.suite.labels import climbs, misfits, read_mapping, shown_path
from pytest_agent_eval.suite.messages import nearest, shown
from pytest_agent_eval.suite.models.base import is_number
from pytest_agent_eval.suite.models.judge import kinds_set

__all__ = ["MIXES", "Example", "ExampleFiles", "Examples", "check_examples"]

MIXES = ("balanced", "natural")
_FORM = (
    "examples are a mapping of case names to scored outputs, such as "
    "case-001: {value: true, output: Good morning.}"
)
_ENTRY = "{value: true, output: ..., rationale: ...}"
_TEXTS = ("output", "rationale", "input")


@dataclass(frozen=True, slots=True)
class Example:
    """An output, and what a person said of it.

    Attributes:
        case: the case it is of.
        value: bool, int or float.
        output: what an agent produced.
        rationale: why the person said so; may be empty.
        input: the agent's task; may be empty.
    """

    case: str
    value: bool | int | float
    output: str
    rationale: str = ""
    input: str = ""


@dataclass(frozen=True)
class Examples:
    """One file of examples.

    Attributes:
        file: as messages name it.
        found: in the order of the file; what cannot be used is left out, with a problem.
        lines: case -> 1-based line.
        problems: of the file, whatever the judge; one without a line where it cannot be read.
    """

    file: str
    found: tuple[Example, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


class ExampleFiles:
    """The files of examples of one suite, each read once however many judges name it.

    Args:
        directory: of the suite; paths are relative to it.
        suite: the suite's file as messages name it.
    """

    def __init__(self, directory: str, suite: str) -> None:
        self._directory = directory
        self._above = os.path.dirname(suite)
        self.read: dict[str, Examples] = {}

    def get(self, path: str) -> Examples:
        """The examples in a file; what is wrong with it is in ``problems``."""
        if path not in self.read:
            file = shown_path(path, self._above)
            self.read[path] = _read(os.path.join(self._directory, path), file)
        return self.read[path]


def check_examples(
    data: Mapping[str, Any], findings: Findings, known: Known, files: ExampleFiles
) -> None:
    """Read the examples that judges name and note what is wrong with them, in their own file."""
    for index, judge in entries(data, "judges"):
        block = judge.get("examples")
        if not isinstance(block, dict):
            continue  # absent, or reported by the model
        place: Place = ("judges", index, "examples")
        if text(judge, "name") == PAIRWISE:
            message = f"{PAIRWISE} compares two outputs; examples show how one was scored"
            findings.problem(place, message)
            continue
        if not is_llm(judge, known):
            findings.warn(place, "examples are ignored: no model gives this verdict")
            continue
        kinds = kinds_set(judge, known.judge_kinds)
        if kinds[:1] == ("agent",) and "llm" not in kinds:
            message = "examples stand before a question, and this judge has none; set llm_rubric"
            findings.problem(place, f"{message}, prompt or prompt_file")
        source = text(block, "source")
        if not source.strip() or "\0" in source or climbs(source):
            continue
        examples = files.get(source)
        if examples.problems and examples.problems[0].line is None:
            first = examples.problems[0]
            findings.problem((*place, "source"), f"{examples.file} {first.message}")
            continue
        values = {example.case: example.value for example in examples.found}
        wrong = misfits(judge, examples.file, values, examples.lines, known, "value")
        for problem in (*examples.problems, *wrong):
            findings.elsewhere((*place, problem.line or 1, problem.path), problem)
        _check_mix(block, [*values.values()], examples.file, place, findings)


def _check_mix(
    block: Mapping[str, Any], values: list[Any], file: str, place: Place, findings: Findings
) -> None:
    """How many of which values: in forms that there are, of values that there are."""
    mix, count = block.get("mix"), block.get("count")
    if is_number(count) and count > len(values) > 0:
        findings.warn((*place, "count"), f"{file} has {len(values)}: no more are shown")
    place = (*place, "mix")
    forms = f"{', '.join(MIXES)} or numbers by value, such as {{true: 2, false: 2}}"
    if mix is None or mix in MIXES:
        return
    if isinstance(mix, str):
        findings.problem(place, f"there is no mix {mix!r}{nearest(mix, MIXES)}; it is {forms}")
        return
    if not isinstance(mix, dict) or not mix:
        findings.problem(place, f"must be {forms}, not {shown(mix)}")
        return
    right = True
    for value, wanted in mix.items():
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 0:
            message = f"{shown(value)}: must be a whole number of examples, not {shown(wanted)}"
            findings.problem(place, message)
            right = False
        elif wanted and values and not any(_same(value, one) for one in values):
            findings.problem(place, f"{file} has no example of the value {shown(value)}")
    total = sum(mix.values()) if right else 0
    if right and not total:
        findings.problem(place, "asks for no example at all")
    elif right and is_number(count) and count != total:
        findings.problem(place, f"asks for {total} examples, and count is {count}; keep one")


def _same(value: Any, other: Any) -> bool:
    """Equal as YAML tells values apart: 1 is not true."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _read(path: str, file: str) -> Examples:
    document = read_mapping(path, file, _FORM)
    if isinstance(document, tuple):
        return Examples(file, problems=document)
    found: list[Example] = []
    lines: dict[str, int] = {}
    problems = [*document.problems]
    for key, entry in document.data.items():
        line = document.positions.get((key,), (1, 1))[0]
        wrong = list(_entry_problems(key, entry))
        for at, message in wrong:
            where = document.positions.get((key, at), (line, 1))[0] if at else line
            name = key if isinstance(key, str) else shown(key)
            problems.append(Problem(message, f"{name}.{at}" if at else name, file, where))
        if not wrong:
            case = unicodedata.normalize("NFC", key)
            texts = {name: entry.get(name) or "" for name in _TEXTS}
            found.append(Example(case, entry["value"], **texts))
            lines[case] = line
    return Examples(file, tuple(found), lines, tuple(problems))


def _entry_problems(key: Any, entry: Any) -> list[tuple[str, str]]:
    """Key inside the entry, or empty, and what is wrong there."""
    if not isinstance(key, str):
        return [("", "a case's name is text: put it in quotes")]
    if not isinstance(entry, dict):
        said = "nothing" if entry is None else shown(entry)
        return [("", f"this is {said}, and no output that it was said of: write {_ENTRY}")]
    found = []
    value = entry.get("value")
    if value is None:
        found.append(("", f"no value: write {_ENTRY}"))
    elif not isinstance(value, bool) and not is_number(value):
        found.append(("value", f"a value is true, false or a number, not {shown(value)}"))
    if entry.get("output") is None:
        found.append(("", f"no output that the value was given for: write {_ENTRY}"))
    for name in _TEXTS:
        written = entry.get(name)
        if written is not None and not isinstance(written, str):
            found.append((name, f"must be text, not {shown(written)}"))
        elif name == "output" and written is not None and not written.strip():
            found.append((name, "is empty: an example shows what the value was given for"))
    known = ("value", *_TEXTS)
    for name in entry:
        if name not in known and not str(name).startswith("x-"):
            hint = nearest(str(name), known)
            there = "" if hint else f"; there is {', '.join(known)}"
            found.append((name, f"unknown key{hint}{there}"))
    return found
