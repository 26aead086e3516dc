from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_agent_eval.suite.reference import reference_markdown
from pytest_agent_eval.suite.schema import json_schema

ROOT = Path(__file__).parents[3]
ROWS = json.loads((ROOT / "tests/acceptance/suites.json").read_text(encoding="utf-8"))
VALID = {row["name"]: row["yaml"] for row in ROWS["valid"] if not row.get("not_a_suite")}
INVALID = {row["name"]: row["yaml"] for row in ROWS["invalid"]}
MORE = [
    "dataset: {path: a, leak: off, x-a: 1}\nskill: null\nthresholds: {a: null, x-b: 3}",
    "dataset: {path: a}\nexecution: {allow_exit_codes: any, timeout: null}\nx-y: 1",
    "dataset: {path: a}\npermissions: {deny: [x, {path: a, tools: [Read], reason: r}]}",
    "dataset: {path: a}\nmatrix: {factors: {model: [a, b], n: [1]}}",
    "dataset: {path: a}\nvariants: {a: {models: {skill: x}}, b: null}",
]
WRONG = [
    "dataset: {path: a}\nexecution: {timeout: true}",
    "dataset: {path: a}\nexecution: {timeout: 0}",
    "dataset: {path: a, leak: on}",
    "dataset: {path: a}\nrunner: {command: 3}",
    "dataset: {path: a}\njudges: [{name: a, score_range: [1]}]",
    "dataset: {path: a}\ngeneration: {seeds: [{category: a, count: true}]}",
    "judges: []",
]


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("text", [*VALID.values(), *MORE])
def test_valid_texts_validate(validator: Any, text: str) -> None:
    validator.validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "file", sorted((ROOT / "example_project/evals").glob("*eval.yaml")), ids=str
)
def test_the_example_validates(validator: Any, file: Path) -> None:
    validator.validate(yaml.safe_load(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "text",
    [INVALID[name] for name in ("typo", "several at once", "thresholds", "seeds")] + WRONG,
)
def test_typos_do_not_validate(validator: Any, text: str) -> None:
    assert not validator.is_valid(yaml.safe_load(text))


def test_every_key_is_described(validator: Any) -> None:
    blocks = [validator.schema, *validator.schema["$defs"].values()]
    for block in blocks:
        for key, value in block.get("properties", {}).items():
            assert value.get("description", "").endswith("."), key


def test_the_reference_has_every_key(validator: Any) -> None:
    page = reference_markdown()
    for block in [validator.schema, *validator.schema["$defs"].values()]:
        for key in block.get("properties", {}):
            assert f"| `{key}` |" in page
    assert '| `pass` | string | `"all"` |' in page
    assert "| `parallelism` | integer >= 1 | min(8, 2 x CPUs) |" in page
    assert "| `path` | string | required |" in page
    assert "## `runner`" in page
    assert "## `dataset.split`" in page
    assert page.count("## `") == len({line for line in page.splitlines() if line[:3] == "## "}) - 1
