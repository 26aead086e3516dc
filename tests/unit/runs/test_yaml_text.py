from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.runs.yaml_text import dump_yaml

# Text without lone surrogates, which the caller has replaced.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.sampled_from(
        ["yes", "No", "null", "~", "1e3", "012", "1:30", "-", "a: b", "a #b", "2024-01-01"]
    ),
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(st.dictionaries(TEXT, VALUES))
def test_every_yaml_reader_gets_back_what_was_written(data: dict[str, Any]) -> None:
    text = dump_yaml(data)
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        assert yaml.load(text, Loader=loader) == data


@pytest.mark.parametrize("value", [1e-05, 1e16, 1.5e300, -2.0, 0.1, math.pi, 5e-324])
def test_numbers_stay_numbers(value: float) -> None:
    loaded = yaml.safe_load(dump_yaml({"x": value}))["x"]
    assert isinstance(loaded, float)
    assert loaded == value


def test_it_reads_well() -> None:
    data = {
        "judges": {"tone of voice": {"mean": 0.5, "note": None}},
        "notes": ["a", "it's: b"],
        "none": {},
    }
    assert dump_yaml(data).decode() == (
        "judges:\n  tone of voice:\n    mean: 0.5\n    note: null\n"
        'notes:\n- a\n- "it\'s: b"\nnone: {}\n'
    )
