"""An HTML report as a program reads it."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from typing import Any

import pytest

ELEMENTS = {
    *("html", "head", "meta", "link", "title", "style", "body"),
    *("noscript", "p", "header", "main", "div", "script"),
}
"""What the file of a report is made of; all else is made by its scripts."""


class Page(HTMLParser):
    """What a browser would find in a file: elements with their attributes, and scripts' texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._within = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        self.texts[self._within] = self.texts.get(self._within, "") + data

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.texts["data"], parse_constant=pytest.fail)
        return found

    @property
    def details(self) -> list[dict[str, Any]]:
        """Of each case."""
        found: list[dict[str, Any]] = []
        for number, first in enumerate(self.data["chunks"]):
            assert first == len(found)
            found += unpacked(self.texts[f"chunk-{number}"])
        return found

    def of(self, name: str) -> dict[str, Any]:
        """The details of a case by the start of its name."""
        cases = self.data["cases"]
        return self.details[next(n for n, c in enumerate(cases) if c["n"].startswith(name))]


def unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
