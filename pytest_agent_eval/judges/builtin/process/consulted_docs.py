"""The agent read the files that it should have read."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pytest_agent_eval.judges.calls import calls_of, text_list
from pytest_agent_eval.judges.reads import paths_read

Parts = tuple[str, ...]


def judge(
    outputs: Mapping[str, Any],
    min_coverage: float = 0.8,
    match: Literal["suffix", "exact", "basename"] = "suffix",
    include_subagents: bool = True,
    include_grep: bool = True,
    preloaded_files: str | list[str] | None = None,
) -> tuple[bool, str]:
    """Pass if the share of ``annotations.expected_files`` that was read reaches a bound.

    A read whose result was an error does not count. Without expected files: passes.

    Args:
        outputs: the record.
        min_coverage: the bound, 0 to 1, inclusive.
        match: ``suffix``: one path ends with the other, by whole components; ``exact``: the same
            path; ``basename``: the same file name.
        include_subagents: count what subagents read.
        include_grep: count searching in a file as reading it.
        preloaded_files: files the agent had in its context from the beginning.
    """
    expected = text_list(outputs["annotations"].get("expected_files"), "expected_files")
    if not expected:
        return True, "no expected files: nothing to verify"
    root = str(outputs.get("workspace") or "")
    read = text_list(preloaded_files, "preloaded_files")
    for call in calls_of(outputs, include_subagents=include_subagents):
        if not call.failed:
            read.extend(paths_read(call, include_grep=include_grep))
    seen = {parts for path in read if (parts := _parts(path, root))}
    missing = [path for path in expected if not _was_read(_parts(path, root), seen, match)]
    share = (len(expected) - len(missing)) / len(expected)
    said = f"{len(expected) - len(missing)} of {len(expected)} expected files read ({share:.0%})"
    if missing:
        shown = ", ".join(missing[:10])
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        said += f", {min_coverage:.0%} wanted; not read: {shown}{more}"
    return share >= min_coverage, said


def validate(**arguments: Any) -> Iterator[tuple[str, str]]:
    """A coverage that no case can have, as (argument, message)."""
    if not 0 <= arguments.get("min_coverage", 0.8) <= 1:
        yield "min_coverage", "min_coverage is a share: between 0 and 1"


def _parts(path: str, root: str) -> Parts:
    """Normalised components; below ``root`` relative to it, else an absolute path begins with /."""
    path = posixpath.normpath(path.strip().replace("\\", "/").removeprefix("file://"))
    if root and path.startswith(root + "/"):
        path = path[len(root) + 1 :]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return ("/", *parts) if path.startswith("/") and parts else tuple(parts)


def _was_read(expected: Parts, read: set[Parts], match: str) -> bool:
    if not expected:
        return False
    if match == "exact":
        return expected in read
    if match == "basename":
        return any(parts[-1] == expected[-1] for parts in read)
    expected = _rootless(expected)
    return any(
        parts[-len(expected) :] == expected or expected[-len(parts) :] == parts
        for parts in map(_rootless, read)
    )


def _rootless(parts: Parts) -> Parts:
    return parts[1:] if parts[0] == "/" else parts
