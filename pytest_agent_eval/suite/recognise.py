"""Telling a suite from somebody else's ``eval.yaml``: cheaply, and never with an exception."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

import yaml

from pytest_agent_eval.documents import MAX_BYTES

__all__ = ["Recognition", "is_suite"]

_ONE_OF = ("execution", "skill", "runner", "judges")
_KEY = re.compile(rb"""^(?:["']?)(dataset|execution|skill|runner|judges)(?:["']?)[ \t]*:""", re.M)
_PARSED = 256 * 1024
"""Bytes up to which a file is parsed; of a larger one the starts of lines have to do."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Recognition:
    """Whether a file is a suite.

    Attributes:
        suite: it is, or was plainly meant as one.
        missing: what its top level lacks.
        reason: one sentence for a person who named the file; empty for a suite.
    """

    suite: bool
    missing: tuple[str, ...] = ()
    reason: str = ""


def is_suite(file: str | os.PathLike[str] | bytes) -> Recognition:
    """Whether a file (or its bytes) is a suite: a mapping with ``dataset`` and one of
    ``execution``, ``skill``, ``runner``, ``judges``.

    A file that is not valid YAML but has these keys at the start of lines counts as one, so that
    its error is shown. Never raises for what a file holds, or for one that cannot be read.
    """
    if isinstance(file, bytes):
        data = file
    else:
        try:
            with open(file, "rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            return Recognition(False, reason=f"cannot be read: {error.strerror or error}")
    if b"dataset" not in data or len(data) > _PARSED:
        if b"\0" in data[:1024]:
            return Recognition(False, reason="it is a binary file")
        return _decide({match.decode() for match in _KEY.findall(data)})
    try:
        keys = _top_level_keys(data)
    except (yaml.YAMLError, UnicodeError, ValueError, RecursionError):
        seen = {match.decode() for match in _KEY.findall(data)}
        found = _decide(seen)
        return found if found.suite else Recognition(False, found.missing, "it is not valid YAML")
    if keys is None:
        return Recognition(False, reason="its top level is not a mapping")
    return _decide(keys)


def _decide(keys: set[str]) -> Recognition:
    missing: tuple[str, ...] = () if "dataset" in keys else ("dataset",)
    if not keys.intersection(_ONE_OF):
        missing += (f"one of {', '.join(_ONE_OF)}",)
    if not missing:
        return Recognition(True)
    return Recognition(False, missing, f"its top level lacks {', and '.join(missing)}")


def _top_level_keys(data: bytes) -> set[str] | None:
    """The plain keys of the top-level mapping, up to those that decide; None for another form."""
    keys: set[str] = set()
    depth = 0
    is_key = True
    for event in yaml.parse(data.decode("utf-8-sig"), Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            if depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                return None
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            if depth == 0:
                break
            is_key ^= depth == 1
        elif isinstance(event, yaml.NodeEvent):
            if depth == 0:
                return None
            if depth == 1 and is_key and isinstance(event, yaml.ScalarEvent):
                keys.add(event.value)
                if "dataset" in keys and keys.intersection(_ONE_OF):
                    break
            is_key ^= depth == 1
    return keys
