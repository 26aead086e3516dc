"""Reading YAML and JSON files from people: strictly, quickly, with positions for messages.

YAML is YAML 1.1 as PyYAML's ``CSafeLoader`` reads it, hardened: duplicate keys are errors,
aliases may not expand to more than 100,000 nodes, a file may not exceed 5 MiB, and must be
UTF-8 (a byte order mark is accepted).

The composer runs in C; the values are built here in one walk over its nodes, which is faster
than PyYAML's own two-phase constructor and is the place where duplicates are noticed.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pytest_agent_eval.errors import DocumentError, Problem

__all__ = ["MAX_BYTES", "MAX_NODES", "Document", "parse_yaml", "read_document", "read_yaml"]

MAX_BYTES = 5 * 1024 * 1024
MAX_NODES = 100_000
MAX_DEPTH = 200

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Path_ = tuple[str | int, ...]
"""A place inside a document: keys and list indices from the root."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file.

    Attributes:
        data: the value: mappings, lists and scalars.
        file: how to name the file in messages.
        positions: place -> 1-based (line, column) of the *key* for mapping entries, of the item
            for list entries. Filled only when asked for.
        values: place -> 1-based (line, column) where the *value* starts; for a block scalar
            (``|`` or ``>``) the line of its first line of text. Filled only when asked for.
        problems: duplicate keys, where the caller asked to go on in spite of them.
    """

    data: Any
    file: str = ""
    positions: dict[Path_, tuple[int, int]] = field(default_factory=dict)
    values: dict[Path_, tuple[int, int]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def position(self, place: Path_) -> tuple[int | None, int | None]:
        """Line and column of a place, or of the nearest place around it that is in the file."""
        while True:
            if place in self.positions:
                return self.positions[place]
            if not place:
                return None, None
            place = place[:-1]


def read_document(path: Path) -> Any:
    """The value of a ``.json`` file, or of any other file read as YAML.

    Raises:
        DocumentError: unreadable, too large, not UTF-8, not valid.
    """
    if path.suffix.lower() == ".json":
        return _parse_json(_read(path), str(path.name))
    return parse_yaml(_read(path), file=path.name).data


def read_yaml(path: Path, *, file: str = "", positions: bool = False) -> Document:
    """Read and parse one YAML file; ``file`` is its name in messages (default: the base name).

    Raises:
        DocumentError: unreadable, too large, not UTF-8, not valid YAML.
    """
    return parse_yaml(_read(path), file=file or path.name, positions=positions)


def parse_yaml(
    text: bytes | str, *, file: str = "", positions: bool = False, keep_going: bool = False
) -> Document:
    """Parse YAML text.

    Args:
        text: UTF-8 where it is bytes.
        file: how to name the file in messages.
        positions: whether to note where everything is.
        keep_going: return duplicate keys in ``Document.problems`` instead of raising; the first
            of them holds.

    Raises:
        DocumentError: not UTF-8, not valid YAML, duplicate keys (all of them are reported),
            aliases that expand too far.
    """
    text = text if isinstance(text, str) else _decode(text, file)
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            builder = _Builder(loader, text, file, positions)
            data = builder.build(node, ()) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise DocumentError(_problem_of(error, text, file)) from None
    except yaml.YAMLError as error:
        raise DocumentError(_unreadable(error, text, file)) from None
    except RecursionError:
        raise DocumentError(Problem("nested too deeply", file=file, line=1)) from None
    problems = tuple(builder.duplicates.values())
    if problems and not keep_going:
        raise DocumentError(*problems)
    return Document(data, file, builder.positions, builder.values, problems)


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not UTF-8: byte 0x{data[error.start]:02x} cannot be decoded"
        raise DocumentError(Problem(message, file=file, line=line)) from None


class _Builder:
    """Builds values from composed nodes; one instance a document."""

    def __init__(self, loader: Any, text: str, file: str, positions: bool) -> None:
        self._loader = loader
        self._text = text
        self._file = file
        self._wanted = positions
        self._aliases = "&" in text and "*" in text
        # YAML ends a line at these too; editors, and so line numbers for people, do not.
        self._recount = not text.isascii() and _YAML_ONLY_BREAK.search(text) is not None
        self._seen: set[int] = set()
        self._inside_alias = 0
        self._expanded = 0
        self.positions: dict[Path_, tuple[int, int]] = {}
        self.values: dict[Path_, tuple[int, int]] = {}
        self.duplicates: dict[tuple[int, int], Problem] = {}

    def build(self, node: Any, place: Path_) -> Any:
        if self._wanted:
            line, column = at = self._at(node.start_mark)
            below = getattr(node, "style", None) in ("|", ">")
            self.values.setdefault(place, (line + below, column))
            self.positions.setdefault(place, at)
        if self._inside_alias:
            self._count(node, place)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if not self._aliases or id(node) not in self._seen:
            self._seen.add(id(node))
            return self._collection(node, place)
        # The composer hands the same node out again for every alias of it.
        self._inside_alias += 1
        value = self._collection(node, place)
        self._inside_alias -= 1
        return value

    def _at(self, mark: Any) -> tuple[int, int]:
        """1-based line and column of a mark."""
        if self._recount:
            return _place(self._text, mark.index)
        return mark.line + 1, mark.column + 1

    def _count(self, node: Any, place: Path_) -> None:
        """Bound what aliases expand to; one that contains itself never ends otherwise."""
        self._expanded += 1
        if self._expanded > MAX_NODES or len(place) > MAX_DEPTH:
            message = f"aliases expand to more than {MAX_NODES:,} nodes"
            line, _ = self._at(node.start_mark)
            raise DocumentError(Problem(message, file=self._file, line=line))

    def _scalar(self, node: Any) -> Any:
        tag = node.tag
        if tag == "tag:yaml.org,2002:str":
            return node.value
        make = _SCALARS.get(tag)
        if make is None:
            raise _unsupported(node)
        try:
            return make(self._loader, node)
        except yaml.YAMLError:
            raise
        except Exception as error:
            # 2024-13-45 looks like a date and is none; "!!bool maybe" is a KeyError in PyYAML.
            said = _first_line(error) if type(error) is ValueError else "does not fit its type"
            raise yaml.MarkedYAMLError(
                problem=f"{node.value[:40]}: {said}", problem_mark=node.start_mark
            ) from None

    def _collection(self, node: Any, place: Path_) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            return [self.build(item, (*place, index)) for index, item in enumerate(node.value)]
        raise _unsupported(node)

    def _mapping(self, node: Any, place: Path_) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        marks: dict[Any, Any] = {}
        merged: list[Any] = []
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged.append(value_node)
                continue
            mark = key_node.start_mark
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(
                    problem="a mapping key must be a plain value", problem_mark=mark
                )
            key = self._scalar(key_node)
            if key in result:
                self._duplicate(key, place, mark, marks[key])
                continue
            here = (*place, key)
            if self._wanted:
                self.positions.setdefault(here, self._at(mark))
            marks[key] = mark
            result[key] = self.build(value_node, here)
        for value_node in merged:
            self._merge(result, value_node, place)
        return result

    def _merge(self, result: dict[Any, Any], node: Any, place: Path_) -> None:
        """``<<``: keys of the mapping itself win, then those of earlier merged mappings."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            value = self.build(source, place)
            if not isinstance(value, dict):
                raise yaml.MarkedYAMLError(
                    problem="<< needs a mapping or a list of mappings",
                    problem_mark=source.start_mark,
                )
            for key, item in value.items():
                result.setdefault(key, item)

    def _duplicate(self, key: Any, place: Path_, mark: Any, first: Any) -> None:
        line, column = self._at(mark)
        # Once for its place in the file: an aliased mapping is built again for every alias.
        self.duplicates.setdefault(
            (line, column),
            Problem(
                f"duplicate key {key!r}, first used in line {self._at(first)[0]}",
                path=format_place((*place, key)),
                file=self._file,
                line=line,
                column=column,
            ),
        )


def _unsupported(node: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(
        problem=f"the tag {node.tag} is not supported here", problem_mark=node.start_mark
    )


_SCALARS: dict[str, Callable[[Any, Any], Any]] = {
    "tag:yaml.org,2002:null": lambda loader, node: None,
    "tag:yaml.org,2002:bool": lambda loader, node: loader.construct_yaml_bool(node),
    "tag:yaml.org,2002:int": lambda loader, node: loader.construct_yaml_int(node),
    "tag:yaml.org,2002:float": lambda loader, node: loader.construct_yaml_float(node),
    "tag:yaml.org,2002:timestamp": lambda loader, node: loader.construct_yaml_timestamp(node),
    "tag:yaml.org,2002:binary": lambda loader, node: loader.construct_yaml_binary(node),
    # A lone "=" is YAML 1.1's default-value mark; as text it is just "=".
    "tag:yaml.org,2002:value": lambda loader, node: node.value,
}


def format_place(place: Path_) -> str:
    """``("judges", 2, "name")`` -> ``judges[2].name``."""
    text = ""
    for part in place:
        if isinstance(part, int) and not isinstance(part, bool):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else str(part)
    return text


def _read(path: Path) -> bytes:
    # read(n) sets n bytes aside whatever the file's size, so the size is looked at first.
    try:
        with open(path, "rb", buffering=0) as stream:
            small = os.fstat(stream.fileno()).st_size <= MAX_BYTES
            data = stream.readall() if small else b""
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DocumentError(Problem(f"cannot be read: {reason}", file=path.name)) from None
    if not small or len(data) > MAX_BYTES:
        message = f"larger than {MAX_BYTES // 1024 // 1024} MiB"
        raise DocumentError(Problem(message, file=path.name))
    return data


def _parse_json(data: bytes, file: str) -> Any:
    try:
        return json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_unique,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except UnicodeDecodeError as error:
        raise DocumentError(Problem(f"not UTF-8: {error.reason}", file=file)) from None
    except json.JSONDecodeError as error:
        line, column = _place(error.doc, error.pos)
        message = f"not valid JSON: {error.msg}"
        raise DocumentError(Problem(message, file=file, line=line, column=column)) from None
    except ValueError as error:
        raise DocumentError(Problem(f"not valid JSON: {error}", file=file)) from None
    except RecursionError:
        raise DocumentError(Problem("nested too deeply", file=file)) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"duplicate key {key!r}")
            seen.add(key)
    return result


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def _unreadable(error: yaml.YAMLError, text: str, file: str) -> Problem:
    """A character that YAML does not allow: the reader says which, but no line."""
    character = getattr(error, "character", None)
    at = text.find(chr(character)) if isinstance(character, int) else -1
    line, column = _place(text, at) if at >= 0 else (None, None)
    return Problem(f"not valid YAML: {_first_line(error)}", file=file, line=line, column=column)


def _problem_of(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    said = error.problem or error.context or "not understood"
    if error.context and error.problem:
        said = f"{said} ({error.context})"
    line, column = _place(text, mark.index) if mark else (None, None)
    return Problem(f"not valid YAML: {said}", file=file, line=line, column=column)


def _place(text: str, at: int) -> tuple[int, int]:
    """1-based line and column of a character; of the end of the text where it is beyond that.

    Parsers see the end of a file below its last line, which an editor may not even show.
    """
    lines = _LINE_BREAK.split(text[: min(at, len(text.rstrip()))])
    return len(lines), len(lines[-1]) + 1


_LINE_BREAK = re.compile("\r\n|[\n\r]")
_YAML_ONLY_BREAK = re.compile("[\x85\u2028\u2029]")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
