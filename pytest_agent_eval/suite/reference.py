"""The reference of eval.yaml as a Markdown page, generated from the models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pytest_agent_eval.suite.messages import model_in
from pytest_agent_eval.suite.models.execution import default_parallelism
from pytest_agent_eval.suite.models.suite import SuiteConfig
from pytest_agent_eval.suite.schema import json_schema

__all__ = ["reference_markdown"]

_BOUNDS = {"exclusiveMinimum": ">", "minimum": ">=", "exclusiveMaximum": "<", "maximum": "<="}
_INTRODUCTION = """\
# eval.yaml: reference

Every key of a suite's file. Paths are relative to the file's own directory. Keys that start with
`x-` are free, anywhere. A null equals an absent key, and an absent block equals its defaults.
Types are strict: a boolean is no number, and `"3"` is not `3`.

This page is generated from the models that check the file: `python docs/make_reference.py`.
"""


def reference_markdown() -> str:
    """All blocks, each with a table of key, type, default and meaning."""
    schema = json_schema()
    parts = [_INTRODUCTION]
    for path, model in _blocks():
        lines = [f"## `{path}`" if path else "## Top level", ""]
        lines += [str(model.__doc__).strip().splitlines()[0], ""]
        lines += ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        lines += [_row(path, name, field, model, schema) for name, field in _fields(model)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _blocks() -> Iterator[tuple[str, type[BaseModel]]]:
    """Path and model of every block, each model once, in the order of the file."""
    top = _inner("", SuiteConfig)
    waiting: list[tuple[str, type[BaseModel]]] = [("", SuiteConfig), *top]
    # A block that is also a key of the top level is described there.
    places = {model: path for path, model in reversed(top)}
    while waiting:
        path, model = waiting.pop(0)
        if places.setdefault(model, path) != path:
            continue
        yield path, model
        waiting[:0] = _inner(path, model) if path else []


def _inner(path: str, model: type[BaseModel]) -> list[tuple[str, type[BaseModel]]]:
    found = [(name, field, model_in(field.annotation)) for name, field in _fields(model)]
    return [(_below(path, name, field), child) for name, field, child in found if child]


def _below(path: str, name: str, field: FieldInfo) -> str:
    text = str(field.annotation)
    suffix = "[]" if text.startswith("tuple") else ".NAME" if "Mapping" in text else ""
    return f"{path}.{name}{suffix}" if path else f"{name}{suffix}"


def _fields(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    return [(field.alias or name, field) for name, field in model.model_fields.items()]


def _row(
    path: str, name: str, field: FieldInfo, model: type[BaseModel], schema: Mapping[str, Any]
) -> str:
    block = schema if model is SuiteConfig else schema["$defs"][model.__name__]
    kind = _type(block["properties"][name], schema)
    cells = (f"`{name}`", kind, _default(field), str(field.description))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is default_parallelism:
        return "min(8, 2 x CPUs)"
    if field.default is PydanticUndefined or field.default is None:
        return ""
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{json.dumps(value)}`" if value not in ("", []) else ""


def _type(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "$ref" in schema:
        return "block"
    if "anyOf" in schema:
        kinds = [_type(item, whole) for item in schema["anyOf"] if item != {"type": "null"}]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{item}`" for item in schema["enum"] if isinstance(item, str))
    types = schema.get("type", "any")
    kind = types if isinstance(types, str) else next(item for item in types if item != "null")
    if kind == "array":
        inner = _type(schema.get("items", {}), whole)
        if schema.get("maxItems") == 2:
            return f"list of two {_plural(inner)}"
        return "list" if inner == "any" else f"list of {_plural(inner)}"
    if kind == "object":
        entries = schema.get("additionalProperties")
        return f"mapping to {_type(entries, whole)}" if isinstance(entries, dict) else "mapping"
    return f"{kind}{_range(schema)}"


def _plural(kind: str) -> str:
    return kind if kind.endswith("s") or " or " in kind else f"{kind}s"


def _range(schema: Mapping[str, Any]) -> str:
    return "".join(f" {sign} {schema[key]:g}" for key, sign in _BOUNDS.items() if key in schema)
