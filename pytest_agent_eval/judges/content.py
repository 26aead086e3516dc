"""Which text of a record a judge looks at."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Content", "below", "content_of", "place_in"]


class Content(NamedTuple):
    """A text that the agent produced, or why there is none.

    Attributes:
        text: the text; empty when there is none.
        name: the file's path, or ``final message``.
        fault: why there is no text to judge, one sentence; empty when there is one.
    """

    text: str
    name: str
    fault: str = ""


def content_of(outputs: Mapping[str, Any], file: str | None = None) -> Content:
    """The text of an output file, by default of the main content.

    Args:
        outputs: the record.
        file: a path of ``outputs["files"]``, or the last part of one if only one ends so.
    """
    if file is None:
        return _checked(outputs["main_content"], outputs["main_file"] or "final message")
    files = outputs["files"]
    if file in files:
        return _checked(files[file], file)
    ending = [name for name in files if name.endswith("/" + file)]
    if len(ending) == 1:
        return _checked(files[ending[0]], ending[0])
    if ending:
        return Content("", file, f"{file} is ambiguous: {', '.join(sorted(ending)[:5])}")
    close = difflib.get_close_matches(file, list(files), n=1, cutoff=0.4)
    hint = f"; the nearest is {close[0]}" if close else ""
    return Content("", file, f"{file} was not produced{hint}")


def place_in(outputs: Mapping[str, Any], place: str) -> Any:
    """The value at a dotted place such as ``annotations.expected.total``.

    Raises:
        ValueError: it is not there; the message says what is.
    """
    value: Any = outputs
    reached = ""
    for part in place.split("."):
        if not isinstance(value, Mapping) or part not in value:
            known = ", ".join(sorted(map(str, value))[:10]) if isinstance(value, Mapping) else ""
            there = f"; there is {known}" if known and reached else ""
            raise ValueError(f"{reached or 'the record'} has no {part}{there}")
        value = value[part]
        reached = f"{reached}.{part}" if reached else part
    return value


def below(case_dir: Any, name: str) -> Path:
    """The path of a file below a directory; one that leads out of it, also by a link, is refused.

    Raises:
        ValueError: it leads out.
    """
    root = os.path.realpath(os.fspath(case_dir))
    path = os.path.realpath(os.path.join(root, name))
    if not path.startswith(root + os.sep):
        raise ValueError(f"{name} leads out of the case's directory")
    return Path(path)


def _checked(value: Any, name: str) -> Content:
    if isinstance(value, str):
        return Content(value, name)
    if value is None:
        return Content("", name, "the agent produced no output")
    size = value.get("size") if isinstance(value, Mapping) else None
    return Content("", name, f"{name} is binary" + (f" ({size:,} bytes)" if size else ""))
