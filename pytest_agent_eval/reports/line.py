"""A line of the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Line", "Markup"]

Markup = Literal["", "bold", "green", "red", "yellow"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text without its newline, and how all of it is to be marked up."""

    text: str
    markup: Markup = ""
