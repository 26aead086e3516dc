"""What the documentation says of a line of results.jsonl is what a line is."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pytest_agent_eval.results import FAILURE_KINDS, TrialResult, Usage, Verdict
from pytest_agent_eval.runs.lines import SCHEMA_VERSION, encode_line
from tests.unit.runs.made import trial
from tests.unit.test_results import results

DOCS = Path(__file__).parents[3] / "docs"
SCHEMA: dict[str, Any] = json.loads((DOCS / "results.schema.json").read_text("utf-8"))
PARTS = SCHEMA["$defs"]


def names(cls: type) -> list[str]:
    return [field.name for field in fields(cls)]


@pytest.mark.parametrize(
    ("part", "cls"), [("trial", TrialResult), ("verdict", Verdict), ("usage", Usage)]
)
def test_the_schema_has_every_field_in_order(part: str, cls: type) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert list(PARTS[part]["properties"]) == names(cls)


def test_the_schema_knows_every_kind() -> None:
    assert PARTS["trial"]["properties"]["kind"]["enum"] == list(FAILURE_KINDS)


@given(results, st.lists(results, max_size=2).map(tuple))
def test_every_line_fits_the_schema(result: TrialResult, earlier: tuple[TrialResult, ...]) -> None:
    Draft202012Validator(SCHEMA).validate(json.loads(encode_line(result, earlier)))


def test_a_line_that_does_not_fit_is_noticed() -> None:
    line = json.loads(encode_line(trial()))
    for key, value in {"status": "green", "trial": 0, "verdicts": [{}], "usage": None}.items():
        assert list(Draft202012Validator(SCHEMA).iter_errors({**line, key: value})), key


def table(heading: str) -> list[str]:
    """The names in the first column of the table that follows a line."""
    page = (DOCS / "run-directory.md").read_text("utf-8")
    _, found, rest = page.partition(f"\n{heading}")
    assert found, heading
    rows = re.search(r"\n\| --- .*\n((?:\|.*\n)+)", rest)
    assert rows is not None
    first = [line.split("|")[1] for line in rows[1].splitlines()]
    return [name for cell in first for name in re.findall(r"`(\w+)`", cell)]


def test_the_page_names_every_field() -> None:
    assert SCHEMA_VERSION == 1
    heading = f"## results.jsonl, version {SCHEMA_VERSION}"
    assert sorted(table(heading)) == sorted(["v", *names(TrialResult), "earlier"])
    assert table("A **verdict**") == names(Verdict)
    assert table("**usage**") == names(Usage)
