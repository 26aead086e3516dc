"""The shop's policies: which pages a message leads to, and what they say."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
WORD = re.compile(r"[a-z]{4,}")
COMMON = frozenset({"that", "this", "with", "have", "from", "they", "been", "will", "your", "what"})


class Policies:
    """Reads pages below a workspace and remembers each reading as a tool call."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self.calls: list[dict[str, Any]] = []
        self.read: dict[str, str] = {}

    def choose(self, action: str, text: str, limit: int = 2) -> list[str]:
        """The pages for an action and a text, best first, at most ``limit``."""
        index = yaml.load(self._open("policies/index.yaml"), Loader=LOADER) or []
        lowered = text.lower()
        scored = []
        for entry in index:
            hits = sum(
                re.search(rf"\b{re.escape(word)}\b", lowered) is not None for word in entry["words"]
            )
            bound = 10 if action in entry["actions"] else 0
            scored.append((-(hits + bound), entry["file"]))
        return [file for score, file in sorted(scored)[:limit] if score]

    def front_matter(self, file: str) -> Mapping[str, Any]:
        """The figures at the head of a page; empty when it has none."""
        text = self.page(file)
        if not text.startswith("---\n"):
            return {}
        return yaml.load(text[4:].partition("\n---")[0], Loader=LOADER) or {}

    def best_lines(self, files: list[str], text: str, count: int) -> list[str]:
        """The lines of these pages that share most words with the text, in page order."""
        wanted = _words(text)
        lines = [
            line[2:].strip()
            for file in files
            for line in self.page(file).splitlines()
            if line.startswith("- ")
        ]
        ranked = sorted(range(len(lines)), key=lambda i: (-len(_words(lines[i]) & wanted), i))
        return [lines[i] for i in sorted(ranked[:count])]

    def page(self, file: str) -> str:
        """The text of a page; reading it twice is one tool call."""
        if file not in self.read:
            self.read[file] = self._open(file)
        return self.read[file]

    def _open(self, file: str) -> str:
        try:
            with open(os.path.join(self._workspace, file), encoding="utf-8") as handle:
                text, failed = handle.read(), False
        except OSError as error:
            text, failed = "", True
            self.calls.append({"file": file, "result": str(error), "is_error": True})
        if not failed:
            self.calls.append({"file": file, "result": text[:200], "is_error": False})
        return text


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in WORD.findall(text.lower())} - COMMON
