"""Whether an agent has seen the answer key: parts of it in what the agent left."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pytest_agent_eval.execution.collect import FILES
from pytest_agent_eval.execution.files import read_file, walk
from pytest_agent_eval.execution.names import printable
from pytest_agent_eval.execution.phrases import Phrase, Searched, phrases_of, texts_of
from pytest_agent_eval.execution.record import EVENTS, RECORD, STDERR, STDOUT
from pytest_agent_eval.results import Verdict

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case

__all__ = ["Leak", "find_leaks", "with_leaks"]

_MAX_FILE = 32 * 1024 * 1024
_MAX_PHRASES = 500
_LOOK = 8192
_SHOWN = 3
_NOT_THE_KEY = frozenset({"tags", "category"})
_INDEX = re.compile(r"\[\d+\]")

SEEN = "answer key seen by the agent"
"""Begins the note on each leak."""


class Leak(NamedTuple):
    """A value of the answer key that an agent cannot have come upon by itself.

    ``str(leak)`` is a sentence that says where, and never what the value is.

    Attributes:
        case: the case's name.
        path: of the value: ``annotations.notes.reviewer``, ``answers.colour``.
        places: where it appears: ``stdout.log``, ``files/output/reply.md``.
    """

    case: str
    path: str
    places: tuple[str, ...]

    def __str__(self) -> str:
        more = len(self.places) - _SHOWN
        shown = [*self.places[:_SHOWN], *([f"{more} more"] if more > 0 else ())]
        where = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
        return f"{SEEN}: {printable(self.path)} appears in {where}"


def find_leaks(
    case: Case,
    directory: str,
    *,
    answers: Sequence[str],
    files: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> tuple[Leak, ...]:
    """Look for the case's ``annotations.yaml`` and ``answers.yaml`` in a stored trial.

    What the agent was given, in any letter case, is no leak.

    Args:
        case: the case.
        directory: of the trial (absolute), wherever its agent ran.
        answers: ``dataset.answers``: paths of values that an agent may rightly reproduce.
        files: ``workspace.files``: what of the case's directory the agent was given.
        texts: what else it was told: prompt, arguments, system prompt, output paths.

    Returns:
        One for each value, in the order of the answer key.

    Raises:
        CaseError: ``answers.yaml`` or the input cannot be read.
    """
    key = case.answers()
    if not case.annotations and not key:
        return ()
    phrases: list[Phrase] = []
    allowed: list[str] = []
    for path, name, text in _key_texts(case, key):
        if _is_allowed(path, answers):
            allowed.append(text)
        else:
            phrases += phrases_of(path, name, text)
    phrases = phrases[:: -(-len(phrases) // _MAX_PHRASES)] if phrases else []
    if not phrases:
        return ()
    found: dict[str, list[str]] = {phrase.path: [] for phrase in phrases}
    given = _Given(case, files, (*texts, *allowed))
    for place, read in _places(directory):
        searched = Searched(read())
        for phrase in phrases:
            places = found[phrase.path]
            # The input and the companion files are read only where there is something to excuse.
            if place not in places[-1:] and searched.holds(phrase) and not given.explains(phrase):
                places.append(place)
    return tuple(Leak(case.name, path, tuple(places)) for path, places in found.items() if places)


def with_leaks(verdict: Verdict, leaks: Sequence[Leak]) -> Verdict:
    """The verdict named ``execution`` of a trial that leaks fail: ``dataset.leak: error``.

    What it said before is kept in its detail. Without leaks it is returned itself.
    """
    if not leaks:
        return verdict
    more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
    before = (verdict.error or verdict.rationale, verdict.detail)
    return Verdict(
        verdict.judge,
        value=False,
        passed=False,
        rationale=f"{leaks[0]}{more}",
        detail="\n\n".join(filter(None, ("\n".join(map(str, leaks[1:])), *before))),
        asked=verdict.asked,
    )


def _key_texts(case: Case, key: dict[str, object]) -> Iterator[tuple[str, str, str]]:
    for name, value in case.annotations.items():
        if name not in _NOT_THE_KEY:
            yield from texts_of(value, f"annotations.{name}")
    for name, value in key.items():
        yield from texts_of(value, f"answers.{name}")


def _is_allowed(path: str, answers: Sequence[str]) -> bool:
    """Whether ``dataset.answers`` names a value or what it is a part of, with its file or not."""
    path = _INDEX.sub("", path)
    below = path.removeprefix("annotations.")
    return any(f"{item}.".startswith(f"{name}.") for name in answers for item in (path, below))


def _places(directory: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """What an agent left, and how its text is read."""
    logs = [name for name in (STDOUT, STDERR, EVENTS) if os.path.exists(f"{directory}/{name}")]
    for name in logs:
        yield name, partial(_text, os.path.join(directory, name), log=True)
    if STDOUT not in logs:  # else the final message is the end of it
        yield RECORD, partial(_final_message, os.path.join(directory, RECORD))
    for path, _ in walk(os.path.join(directory, FILES)):
        full = os.path.join(directory, FILES, path)
        yield printable(f"{FILES}/{path}"), partial(_text, full)


def _text(path: str, *, log: bool = False) -> str:
    """The text of a file, its first 32 MiB; empty for a binary one and for one that is gone."""
    try:
        data = read_file(path, _MAX_FILE)
    except OSError:
        return ""
    if not log and b"\0" in data[:_LOOK]:
        return ""
    return data.decode("utf-8", "replace")


def _final_message(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            data = json.load(stream)
    except (OSError, ValueError):
        return ""
    message = data.get("output") if isinstance(data, dict) else ""
    return message if isinstance(message, str) else ""


class _Given:
    """What an agent knows without having seen the key; read when it is first asked."""

    def __init__(self, case: Case, files: Sequence[str], texts: Sequence[str]) -> None:
        self._case = case
        self._files = files
        self._texts = texts
        self._all: Searched | None = None
        self._known: dict[Phrase, bool] = {}

    def explains(self, phrase: Phrase) -> bool:
        if phrase not in self._known:
            self._known[phrase] = self._explains(phrase)
        return self._known[phrase]

    def _explains(self, phrase: Phrase) -> bool:
        if self._all is None:
            self._all = Searched("\n".join(self._read()))
        # A field that the agent was asked for is filled by itself.
        if phrase.key and self._all.holds(Phrase("", (phrase.key,)), any_case=True):
            return True
        return self._all.holds(phrase._replace(key=""), any_case=True)

    def _read(self) -> Iterator[str]:
        case = self._case
        yield from self._texts
        yield from (f"{name} {value}" for name, value in case.tags.items())
        yield case.category or ""
        yield _text(str(case.input_path))
        for path, _, text in texts_of(case.input(), "input"):
            yield f"{path}\n{text}"
        for below in self._files:
            for path, _ in walk(case.path, below=os.path.normpath(below)):
                yield f"{path}\n{_text(os.path.join(case.path, path))}"
