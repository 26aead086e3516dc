"""Text from agents, judges and case names, made safe to show.

An agent's output may hold escape sequences that repaint a terminal, NUL bytes, lone surrogates,
or marks that reorder a line so that it reads as something else. All of them are shown escaped.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata

__all__ = [
    "display_width",
    "hanging",
    "one_line",
    "padded",
    "printable",
    "shortened",
    "wrapped",
]

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\xad\u061c\u180e\u200b\u200e\u200f\u2060\ufeff\U000e0000-\U000e007f"  # invisible
    "\u2028-\u202e\u2066-\u2069"  # line separators, bidi
    "\ud800-\udfff\ufffe\uffff]"
)


def printable(text: str) -> str:
    r"""Text with everything but newlines and tabs that is not plain text shown escaped, such as
    ``\x1b``. A carriage return before a newline is dropped.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, width: int = 0) -> str:
    """Printable text with all white space as single blanks, cut to ``width`` columns if set."""
    text = " ".join(printable(text).split())
    return shortened(text, width) if width else text


def display_width(text: str) -> int:
    """Columns that printable text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(text: str, width: int) -> str:
    """A line cut to ``width`` columns, with ``...`` where something was cut."""
    if display_width(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _columns(character)
        if used > width - 3:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "..."


def padded(text: str, width: int) -> str:
    """A line filled with blanks to ``width`` columns."""
    return text + " " * (width - display_width(text))


def wrapped(text: str, width: int, lines: int = 0) -> list[str]:
    """Text as lines of about ``width`` columns; after ``lines`` of them (0: never) it is cut."""
    text = one_line(text)
    width = max(width, 20)
    # Where characters are wide, fewer of them fit.
    fitting = max(width * len(text) // max(display_width(text), len(text), 1), 10)
    found = textwrap.wrap(text, fitting, break_on_hyphens=False) or [""]
    if lines and len(found) > lines:
        last = shortened(found[lines - 1], width - 3).removesuffix("...")
        found = [*found[: lines - 1], f"{last}..."]
    return found


def hanging(text: str, width: int, indent: int = 4) -> list[str]:
    """Text as lines of about ``width`` columns, all but the first one indented."""
    text = one_line(text)
    if display_width(text) <= width:
        return [text]
    first = wrapped(text, width)[0]
    if len(first) < len(text) and " " not in first:
        first = text[:width].rstrip()  # a long word would leave the first line with a name alone
    rest = text[len(first) :].strip()
    return [first, *(" " * indent + line for line in wrapped(rest, width - indent) if line)]
