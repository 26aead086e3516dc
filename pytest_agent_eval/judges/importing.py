"""Importing the user's Python: with the suite's directory and the root directory importable."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from types import ModuleType

__all__ = ["import_module"]


def import_module(name: str, directories: Sequence[str]) -> ModuleType:
    """Import ``name``, looking into ``directories`` first; ``sys.path`` is as before afterwards.

    Two suites may each have a ``judges.py``: a module of that name that was loaded from elsewhere
    is put aside while this one is imported, and is back in ``sys.modules`` afterwards.

    Raises:
        Whatever the import raises.
    """
    places = [os.path.abspath(directory) for directory in directories]
    importlib.invalidate_caches()  # the file may be younger than the directory's cached listing
    with _importable(places), _namesake_aside(name.partition(".")[0], places):
        return importlib.import_module(name)


@contextmanager
def _importable(places: Sequence[str]) -> Iterator[None]:
    before = list(sys.path)
    sys.path[:0] = places
    try:
        yield
    finally:
        # Keep what the imported code itself added, and whatever else came in the meantime.
        for place in places:
            if place in sys.path and sys.path.count(place) > before.count(place):
                sys.path.remove(place)


@contextmanager
def _namesake_aside(top: str, places: Sequence[str]) -> Iterator[None]:
    """Put a loaded module aside that hides the one in ``places``."""
    loaded = sys.modules.get(top)
    found = PathFinder.find_spec(top, list(places)) if loaded is not None else None
    if loaded is None or found is None or found.origin is None:
        yield  # nothing hides it, or it is not in these places
        return
    if found.origin == getattr(loaded, "__file__", None):
        yield
        return
    aside = {
        name: sys.modules.pop(name)
        for name in list(sys.modules)
        if name == top or name.startswith(top + ".")
    }
    try:
        yield
    finally:
        for name in list(sys.modules):
            if name == top or name.startswith(top + "."):
                del sys.modules[name]
        sys.modules.update(aside)
