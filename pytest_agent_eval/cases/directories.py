"""Reading a dataset: the direct subdirectories of one directory, each a case.

10,000 cases are common, so this stays close to the file system: each directory is listed once,
paths are text, and only the annotations are read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_agent_eval.cases.case import (
    ANNOTATIONS,
    INPUT_NAMES,
    BrokenCase,
    Case,
    escaped,
    no_mapping,
)
from pytest_agent_eval.cases.split import Split, nfc
from pytest_agent_eval.cases.tags import read_category, read_tags
from pytest_agent_eval.documents import MAX_BYTES, format_place, parse_yaml
from pytest_agent_eval.errors import CaseError, DocumentError, Problem, SelectionError

__all__ = ["natural_key", "read_cases"]

_MISNAMED = ("annotations.yml", "annotations.json")
_DIGITS = re.compile(r"([0-9]+)")
# Not str.isprintable: names with other blanks than the ASCII one, or joined emoji, are fine.
_UNADDRESSABLE = re.compile(r"::|[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|\A\s|\s\Z")


def read_cases(
    directory: Path,
    split: Split,
    *,
    names: frozenset[str] | None = None,
    variants: bool = False,
) -> list[Case | BrokenCase]:
    """Read the cases of a dataset, in dataset order (by name, ``case-2`` before ``case-10``).

    Args:
        directory: holds the case directories.
        split: how the dataset is split.
        names: read these only, for a selection of single cases; None reads all.
        variants: the suite has variants, so that a name must not end in ``[...]``.

    Raises:
        SelectionError: there is no such directory, it cannot be listed, or it holds no case.
    """
    root = os.path.abspath(directory)
    found = _candidates(root)
    if not found:
        raise _dataset_error(_empty_message(root))
    counts = Counter(name for name, _, _ in found)
    if names is not None:
        wanted = {nfc(name) for name in names}
        found = [candidate for candidate in found if candidate[0] in wanted]
    found.sort(key=lambda candidate: (natural_key(candidate[0]), candidate[1]))
    reader = _Reader(root, split, variants)
    return [
        reader.read(name, path, link)
        if counts[name] == 1
        else _broken(name, path, "another directory has the same name in another Unicode form")
        for name, path, link in found
    ]


def natural_key(name: str) -> tuple[object, ...]:
    """Sort key that compares digits as numbers: ``case-2`` before ``case-10``."""
    parts: list[object] = []
    for index, part in enumerate(_DIGITS.split(name)):
        if index % 2:  # text and digits alternate, so that like is compared with like
            digits = part.lstrip("0")
            parts.append((len(digits), digits))
        else:
            parts.append(part)
    return tuple(parts), name  # 01 and 1 are the same number, so the name has the last word


def _candidates(root: str) -> list[tuple[str, str, bool]]:
    """Name, path, and whether it is a link, of everything that may be a case."""
    try:
        with os.scandir(root) as entries:
            return [
                (nfc(entry.name), entry.path, entry.is_symlink())
                for entry in entries
                if entry.name[0] not in "._" and _may_be_case(entry)
            ]
    except FileNotFoundError:
        raise _dataset_error(f"there is no directory {root}") from None
    except NotADirectoryError:
        raise _dataset_error(f"{root} is a file, not a directory of cases") from None
    except OSError as error:
        raise _dataset_error(f"{root} cannot be read: {error.strerror}") from None


def _may_be_case(entry: os.DirEntry[str]) -> bool:
    """A directory, or a link that leads nowhere: it was a case once and must not just vanish."""
    try:
        return entry.is_dir() or (entry.is_symlink() and not os.path.exists(entry.path))
    except OSError:  # a link to itself
        return True


class _Reader:
    """Reads single case directories of one dataset."""

    def __init__(self, root: str, split: Split, variants: bool) -> None:
        self._root = os.path.realpath(root).rstrip(os.sep) + os.sep
        self._split = split
        self._variants = variants

    def read(self, name: str, path: str, link: bool) -> Case | BrokenCase:
        try:
            reason = self._unaddressable(name)
            if reason:
                return _broken(name, path, f"the directory's name {reason}; rename it")
            if link:
                reason = self._bad_link(path)
                if reason:
                    return _broken(name, path, reason)
            return self._case(name, path)
        except OSError as error:
            return _broken(name, path, f"cannot be read: {error.strerror}")

    def _case(self, name: str, path: str) -> Case | BrokenCase:
        files = os.listdir(path)
        inputs = [file for file in INPUT_NAMES if file in files]
        if len(inputs) != 1:
            return _broken(name, path, _input_message(inputs, path, files))
        data = b""
        if ANNOTATIONS in files:
            with open(path + os.sep + ANNOTATIONS, "rb", buffering=0) as stream:
                data = stream.readall()
        else:
            for file in _MISNAMED:
                if file in files:
                    message = f"{file} is not read; the file is called {ANNOTATIONS}"
                    return _broken(name, path, message)
        try:
            annotations = _parse(data)
            tags = read_tags(annotations)
            category = read_category(annotations)
            unit, group = self._split.unit(name, annotations)
        except DocumentError as error:
            problems = "\n".join(str(problem) for problem in _with_lines(error.problems, data))
            return _broken(name, path, problems)
        return Case(
            name,
            path,
            inputs[0],
            annotations,
            self._split.half(unit),
            group,
            tags.mapping,
            tags.flat,
            category,
        )

    def _unaddressable(self, name: str) -> str:
        """Why pytest cannot address a case of this name; empty if it can."""
        if self._variants and name[-1] == "]" and "[" in name:
            return "ends in [...], which would look like a variant"
        if _UNADDRESSABLE.search(name) is None:
            return ""
        if "::" in name:
            return "holds ::, which separates the parts of a test's id"
        if name != name.strip():
            return "begins or ends with a blank"
        return "holds a control character, or bytes that are not UTF-8"

    def _bad_link(self, path: str) -> str:
        """Why a link is no case; empty if it is one."""
        if not os.path.isdir(path):
            return f"a link to {escaped(os.readlink(path))}, which does not exist"
        if not os.path.realpath(path).startswith(self._root):
            return "a link that leaves the dataset's directory"
        return ""


def _parse(data: bytes) -> dict[str, Any]:
    """The annotations in a file's bytes; an empty file holds none.

    Raises:
        DocumentError: too large, not UTF-8, not valid YAML, no mapping.
    """
    if not data:
        return {}
    if len(data) > MAX_BYTES:
        message = f"larger than {MAX_BYTES // 1024 // 1024} MiB"
        raise DocumentError(Problem(message, file=ANNOTATIONS))
    value = parse_yaml(data, file=ANNOTATIONS).data
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    raise DocumentError(no_mapping(value, ANNOTATIONS, None, "write keys such as tags: [short]"))


def _with_lines(problems: Sequence[Problem], data: bytes) -> list[Problem]:
    """Problems of values, which know their path, with the line it is in."""
    if all(problem.line is not None for problem in problems):
        return list(problems)
    try:
        document = parse_yaml(data, positions=True)
    except DocumentError:
        return list(problems)
    lines = {format_place(place): line for place, (line, _) in document.positions.items()}
    return [replace(problem, line=problem.line or lines.get(problem.path)) for problem in problems]


def _input_message(inputs: Sequence[str], path: str, files: Sequence[str]) -> str:
    """Why a directory has not exactly one input file, and what may have been meant."""
    if inputs:
        return f"has {' and '.join(inputs)}; keep one"
    message = f"no {INPUT_NAMES[0]} (input.yml or input.json would do)"
    inner = [file for file in sorted(files, key=natural_key) if _has_input(path, file)]
    if inner:
        more = f" and {len(inner) - 1} more" if len(inner) > 1 else ""
        return (
            f"{message}, but its subdirectory {escaped(inner[0])}{more} has one: a case is a "
            "direct subdirectory of dataset.path"
        )
    near = [file for file in sorted(files) if file.lower().startswith("input.")]
    return f"{message}; there is {escaped(near[0])}" if near else message


def _has_input(path: str, name: str) -> bool:
    return any(os.path.isfile(os.path.join(path, name, file)) for file in INPUT_NAMES)


def _empty_message(root: str) -> str:
    if _has_input(root, ""):
        return f"{root} is a case itself; dataset.path is the directory that holds the cases"
    return f"no case in {root}: a case is a subdirectory with an {INPUT_NAMES[0]}"


def _broken(name: str, path: str, message: str) -> BrokenCase:
    shown = escaped(name)
    return BrokenCase(shown, path, CaseError(shown, message))


def _dataset_error(message: str) -> SelectionError:
    return SelectionError(f"dataset.path: {message}")
