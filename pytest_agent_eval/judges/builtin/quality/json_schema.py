"""The output is JSON that fits a JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pytest_agent_eval.documents import read_document
from pytest_agent_eval.judges.content import below, content_of, place_in
from pytest_agent_eval.judges.difference import show
from pytest_agent_eval.judges.verdict import shorten

_MAX_FAULTS = 5


def judge(
    outputs: Mapping[str, Any],
    schema: dict[str, Any] | bool | None = None,
    schema_file: str | None = None,
    expected: str | None = None,
    file: str | None = None,
) -> tuple[bool, str]:
    """Pass if the output is valid against the schema (draft 2020-12 unless it says otherwise).

    References to other documents are not fetched: they are judge errors.

    Args:
        outputs: the record.
        schema: the schema itself.
        schema_file: a JSON or YAML file below the case's directory.
        expected: a dotted place in the record that holds the schema, such as
            ``annotations.schema``.
        file: the output file to look at; default: the main content.

    Raises:
        ValueError: no such schema file, or a schema that is none.
        ModuleNotFoundError: jsonschema is not installed.
    """
    content = content_of(outputs, file)
    if content.fault:
        return False, content.fault
    if schema_file is not None:
        schema = read_document(below(outputs["case_dir"], schema_file))
    elif expected is not None:
        schema = place_in(outputs, expected)
    validator = _validator(schema)
    try:
        data = json.loads(content.text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return False, f"{content.name} is no JSON: {shorten(str(error), 200)}"
    faults = list(islice(validator.iter_errors(data), _MAX_FAULTS + 1))
    if not faults:
        return True, f"{content.name} fits the schema"
    said = "; ".join(_describe(fault) for fault in faults[:_MAX_FAULTS])
    return False, said + ("; and more" if len(faults) > _MAX_FAULTS else "")


def validate(**arguments: Any) -> Iterator[tuple[str, str]]:
    """No schema, several, or one that is none, as (argument, message)."""
    given = [
        name for name in ("schema", "schema_file", "expected") if arguments.get(name) is not None
    ]
    if len(given) != 1:
        yield "", "needs exactly one of schema, schema_file and expected"
    elif given == ["schema"]:
        try:
            _validator(arguments["schema"])
        except (ValueError, ModuleNotFoundError) as error:
            yield "schema", str(error)


def _validator(schema: Any) -> Any:
    try:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry
    except ModuleNotFoundError as error:
        message = f"json_schema needs jsonschema: pip install jsonschema ({error})"
        raise ModuleNotFoundError(message) from None
    if not isinstance(schema, (dict, bool)):
        raise ValueError(f"a schema is a mapping, not {show(schema)}")
    kind: Any = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"not a JSON Schema: {_describe(error)}") from None
    # A registry without a retriever: nothing that a schema refers to is fetched.
    return kind(schema, registry=Registry())


def _describe(fault: Any) -> str:
    message = shorten(str(fault.message), 200)
    place = fault.json_path.removeprefix("$").removeprefix(".")
    return f"{place}: {message}" if place else message


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
