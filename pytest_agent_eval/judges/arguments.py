"""A judge's ``arguments``, handed out so that no call can change them for the next one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["copies_of"]

_PLAIN = (str, int, float, bool, type(None))


def copies_of(arguments: Mapping[str, Any]) -> Callable[[], dict[str, Any]]:
    """A function that gives a fresh copy of the arguments at each call."""
    if all(isinstance(value, _PLAIN) for value in arguments.values()):
        return lambda: dict(arguments)
    return lambda: copy.deepcopy(dict(arguments))
