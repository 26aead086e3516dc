"""A JSON Schema of eval.yaml, for completion and checks in an editor."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from pytest_agent_eval.suite.models.suite import SuiteConfig

__all__ = ["json_schema"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12), generated from the models.

    It knows keys, types and ranges. What concerns several keys at once (a threshold's judge, a
    judge's kind) is checked by loading the suite. Keys of judge kinds that plugins register are
    unknown to it.
    """
    generated = SuiteConfig.model_json_schema(by_alias=True, schema_generator=_Plain)
    blocks = [generated, *generated.get("$defs", {}).values()]
    for block in blocks:
        if block.get("type") == "object" and "properties" in block:
            _open(block)
    # YAML 1.1 reads an unquoted `off` as false.
    leak = generated["$defs"]["DatasetConfig"]["properties"]["leak"]
    leak["enum"] = [*leak["enum"], False]
    leak.pop("type", None)
    return {"$schema": DIALECT, **generated, "title": "eval.yaml"}


class _Plain(GenerateJsonSchema):
    """Without a title for every property: it only repeats the key."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _open(block: dict[str, Any]) -> None:
    """Allow the author's own ``x-`` keys, and null where a key may be absent."""
    block["patternProperties"] = {"^x-": {}}
    block.pop("title", None)
    required = set(block.get("required", ()))
    for key, value in block["properties"].items():
        entries = value.get("additionalProperties")
        if isinstance(entries, dict) and entries.get("type") != "string":
            # Keys are names that the author chose; a null entry equals an absent one.
            value["patternProperties"] = {"^x-": {}}
            value["additionalProperties"] = _or_null(entries)
        if key not in required:
            block["properties"][key] = _or_null(value)


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if kind in ("string", "number", "integer", "boolean") and "const" not in schema:
        widened: dict[str, Any] = {**schema, "type": [kind, "null"]}
        if "enum" in schema:
            widened["enum"] = [*schema["enum"], None]
        return widened
    branches = schema.get("anyOf")
    if branches is not None:
        if {"type": "null"} in branches:
            return schema
        return {**schema, "anyOf": [*branches, {"type": "null"}]}
    inside = {key: item for key, item in schema.items() if key not in ("description", "default")}
    outside = {key: item for key, item in schema.items() if key in ("description", "default")}
    return {"anyOf": [inside, {"type": "null"}], **outside} if inside else schema
