from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.execution.metrics import merge_usage, read_metrics
from pytest_agent_eval.results import Usage


def test_everything_is_read() -> None:
    data = {
        "token_usage": {"input": 10, "output": 20, "cache_read": 3, "cache_create": 4},
        "cost_usd": 0.5,
        "num_turns": 3,
        "model": "m",
        "models_used": ["m", "n"],
        "per_model_usage": {"m": {"input": 1, "output": 2, "cost_usd": 0.1}},
        "per_model_turns": {"m": 2.0},
        "something_else": [1],
    }
    usage, notes = read_metrics(json.dumps(data).encode())
    assert usage == Usage(
        cost_usd=0.5,
        input_tokens=10,
        output_tokens=20,
        cache_read_tokens=3,
        cache_create_tokens=4,
        num_turns=3,
        model="m",
        models_used=("m", "n"),
        per_model_usage={"m": {"input": 1, "output": 2, "cost_usd": 0.1}},
        per_model_turns={"m": 2},
    )
    assert notes == ()


def test_nothing_is_required() -> None:
    assert read_metrics(b"{}") == (Usage(), ())
    assert read_metrics(b'{"cost_usd": null, "token_usage": null}') == (Usage(), ())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "no valid JSON"),
        (b"{", "no valid JSON and was ignored: line 1"),
        (b"[1]", "no JSON object"),
        (b"\xff{}", "not UTF-8"),
        (b"[" * 100_000, "no usable JSON"),
        (b'{"cost_usd": ' + b"9" * 5000 + b"}", "no usable JSON"),
    ],
)
def test_a_file_that_is_no_metrics_is_a_note(data: bytes, expected: str) -> None:
    usage, notes = read_metrics(data)
    assert usage == Usage()
    assert len(notes) == 1
    assert expected in notes[0]


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("cost_usd", "NaN", "cost_usd is NaN"),
        ("cost_usd", "Infinity", "cost_usd is null"),
        ("cost_usd", "-1", "cost_usd is -1"),
        ("cost_usd", "true", "cost_usd is true"),
        ("cost_usd", '"1.2"', 'cost_usd is "1.2"'),
        ("cost_usd", "1" + "0" * 400, "cost_usd is 1000"),
        ("num_turns", "1.5", "num_turns is 1.5"),
        ("num_turns", "[]", "num_turns is []"),
        ("model", "3", "model is 3"),
        ("model", '""', 'model is ""'),
        ("models_used", '"m"', 'models_used is "m"'),
        ("models_used", "[1]", "models_used is [1]"),
        ("per_model_usage", "[]", "per_model_usage is []"),
        ("per_model_usage", '{"m": 1}', 'per_model_usage is {"m": 1}'),
        ("per_model_usage", '{"m": {"input": -1}}', "per_model_usage is"),
        ("per_model_turns", '{"m": "2"}', "per_model_turns is"),
        ("per_model_turns", "2", "per_model_turns is 2"),
        ("token_usage", "7", "token_usage is no mapping"),
        ("token_usage", '{"input": -7}', "token_usage.input is -7"),
        ("token_usage", '{"input": NaN}', "token_usage.input is NaN"),
    ],
)
def test_one_bad_value_does_not_spoil_the_others(key: str, value: str, shown: str) -> None:
    other = "num_turns" if key != "num_turns" else "cost_usd"
    usage, notes = read_metrics(f'{{"{key}": {value}, "{other}": 2}}'.encode())
    assert len(notes) == 1
    assert shown in notes[0]
    assert usage == (Usage(num_turns=2) if other == "num_turns" else Usage(cost_usd=2))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "token_usage",
        "cost_usd",
        "num_turns",
        "model",
        "models_used",
        "per_model_usage",
        "per_model_turns",
    ]
)


@given(st.dictionaries(KEYS, JSON))
def test_no_content_is_a_crash_and_what_is_taken_is_sound(data: dict[str, Any]) -> None:
    usage, _ = read_metrics(json.dumps(data).encode())
    json.dumps(usage.cost_usd, allow_nan=False)
    assert usage.cost_usd is None or usage.cost_usd >= 0
    assert usage.num_turns is None or usage.num_turns >= 0
    json.dumps([dict(usage.per_model_usage), dict(usage.per_model_turns)], allow_nan=False)


@given(st.binary(max_size=200))
def test_no_bytes_are_a_crash(data: bytes) -> None:
    read_metrics(data)


def test_the_first_usage_wins_and_the_second_completes_it() -> None:
    first = Usage(cost_usd=0.0, models_used=("a",))
    second = Usage(cost_usd=9.0, num_turns=2, models_used=("b",), per_model_turns={"b": 2})
    assert merge_usage(first, second) == Usage(
        cost_usd=0.0, num_turns=2, models_used=("a",), per_model_turns={"b": 2}
    )
