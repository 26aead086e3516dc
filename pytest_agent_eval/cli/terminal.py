"""Printing for a terminal, a pipe or a file: width, colour, and text that cannot be encoded."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable

from pytest_agent_eval.reports.terminal import Line

__all__ = ["print_lines", "width"]

_UNLIMITED = 100
"""Columns where there is no terminal; COLUMNS says otherwise."""
_CODES = {"bold": "1", "green": "32", "red": "31", "yellow": "33"}


def width() -> int:
    """Columns of the terminal, at least 40."""
    fallback = 80 if sys.stdout.isatty() else _UNLIMITED
    return max(shutil.get_terminal_size((fallback, 24)).columns, 40)


def print_lines(lines: Iterable[Line]) -> None:
    """Print lines, with their markup where the output is a terminal that shows colours."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    coloured = _coloured()
    for line in lines:
        code = _CODES.get(line.markup, "") if coloured else ""
        print(f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text)


def _coloured() -> bool:
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") != "dumb"
    )
