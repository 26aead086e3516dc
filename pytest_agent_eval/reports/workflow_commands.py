"""Keeping GitHub Actions from obeying what an agent has said.

Its runner reads every line that a job prints: one that starts with ``::``, also after blanks, or
holds ``##[`` may be a command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["defused"]

_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\[)", re.MULTILINE)


def defused(text: str, environ: Mapping[str, str]) -> str:
    r"""Text that is about to be printed; within GitHub Actions without anything that would be
    taken for a command: ``::error`` is printed as ``\x3a:error``.
    """
    if environ.get("GITHUB_ACTIONS") != "true":
        return text
    return _COMMAND.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    return r"\x23" if match.group(1) is None else rf"{match.group(1)}\x3a"
