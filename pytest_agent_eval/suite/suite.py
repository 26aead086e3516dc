"""A suite: one eval.yaml, checked, with the places of everything in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_agent_eval.documents import format_place
from pytest_agent_eval.errors import Problem
from pytest_agent_eval.suite.examples import Examples
from pytest_agent_eval.suite.findings import Place
from pytest_agent_eval.suite.known import Known
from pytest_agent_eval.suite.labels import Labels
from pytest_agent_eval.suite.models.suite import SuiteConfig
from pytest_agent_eval.suite.tool_handlers import HandlerFiles, ToolHandlers, tool_handlers

__all__ = ["Suite"]


@dataclass(frozen=True)
class Suite:
    """One eval.yaml.

    Attributes:
        file: absolute path.
        shown: the file as messages name it, relative to the root directory.
        directory: of the file; paths in the file are relative to it.
        name: ``name``, or the directory's name.
        config: every key, with its default where it is absent.
        digest: xxh3_128 of the file's bytes, hexadecimal.
        warnings: what is odd and stops nothing.
        positions: place -> 1-based (line, column) of its key.
        value_positions: place -> 1-based (line, column) where its value starts.
        variants: name -> the configuration that the variant changes the suite into.
        placeholders: name of a variant -> its ``values``, as text.
        labels: path as judges write it -> the human labels in that file.
        examples: path as judges write it -> the human-scored examples in that file.
        known: the names the suite was checked with.
        handler_files: ``tool_handlers.yaml`` and what handlers name.
    """

    file: Path
    shown: str
    directory: Path
    name: str
    config: SuiteConfig
    digest: str
    warnings: tuple[Problem, ...] = ()
    positions: Mapping[Place, tuple[int, int]] = field(default_factory=dict, repr=False)
    value_positions: Mapping[Place, tuple[int, int]] = field(default_factory=dict, repr=False)
    variants: Mapping[str, SuiteConfig] = field(default_factory=dict)
    placeholders: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    labels: Mapping[str, Labels] = field(default_factory=dict, repr=False)
    examples: Mapping[str, Examples] = field(default_factory=dict, repr=False)
    known: Known = field(default_factory=Known, repr=False)
    handler_files: HandlerFiles = field(default_factory=lambda: HandlerFiles("", ""), repr=False)

    @property
    def handlers(self) -> ToolHandlers:
        """The handlers of questions and tool calls."""
        return tool_handlers(self)

    @property
    def dataset_directory(self) -> Path:
        """``dataset.path``, absolute."""
        return Path(os.path.normpath(os.path.join(self.directory, self.config.dataset.path)))

    def line(self, path: str) -> int | None:
        """1-based line of a key such as ``judges[2].score_range``, or of what holds it."""
        return _nearest(self._lines, path)

    def value_line(self, path: str) -> int | None:
        """1-based line where a value starts: the first line of text of a block scalar."""
        found = self._value_lines.get(path)
        return self.line(path) if found is None else found

    @cached_property
    def _lines(self) -> dict[str, int]:
        return {format_place(place): line for place, (line, _) in self.positions.items()}

    @cached_property
    def _value_lines(self) -> dict[str, int]:
        return {format_place(place): line for place, (line, _) in self.value_positions.items()}


def _nearest(lines: Mapping[str, Any], path: str) -> int | None:
    while path:
        if path in lines:
            found: int = lines[path]
            return found
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get("")
