"""Values of secret variables, replaced by ``***NAME***`` in whatever is stored or printed.

A secret is looked for as it is, and in the forms in which programs pass text on: escaped in JSON,
percent-encoded, and as base64. Searching for each form with ``find`` is several times as fast as
one regular expression of all of them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, AnyStr, Generic
from urllib.parse import quote, quote_plus

from pytest_agent_eval.results import TrialResult, Usage, Verdict

__all__ = ["NO_SECRETS", "Secrets", "StreamFilter", "is_secret_name"]

MIN_LENGTH = 8
"""Characters that a value needs to count as a secret."""

_ENDINGS = ("_KEY", "_TOKEN", "_SECRET")
_HEAD = 8
_LINE_LENGTH = 20
_DEEP = 100


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret: ``*_KEY``, ``*_TOKEN``, ``*_SECRET``,
    ``*PASSWORD*``, in any letter case.
    """
    upper = name.upper()
    return upper.endswith(_ENDINGS) or "PASSWORD" in upper


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """The secrets of a session; made with :meth:`of`. Safe to share between threads.

    Without secrets each method returns its argument itself.

    Attributes:
        names: of the variables whose values are replaced, sorted.
    """

    names: tuple[str, ...] = ()
    _text: _Forms[str] | None = None
    _data: _Forms[bytes] | None = None
    _numbers: frozenset[str] = frozenset()
    _found: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, *environments: Mapping[str, str]) -> Secrets:
        """The secrets among environment variables: the caller's, those that a suite sets.

        A variable that has different values in two environments is a secret with two values.
        """
        return NO_SECRETS.and_of(*environments)

    def and_of(self, *environments: Mapping[str, str]) -> Secrets:
        """These secrets and those of more environments."""
        found = {
            (name, value)
            for environment in environments
            for name, value in environment.items()
            if is_secret_name(name) and len(value) >= MIN_LENGTH and value.strip()
        }
        if found <= self._found:
            return self
        return self._made(self._found | found)

    @classmethod
    def _made(cls, pairs: frozenset[tuple[str, str]]) -> Secrets:
        found = sorted(pairs)
        forms: dict[str, str] = {}
        for name, value in found:
            for form in _forms(value):
                forms.setdefault(form, _label(name))
        data: dict[bytes, bytes] = {}
        for form, label in forms.items():
            encoded = form.encode("utf-8", "surrogateescape" if _is_environ(form) else "replace")
            data.setdefault(encoded, label.encode("utf-8", "replace"))
        return cls(
            names=tuple(sorted({name for name, _ in found})),
            _text=_Forms.of(forms),
            _data=_Forms.of(data),
            _numbers=frozenset(form for form in forms if form.isascii() and form.isdigit()),
            _found=pairs,
        )

    def __bool__(self) -> bool:
        return self._text is not None

    def __repr__(self) -> str:
        return f"<Secrets: {', '.join(self.names) or 'none'}>"

    def text(self, text: str) -> str:
        """The text without secrets; the argument itself when there are none in it."""
        return text if self._text is None else self._text.replaced(text)

    def data(self, data: bytes) -> bytes:
        """The same of bytes."""
        return data if self._data is None else self._data.replaced(data)

    def value(self, value: Any) -> Any:
        """A copy of nested mappings, lists and tuples without secrets in texts and keys.

        A whole number that is a secret becomes text. What is nested deeper than 100 levels, or
        contains itself, is cut there with ``"..."``.
        """
        return value if self._text is None else self._value(value, 0)

    def file_name(self, path: str) -> str:
        """A file's name, or a relative path, without secrets. Two paths may become the same."""
        return self.text(path)

    def filter(self) -> StreamFilter:
        """For bytes that come in chunks, such as the output of a process."""
        return StreamFilter(self._data)

    def result(self, result: TrialResult) -> TrialResult:
        """The result without secrets.

        What identifies it is left alone: suite, case, split, group, variant, the names of judges,
        and the path of its record.
        """
        if self._text is None:
            return result
        text, value = self.text, self.value
        return replace(
            result,
            reason=text(result.reason),
            tags=value(result.tags),
            category=value(result.category),
            execution=None if result.execution is None else self._verdict(result.execution),
            verdicts=tuple(map(self._verdict, result.verdicts)),
            usage=self.usage(result.usage),
            workspace=text(result.workspace),
            notes=tuple(map(text, result.notes)),
        )

    def usage(self, usage: Usage) -> Usage:
        """The usage with model names, and keys and texts beside them, without secrets."""
        if self._text is None:
            return usage
        return replace(
            usage,
            model=self.value(usage.model),
            models_used=tuple(map(self.text, usage.models_used)),
            per_model_usage=self.value(usage.per_model_usage),
            per_model_turns={self.text(key): turns for key, turns in usage.per_model_turns.items()},
        )

    def _verdict(self, verdict: Verdict) -> Verdict:
        return replace(
            verdict,
            rationale=self.text(verdict.rationale),
            error=self.text(verdict.error),
            detail=self.text(verdict.detail),
        )

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.data(value)
        if isinstance(value, int):
            # Before the conversion: a number of 5,000 digits cannot be converted.
            small = self._numbers and not isinstance(value, bool) and abs(value) < 10**100
            return self.text(str(value)) if small and str(value) in self._numbers else value
        if isinstance(value, Mapping):
            return "..." if depth >= _DEEP else self._mapping(value, depth + 1)
        if isinstance(value, list | tuple):
            if depth >= _DEEP:
                return "..."
            items = [self._value(item, depth + 1) for item in value]
            return tuple(items) if isinstance(value, tuple) else items
        return value

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        clean: dict[Any, Any] = {}
        for key, item in value.items():
            name = self._value(key, depth)
            if name is not key and isinstance(name, str):
                name = _unused(name, clean)
            clean[name] = self._value(item, depth)
        return clean


def _unused(name: str, taken: Mapping[Any, Any]) -> str:
    """The name, numbered if two keys differed in nothing but the form of a secret."""
    number, unused = 1, name
    while unused in taken:
        number += 1
        unused = f"{name} ({number})"
    return unused


class StreamFilter:
    """Replaces secrets in bytes that come in chunks, wherever they are cut.

    Held back is only an end that may be the beginning of a secret. All chunks together give what
    :meth:`Secrets.data` gives for the whole.

    Attributes:
        found: whether there was a secret so far.
    """

    def __init__(self, forms: _Forms[bytes] | None = None) -> None:
        self._forms = forms
        self._held = b""
        self._covered = 0
        self.found = False

    def feed(self, data: bytes) -> bytes:
        """Take the next chunk, and get what can be passed on by now; may be empty."""
        if self._forms is None:
            return data
        return self._pass_on(data, final=False)

    def flush(self) -> bytes:
        """What was held back. The filter can be used anew afterwards."""
        return b"" if self._forms is None else self._pass_on(b"", final=True)

    def _pass_on(self, data: bytes, *, final: bool) -> bytes:
        assert self._forms is not None
        data = self._held + data if self._held else data
        end = len(data) if final else self._forms.undecided(data)
        passed, self._covered = self._forms.replace(data, self._covered, end)
        # What is passed on unchanged is the beginning of what came.
        self.found = self.found or not data.startswith(passed) or len(passed) != end
        self._held = data[end:]
        return passed


@dataclass(frozen=True, slots=True)
class _Forms(Generic[AnyStr]):
    """All forms of all secrets, each with what is put in its place.

    Attributes:
        labels: form -> label, longest form first.
        steps: by form: how far from one occurrence the next may begin.
        heads: the first characters of all forms -> forms.
        starts: all shorter beginnings.
    """

    labels: dict[AnyStr, AnyStr]
    steps: dict[AnyStr, int]
    heads: dict[AnyStr, tuple[AnyStr, ...]]
    starts: frozenset[AnyStr]

    @classmethod
    def of(cls, labels: Mapping[AnyStr, AnyStr]) -> _Forms[AnyStr]:
        known = dict(labels)
        placeholders = set(labels.values())
        # A value such as OPENAI_API_KEY must not be found in what has been put in its place.
        if any(form in label for form in labels for label in placeholders):
            known.update((label, label) for label in placeholders)
        forms = sorted(known, key=lambda form: (-len(form), form))
        heads: dict[AnyStr, list[AnyStr]] = {}
        for form in forms:
            heads.setdefault(form[:_HEAD], []).append(form)
        return cls(
            labels={form: known[form] for form in forms},
            steps={form: _step(form) for form in forms},
            heads={head: tuple(found) for head, found in heads.items()},
            starts=frozenset(form[:size] for form in forms for size in range(1, _HEAD)),
        )

    def replaced(self, text: AnyStr) -> AnyStr:
        return self.replace(text, 0, len(text))[0]

    def replace(self, text: AnyStr, covered: int, end: int) -> tuple[AnyStr, int]:
        """The text up to ``end``, secrets that begin before it replaced as a whole.

        Args:
            text: may go on behind ``end``.
            covered: so much of its beginning belongs to a secret that was replaced before.
            end: no secret that begins before it is incomplete.

        Returns:
            The text, and how much behind ``end`` was replaced with it.
        """
        spans = self._spans(text)
        if not spans and not covered:
            return (text if end == len(text) else text[:end]), 0
        parts: list[AnyStr] = []
        done = covered
        for start, stop, label in spans:
            if start >= end:
                break
            # Secrets that overlap are replaced together, by the name of the first.
            if start >= done:
                parts += (text[done:start], label)
            done = max(done, stop)
        if done < end:
            parts.append(text[done:end])
        return text[:0].join(parts), max(0, done - end)

    def _spans(self, text: AnyStr) -> list[tuple[int, int, AnyStr]]:
        """Where secrets are: by start, at one start the longest first."""
        spans = [
            (start, stop, label)
            for form, label in self.labels.items()
            if form in text
            for start, stop in self._occurrences(form, text)
        ]
        spans.sort(key=lambda span: (span[0], -span[1]))
        return spans

    def _occurrences(self, form: AnyStr, text: AnyStr) -> Iterator[tuple[int, int]]:
        """Occurrences that overlap are one: there may be as many as the text has characters."""
        size, step = len(form), self.steps[form]
        start = text.find(form)
        stop = start + size
        at = start
        while (at := text.find(form, at + step)) >= 0:
            if at >= stop:
                yield start, stop
                start = at
            stop = at + size
        yield start, stop

    def undecided(self, text: AnyStr) -> int:
        """Where the longest end begins that may be the beginning of a secret."""
        size = len(text)
        begin = size
        for head, forms in self.heads.items():
            longest = len(forms[0])
            at = text.find(head, max(0, size - longest + 1))
            while 0 <= at < begin:
                if any(len(form) > size - at and form.startswith(text[at:]) for form in forms):
                    begin = at
                at = text.find(head, at + 1)
        for length in range(min(_HEAD - 1, size), 0, -1):
            if size - length < begin and text[size - length :] in self.starts:
                return size - length
        return begin


def _step(form: AnyStr) -> int:
    """The smallest distance at which a text can occur twice."""
    return next(
        (step for step in range(1, len(form)) if form.startswith(form[step:])),
        len(form),
    )


def _label(name: str) -> str:
    # It may become a part of a file's name.
    return f"***{re.sub(r'[^ -.0-~]', '_', name)}***"


def _is_environ(text: str) -> bool:
    """Whether bytes of the environment can be made of it."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _forms(value: str) -> Iterator[str]:
    """All texts in which a value may turn up; each at least eight characters long."""
    core = value.strip()
    core = core if len(core) >= MIN_LENGTH else value
    # A private key is printed line by line, indented, or with other line ends.
    lines = [line.strip() for line in core.splitlines()]
    plain = [core, core.replace("\n", "\r\n"), "\n".join(lines)] if len(lines) > 1 else [core]
    secret_lines = [line for line in lines if len(line) >= _LINE_LENGTH and not _has_blank(line)]
    for text in dict.fromkeys((*plain, *secret_lines)):
        yield text
        yield text.encode("utf-8", "surrogateescape" if _is_environ(text) else "replace").decode(
            "utf-8", "replace"
        )
        yield from _escaped(text)
        yield repr(text)[1:-1]
        yield from _percent_encoded(text)
    for text in dict.fromkeys((value, core, f"{core}\n")):
        yield from _base64(text)


def _has_blank(text: str) -> bool:
    return any(char.isspace() for char in text)


def _escaped(text: str) -> Iterator[str]:
    """As in JSON, and as in JSON that is a text within JSON."""
    texts: Iterable[str] = (text,)
    for _ in range(2):
        once = [
            json.dumps(item, ensure_ascii=only)[1:-1] for item in texts for only in (True, False)
        ]
        yield from once
        yield from (item.replace("/", "\\/") for item in once)
        texts = once


def _percent_encoded(text: str) -> Iterator[str]:
    try:
        encoded = [quote(text, safe=safe) for safe in ("", "/", "!'()*", "/:@!$&'()*+,;=~")]
        encoded.append(quote_plus(text))
    except UnicodeEncodeError:
        return
    for item in encoded:
        yield item
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), item)


def _base64(text: str) -> Iterator[str]:
    if not _is_environ(text):
        return
    data = text.encode("utf-8", "surrogateescape")
    for encoded in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        padded = encoded.decode("ascii")
        yield padded
        yield padded.rstrip("=")


NO_SECRETS = Secrets()
"""Nothing is replaced."""
