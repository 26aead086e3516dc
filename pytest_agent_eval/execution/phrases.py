"""Phrases by which a text can be recognised elsewhere, however it is quoted, folded or escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["Phrase", "Searched", "phrases_of", "texts_of"]

_LONG = 12
_WORDS = 3
_FEWEST_LETTERS = 4
_LONGEST_WORD = 24
_PIECE = 8
_STRIDE = 4
_MAX_PIECES = 64
_DEEP = 50

_WEB_OR_FILE = re.compile(r"\S*/\S*")
_PLAIN = re.compile(r"[^\W\d_]+(?:[-_.:'’][^\W\d_]+)*[.!?:,;]?")
_RUN = re.compile("[A-Za-z0-9]+")

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[nrt])")
_LETTERS = bytes(code if chr(code).isalpha() and code < 128 else 32 for code in range(256))

_GAP = (
    # The beginning of a line as tools show files: with a number, or a mark of a quote or a change.
    r"(?:(?:\n|\\n)(?:[ \t]|\\t){0,40}(?:\d{1,6}(?:→|\\u2192|\\t|[\t:|])|[>+#|-])"
    r"|\\[nrt]|[\s\\]){1,400}"
)
"""What is between two words: blanks and line ends, also as they are written in JSON and YAML."""

_AFTER_KEY = r"""["'\\]{0,8}\s{0,40}[:=](?:\\[nrt]|["'\s\\|>\[-]){0,200}"""

_FOLD = r"(?:\\{0,8}(?:\n|n) {0,40}\\{0,8})?"
"""YAML may end a line within a word, behind a character that it has to escape."""

_ASCII = {
    '"': r'\\{0,8}"' + _FOLD,
    "'": r"\\{0,8}''?",
    "/": r"\\?/",
    "<": r"(?:<|\\{1,8}u003[cC])",
    ">": r"(?:>|\\{1,8}u003[eE])",
    "&": r"(?:&|\\{1,8}u0026)",
}


class Phrase(NamedTuple):
    """A part of a text that says where it comes from.

    Attributes:
        path: of the value, such as ``annotations.notes[0].reviewer``.
        words: of the phrase, without the blanks between them.
        key: when it is set, words that anybody might write: they count only where they follow this
            key, as in ``difficulty: intermediate``.
    """

    path: str
    words: tuple[str, ...]
    key: str = ""


def texts_of(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Each text within nested mappings and lists: its path, its key (empty: none), the text.

    Of a list, only the first item has the key: that is where it follows the key.
    """
    yield from _texts(value, path, path.rpartition(".")[2], 0)


def _texts(value: Any, path: str, key: str, depth: int) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, str):
        yield path, key, value
    elif depth >= _DEEP:
        return
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, f"{path}.{name}", str(name), depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]", "" if index else key, depth + 1)


def phrases_of(path: str, key: str, text: str) -> Iterator[Phrase]:
    """What to look for; nothing for numbers, dates and texts that are too short.

    A long text is looked for in pieces of eight words, so that half of it is found too, and a
    text whose lines were numbered.
    """
    words = tuple(text.split())
    size = sum(map(len, words)) + len(words) - 1
    if size < _LONG and len(words) < _WORDS:
        return
    if sum(map(str.isalpha, text)) < _FEWEST_LETTERS:
        return
    if _anybody_writes(words, size):
        if key:
            yield Phrase(path, words, key)
        return
    last = len(words) - _PIECE
    if last < _STRIDE:
        yield Phrase(path, words)
        return
    starts = [*range(0, last, _STRIDE), last]
    every = -(-len(starts) // _MAX_PIECES)
    for start in starts[::every]:
        piece = words[start : start + _PIECE]
        if sum(map(str.isalpha, "".join(piece))) >= _FEWEST_LETTERS:
            yield Phrase(path, piece)


def _anybody_writes(words: tuple[str, ...], size: int) -> bool:
    """Whether agents come upon a phrase by themselves: one or two common words, a file, a link."""
    if size < _LONG:
        return True
    if len(words) == 1 and _WEB_OR_FILE.fullmatch(words[0]):
        return True
    return (
        len(words) < _WORDS
        and all(map(_PLAIN.fullmatch, words))
        and max(map(len, words)) < _LONGEST_WORD
    )


class Searched:
    """A text in which many phrases are looked for: any, such as a log, JSON or YAML."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._letters: str | None = None

    def holds(self, phrase: Phrase, *, any_case: bool = False) -> bool:
        """Whether a phrase occurs, not as a part of longer words; in any letter case if wanted."""
        # Searching for a text is many times as fast as for a pattern, and mostly in vain.
        if not any_case and not self._may_hold(phrase):
            return False
        pattern = _GAP.join(map(_word, phrase.words))
        if phrase.key:
            pattern = f"{_GAP.join(map(_word, phrase.key.split()))}{_AFTER_KEY}{pattern}"
        found = re.compile(pattern, re.IGNORECASE if any_case else 0).finditer(self._text)
        return any(_is_whole(self._text, match.start(), match.end()) for match in found)

    def _may_hold(self, phrase: Phrase) -> bool:
        text = " ".join(phrase.words)
        if max(_RUN.findall(text), key=len, default="") not in self._text:
            return False
        if self._letters is None:
            self._letters = _letters(self._text)
        return _letters(text) in self._letters


def _letters(text: str) -> str:
    """ASCII letters only, one blank for all that is between: the same however it is escaped."""
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
    return " ".join(text.encode("ascii", "replace").translate(_LETTERS).decode("ascii").split())


def _word(word: str) -> str:
    return re.sub(r"\\+|[\s\S]", lambda found: _char(found[0]), word)


def _char(char: str) -> str:
    if char.startswith("\\"):
        return r"\\{1,8}" + _FOLD
    if char.isascii():
        return _ASCII.get(char) or re.escape(char)
    code = ord(char)
    escapes = [f"U{code:08x}"]
    if code <= 0xFF:
        escapes.append(f"x{code:02x}")
    if code <= 0xFFFF:
        escapes.append(f"u{code:04x}")
    else:
        high, low = divmod(code - 0x10000, 0x400)
        escapes.append(rf"u{0xD800 + high:04x}\\{{1,8}}u{0xDC00 + low:04x}")
    digits = "|".join(
        re.sub("[a-f]", lambda d: f"[{d[0]}{d[0].upper()}]", item) for item in escapes
    )
    return rf"(?:{re.escape(char)}|\\{{1,8}}(?:{digits}){_FOLD})"


def _is_whole(text: str, start: int, end: int) -> bool:
    if start and text[start].isalnum() and text[start - 1].isalnum():
        # An n before it may be the second half of an escaped line end.
        escaped = start > 1 and text[start - 1] in "nrt" and text[start - 2] == "\\"
        if not escaped:
            return False
    return not (end < len(text) and text[end - 1].isalnum() and text[end].isalnum())
