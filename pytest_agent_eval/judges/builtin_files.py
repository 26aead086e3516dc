"""Which builtin judges there are: the shipped ones and those of a project's own directories."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pytest_agent_eval.errors import Problem, SuiteError

__all__ = ["BuiltinFile", "builtin_names", "find_builtins"]

SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "builtin")


class BuiltinFile(NamedTuple):
    """One builtin judge.

    Attributes:
        category: its directory's name; empty for a file directly in a project's directory.
        stem: its file name without extension; unique over all categories and directories.
        path: the file: ``.py`` holds a function ``judge``, ``.md`` a prompt for a model.
        shipped: it belongs to this package.
    """

    category: str
    stem: str
    path: str
    shipped: bool

    @property
    def name(self) -> str:
        """``category/stem``, as messages and lists show it."""
        return f"{self.category}/{self.stem}" if self.category else self.stem


def builtin_names(builtin_dirs: Iterable[Path | str] = ()) -> dict[str, str]:
    """``category/name`` -> file of every builtin judge, sorted; imports nothing.

    Raises:
        SuiteError: as :func:`find_builtins`.
    """
    found = find_builtins(builtin_dirs).values()
    return {item.name: item.path for item in sorted(found, key=lambda item: item.name)}


def find_builtins(builtin_dirs: Iterable[Path | str] = ()) -> dict[str, BuiltinFile]:
    """Stem -> builtin judge. Files and directories whose name starts with ``_`` do not count.

    Args:
        builtin_dirs: the project's own, each holding files or category directories of files.

    Raises:
        SuiteError: a directory that does not exist; a stem that is there twice (with both files).
    """
    found: dict[str, BuiltinFile] = {}
    problems = []
    for directory, shipped in [
        (SHIPPED, True),
        *((os.fspath(item), False) for item in builtin_dirs),
    ]:
        if not os.path.isdir(directory):
            problems.append(Problem(f"agent_eval_judge_dirs: there is no directory {directory}"))
            continue
        for item in _scan(directory, shipped):
            other = found.setdefault(item.stem, item)
            if other.path != item.path:
                message = f"two builtin judges are named {item.stem}: {other.path} and {item.path}"
                problems.append(Problem(message + "; rename one"))
    if problems:
        raise SuiteError(*problems)
    return found


def _scan(directory: str, shipped: bool) -> Iterator[BuiltinFile]:
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if name.startswith(("_", ".")):
            continue
        if os.path.isdir(path):
            for inner in sorted(os.listdir(path)):
                yield from _builtin(name, inner, os.path.join(path, inner), shipped)
        elif not shipped:
            yield from _builtin("", name, path, shipped)


def _builtin(category: str, name: str, path: str, shipped: bool) -> Iterator[BuiltinFile]:
    stem, extension = os.path.splitext(name)
    if extension in (".py", ".md") and not stem.startswith(("_", ".")) and stem != "README":
        yield BuiltinFile(category, stem, path, shipped)
