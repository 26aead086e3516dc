from __future__ import annotations

import builtins
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.judges.builtin.quality import (
    contains,
    json_schema,
    matches_expected,
    regex,
)
from pytest_agent_eval.judges.content import content_of, place_in
from pytest_agent_eval.judges.difference import Rules, differences, show

RecordFactory = Callable[..., dict[str, Any]]


def faults(module: ModuleType, **arguments: Any) -> list[tuple[str, str]]:
    return list(module.validate(**arguments))


# -- matches_expected ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "content", "arguments", "said"),
    [
        ("refund", "refund", {}, ""),
        ("refund", "refund\n", {}, ""),
        ("refund\n", "refund", {}, ""),
        ("a\nb", "a\r\nb\r\n", {}, ""),
        ("refund", "Refund", {}, "expected 'refund', got 'Refund'"),
        ("refund", " refund", {}, "got ' refund'"),
        ("Re  fund", "re fund ", {"normalize": True}, ""),
        ("ﬁne", "FINE", {"normalize": True}, ""),
        ("refund", "refunds", {"normalize": True}, "expected"),
        ("0", "0", {}, ""),
        ("", "", {}, ""),
        ("", "0", {}, "expected ''"),
        (0, "0", {}, ""),
        (0, "null", {}, "expected 0, got null"),
        (0, '""', {}, "expected 0, got ''"),
        (0, "", {}, "no JSON"),
        (0, "NaN", {}, "expected 0, got nan"),
        (0, "false", {}, "expected 0, got false"),
        (1, "true", {}, "expected 1, got true"),
        (True, "1", {}, "expected true, got 1"),
        (None, "null", {}, ""),
        (None, "0", {}, "expected null, got 0"),
        (None, "{}", {}, "expected null, got {}"),
        (0.3, "0.30000000000000004", {}, ""),
        (0.3, "0.31", {}, "expected 0.3, got 0.31"),
        (0.3, "0.31", {"tolerance": 0.011}, ""),
        (100, "101", {"tolerance": 1}, ""),
        (100, "102", {"tolerance": 1}, "expected 100"),
        (10**18, str(10**18 + 1), {}, "expected"),
        (1.0, str(10**400), {}, "expected 1.0"),
        ({"a": 1}, '{"a": 1, "b": 2}', {}, ""),
        ({"a": 1}, '{"b": 1}', {}, "a: expected 1, but the key is missing"),
        ({"a": None}, '{"b": 1}', {}, "a: expected null, but the key is missing"),
        ({"a": None}, '{"a": null}', {}, ""),
        ({"a": {"b": "x"}}, '{"a": {"b": "y"}}', {}, "a.b: expected 'x', got 'y'"),
        ({"a": {"b": "X"}}, '{"a": {"b": "x "}}', {"normalize": True}, ""),
        ({"a": {}}, '{"a": []}', {}, "a: expected a mapping, got []"),
        ({"a": [1, {"b": 2}]}, '{"a": [1, {"b": 3}]}', {}, "a[1].b: expected 2, got 3"),
        ([1, 2], "[1]", {}, "expected 2 items, got 1"),
        ([1], '{"0": 1}', {}, "expected a list, got {0: 1}"),
        ({1: "x"}, '{"1": "x"}', {}, ""),
        ({"a": 1}, '```json\n{"a": 1}\n```\n', {}, ""),
        ({"a": 1}, 'Here: {"a": 1}', {}, "final message is no JSON"),
        ({"a": 1}, "{'a': 1}", {}, "no JSON"),
        ({"a": 1}, "dict(a=1)", {}, "no JSON"),
        ({"a": 1}, "[" * 100_000, {}, "no JSON"),
        ({"a": 1, "b": 2}, '{"a": 1, "b": 9}', {"field": "a"}, ""),
        ({"a": 1, "b": 2}, '{"a": 1, "b": 9}', {"field": ["a", "b"]}, "b: expected 2, got 9"),
        ({"a": {"b": 1}}, '{"a": {"b": 1}}', {"field": "a.b"}, ""),
        ({"a": {"b": 1}}, '{"a": 3}', {"field": "a.b"}, "a.b: expected 1, but the key is missing"),
        ("x", '{"answer": "x"}', {"field": "answer"}, ""),
        ("x", '["x"]', {"field": "answer"}, "answer: expected 'x', but the key is missing"),
    ],
)
def test_matches_expected(
    record: RecordFactory, expected: Any, content: str, arguments: dict[str, Any], said: str
) -> None:
    outputs = record(annotations={"expected_output": expected}, main_content=content)
    verdict = matches_expected.judge(outputs, **arguments)
    assert verdict.value is (not said), verdict.rationale
    assert said in verdict.rationale


def test_the_rationale_names_the_place(record: RecordFactory) -> None:
    outputs = record(
        annotations={"expected_output": {"decision": "refund"}},
        main_content='{"decision": "replace"}',
    )
    rationale = matches_expected.judge(outputs).rationale
    assert rationale == "decision: expected 'refund', got 'replace'"


@pytest.mark.parametrize("name", ["output/a.yaml", "a.yaml"])
@pytest.mark.parametrize("argument", ["file", "path"])
def test_another_file(record: RecordFactory, name: str, argument: str) -> None:
    outputs = record(annotations={"expected_output": {"a": 1}}, files={"output/a.yaml": "a: 1\n"})
    arguments: dict[str, Any] = {argument: name}
    assert matches_expected.judge(outputs, **arguments).value is True


def test_yaml_that_is_none(record: RecordFactory) -> None:
    outputs = record(annotations={"expected_output": {"a": 1}}, files={"a.yaml": "a: [\n"})
    verdict = matches_expected.judge(outputs, file="a.yaml")
    assert verdict.value is False
    assert "a.yaml is no YAML" in verdict.rationale


@pytest.mark.parametrize(
    ("files", "file", "said"),
    [
        ({"output/answer.json": "1"}, "output/anwser.json", "the nearest is output/answer.json"),
        ({}, "a.json", "a.json was not produced; expected 1"),
        ({"x/a": "1", "y/a": "1"}, "a", "ambiguous: x/a, y/a"),
        ({"a": {"_binary": True, "path": "a", "name": "a", "size": 2048}}, "a", "2,048 bytes"),
        ({"a": {"_binary": True}}, "a", "a is binary"),
    ],
)
def test_a_file_that_is_not_there(
    record: RecordFactory, files: dict[str, Any], file: str, said: str
) -> None:
    outputs = record(annotations={"expected_output": 1}, files=files)
    verdict = matches_expected.judge(outputs, file=file)
    assert verdict.value is False
    assert said in verdict.rationale


def test_nothing_produced(record: RecordFactory) -> None:
    outputs = record(annotations={"expected_output": 1}, main_content=None)
    assert "produced no output" in matches_expected.judge(outputs).rationale


def test_no_expectation_is_an_error_and_no_failure(record: RecordFactory) -> None:
    with pytest.raises(ValueError, match="annotations has no expected_output; there is other"):
        matches_expected.judge(record(annotations={"other": 1}, main_content="x"))


def test_another_expectation(record: RecordFactory) -> None:
    outputs = record(annotations={"gold": {"total": 3}}, main_content="3")
    assert matches_expected.judge(outputs, expected="annotations.gold.total").value is True


def test_a_large_output_gives_a_short_rationale(record: RecordFactory) -> None:
    outputs = record(
        annotations={"expected_output": {f"k{n}": "x" * 5000 for n in range(300)}},
        main_content=json.dumps({f"k{n}": "y" * 5000 for n in range(300)}),
    )
    verdict = matches_expected.judge(outputs)
    assert verdict.value is False
    assert len(verdict.rationale) < 1500
    assert "more than 50 differences in all" in verdict.rationale
    assert len(verdict.detail) < 20_000
    assert verdict.detail.count("\n") == 49


def test_some_differences_are_counted(record: RecordFactory) -> None:
    outputs = record(
        annotations={"expected_output": list(range(8))}, main_content="[9,9,9,9,9,9,9,9]"
    )
    assert matches_expected.judge(outputs).rationale.endswith("; 8 differences in all")


def test_matches_expected_arguments() -> None:
    assert faults(matches_expected, file="a") == []
    assert faults(matches_expected, file="a", path="b")
    assert faults(matches_expected, tolerance=-1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(JSON)
def test_everything_equals_itself(value: Any) -> None:
    assert list(differences(value, json.loads(json.dumps(value)))) == []


@given(JSON, JSON)
def test_a_difference_is_found_from_either_side_of_a_scalar(one: Any, other: Any) -> None:
    if not isinstance(one, (dict, list)) and not isinstance(other, (dict, list)):
        assert bool(list(differences(one, other))) == bool(list(differences(other, one)))


def test_nan_equals_nothing() -> None:
    assert list(differences(math.nan, math.nan, Rules(tolerance=10)))


def test_dates_of_yaml_equal_their_text() -> None:
    import datetime

    assert not list(differences(datetime.date(2024, 5, 1), "2024-05-01"))
    assert list(differences(datetime.date(2024, 5, 1), "2024-05-02"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": {"b": 1}, "c": [1], "d": {}, "e": []}, "{a: {...}, c: [...], d: {}, e: []}"),
        ({n: n for n in range(9)}, "{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, ...}"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, 6, 7, ...]"),
        (True, "true"),
        (b"x", "b'x'"),
    ],
)
def test_show(value: Any, shown: str) -> None:
    assert show(value) == shown


def test_show_is_short_for_everything_large() -> None:
    assert show("x" * 100_000) == "'" + "x" * 79 + "... (100,000 characters)"
    assert len(show(["x" * 70] * 8)) == 83
    if hasattr(sys, "get_int_max_str_digits"):
        assert "bits" in show(10**5000)


# -- contains -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"text": "order HL-1"}, ""),
        ({"text": ["order", "HL-1"]}, ""),
        ({"text": "Order"}, "does not contain 'Order'"),
        ({"text": "ORDER", "ignore_case": True}, ""),
        ({"text": ["order", "refund"]}, "does not contain 'refund'"),
        ({"any_of": ["refund", "order"]}, ""),
        ({"any_of": ["refund", "cash"]}, "contains none of 'refund', 'cash'"),
        ({"none_of": "refund"}, ""),
        ({"none_of": ["order"]}, "contains 'order'"),
        ({"expected": "annotations.mentions"}, ""),
        ({"expected": "annotations.more"}, "does not contain 'cash'"),
        ({"text": "order", "file": "nope"}, "nope was not produced"),
        ({"text": [f"t{n}" for n in range(10)]}, "and 2 more"),
    ],
)
def test_contains(record: RecordFactory, arguments: dict[str, Any], said: str) -> None:
    outputs = record(
        main_content="your order HL-1",
        annotations={"mentions": ["order", "HL-1"], "more": "cash"},
    )
    value, rationale = contains.judge(outputs, **arguments)
    assert value is (not said), rationale
    assert said in rationale


def test_contains_arguments(record: RecordFactory) -> None:
    assert faults(contains)
    assert faults(contains, text="x") == []
    with pytest.raises(ValueError, match=r"text\[0\] must be a text, not 3"):
        contains.judge(record(), text=[3])  # type: ignore[list-item]


# -- regex --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": r"HL-\d{5}"}, ""),
        ({"pattern": [r"HL-\d{5}", "^Dear"]}, ""),
        ({"pattern": r"HL-\d{6}"}, "has no match for"),
        ({"pattern": "dear"}, "no match"),
        ({"pattern": "dear", "ignore_case": True}, ""),
        ({"pattern": "^order"}, "no match"),
        ({"pattern": "^order", "multiline": True}, ""),
        ({"pattern": "Ruth.*order"}, "no match"),
        ({"pattern": "Ruth.*order", "dotall": True}, ""),
        ({"pattern": r"(?s)Dear .*\d", "full": True}, ""),
        ({"pattern": "Dear", "full": True}, "does not match 'Dear'; it is 'Dear Ruth"),
        ({"none_of": "refund"}, ""),
        ({"none_of": [r"HL-\d+"]}, "final message:2 matches 'HL-"),
        ({"pattern": "x", "file": "nope"}, "not produced"),
    ],
)
def test_regex(record: RecordFactory, arguments: dict[str, Any], said: str) -> None:
    value, rationale = regex.judge(record(main_content="Dear Ruth,\norder HL-12345\n"), **arguments)
    assert value is (not said), rationale
    assert said in rationale


def test_regex_arguments() -> None:
    assert faults(regex)
    assert faults(regex, pattern="a", none_of=["b"]) == []
    ((name, message),) = faults(regex, pattern=["a", "("])
    assert name == "pattern"
    assert "'(' is no regular expression" in message


# -- json_schema --------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "required": ["total"],
    "properties": {
        "total": {"type": "number", "minimum": 0},
        "tags": {"items": {"type": "string"}},
    },
}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"total": 3}', ""),
        ('{"total": "3"}', "total: '3' is not of type 'number'"),
        ("{}", "'total' is a required property"),
        ('{"total": -1}', "less than the minimum"),
        ('{"total": 1, "tags": ["a", 2]}', "tags[1]: 2 is not of type 'string'"),
        ('{"total": NaN}', "NaN is not JSON"),
        ("total: 3", "final message is no JSON"),
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"total": 1, "tags": [1, 2, 3, 4, 5, 6, 7]}', "; and more"),
    ],
)
def test_json_schema(record: RecordFactory, content: str, said: str) -> None:
    value, rationale = json_schema.judge(record(main_content=content), schema=SCHEMA)
    assert value is (not said), rationale
    assert said in rationale


def test_schema_of_a_file_and_of_the_case(record: RecordFactory, tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    (tmp_path / "case/schema.json").write_text(json.dumps(SCHEMA), "utf-8")
    outputs = record(
        main_content='{"total": 3}', case_dir=str(tmp_path / "case"), annotations={"form": SCHEMA}
    )
    assert json_schema.judge(outputs, schema_file="schema.json")[0]
    assert json_schema.judge(outputs, expected="annotations.form")[0]
    assert not json_schema.judge(outputs, schema=True, file="nope")[0]


def test_schema_file_stays_below_the_case(record: RecordFactory, tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    (tmp_path / "outside.json").write_text("true", "utf-8")
    (tmp_path / "case/link.json").symlink_to(tmp_path / "outside.json")
    outputs = record(main_content="1", case_dir=str(tmp_path / "case"))
    for name in ("../outside.json", str(tmp_path / "outside.json"), "link.json"):
        with pytest.raises(ValueError, match="leads out"):
            json_schema.judge(outputs, schema_file=name)


def test_nothing_is_fetched(record: RecordFactory) -> None:
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}
    with pytest.raises(Exception, match="Unresolvable"):
        json_schema.judge(record(main_content="1"), schema=schema)


def test_json_schema_arguments() -> None:
    assert faults(json_schema)
    assert faults(json_schema, schema={}, expected="annotations.x")
    assert faults(json_schema, schema_file="x") == []
    assert faults(json_schema, schema=SCHEMA) == []
    ((name, message),) = faults(json_schema, schema={"type": "objekt"})
    assert name == "schema"
    assert "not a JSON Schema: type" in message
    with pytest.raises(ValueError, match="a schema is a mapping, not 3"):
        json_schema._validator(3)


def test_without_jsonschema(record: RecordFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("jsonschema"):
            raise ModuleNotFoundError("No module named 'jsonschema'", name="jsonschema")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match="pip install jsonschema"):
        json_schema.judge(record(main_content="1"), schema={})


# -- what they share ----------------------------------------------------------------------------


def test_content_prefers_the_exact_path(record: RecordFactory) -> None:
    outputs = record(files={"a": "1", "x/a": "2"})
    assert content_of(outputs, "a").text == "1"
    assert content_of(record(main_content="m", main_file="output/m.md")).name == "output/m.md"


@pytest.mark.parametrize("place", ["annotations.a.b", "annotations.x", "nothing"])
def test_place_that_is_not_there(record: RecordFactory, place: str) -> None:
    with pytest.raises(ValueError, match="has no"):
        place_in(record(annotations={"a": 1}), place)
