"""Which files of a project a judge's Python is made of, found without importing anything."""

from __future__ import annotations

import ast
import importlib.util
import os
import warnings
from collections.abc import Iterator, Sequence

__all__ = ["imported_files", "module_files"]

MOST_FILES = 200
"""A judge that reaches more of its project than this is known by the nearest ones."""


def module_files(module: str, places: Sequence[str]) -> list[str]:
    """The file of a module, then those that :func:`imported_files` finds from it.

    A module that is in none of the places is an installed one, known by its own file alone;
    nothing if there is no such module.
    """
    path = _find(module, places)
    if path is not None:
        return _closure([(path, module)], places)
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return []
    return [spec.origin] if spec is not None and spec.origin and os.path.isfile(spec.origin) else []


def imported_files(source: str | bytes, places: Sequence[str]) -> list[str]:
    """The files below ``places`` that a piece of Python imports, and those import, sorted.

    Imports inside functions count; names that are put together when the code runs do not.
    """
    return sorted(_closure(list(_imports(source, "", places)), places))


def _closure(start: list[tuple[str, str]], places: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    waiting = start
    while waiting and len(found) < MOST_FILES:
        path, module = waiting.pop(0)
        if path in found:
            continue
        found[path] = None
        try:
            with open(path, "rb") as stream:
                source = stream.read()
        except OSError:
            continue
        package = module if os.path.basename(path) == "__init__.py" else module.rpartition(".")[0]
        waiting += _imports(source, package, places)
    first, *others = found or [""]
    return [first, *sorted(others)] if first else []


def _imports(source: str | bytes, package: str, places: Sequence[str]) -> Iterator[tuple[str, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the style of a user's file
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        for name in _names(node, package):
            # Importing a.b runs a/__init__.py first.
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                module = ".".join(parts[:end])
                path = _find(module, places)
                if path is not None:
                    yield path, module


def _names(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join(filter(None, (*above, base)))
        for alias in node.names:
            yield ".".join(filter(None, (base, alias.name)))


def _find(module: str, places: Sequence[str]) -> str | None:
    """The file of a module of the project: the first place that has it, as imports look it up."""
    inner = module.replace(".", os.sep)
    for place in places:
        for path in (f"{inner}{os.sep}__init__.py", f"{inner}.py"):
            whole = os.path.join(place, path)
            if os.path.isfile(whole):
                return whole
    return None
