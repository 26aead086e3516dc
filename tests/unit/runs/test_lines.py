from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.results import TrialResult, Usage, Verdict
from pytest_agent_eval.runs.lines import decode_line, encode_line, sanitised
from pytest_agent_eval.runs.yaml_text import dump_yaml


def trial(case: str = "a", **more: Any) -> TrialResult:
    return TrialResult("s", case, "dev", **{"status": "passed", **more})


anything = st.text(st.characters(), max_size=30)


@given(anything, anything, st.text(st.characters(categories=["Cs", "Cc", "Cf"]), max_size=9))
def test_any_text_gives_one_valid_line(one: str, two: str, odd: str) -> None:
    result = trial(one, reason=odd, verdicts=(Verdict("j", True, two + odd),), tags={odd: one})
    line = encode_line(result)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    text = line.decode("utf-8")
    json.loads(text)
    back, earlier, version = decode_line(line)
    assert (earlier, version) == ((), 1)
    assert back.reason == odd.encode("utf-8", "backslashreplace").decode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_proper_text_comes_back_as_it_was(text: str) -> None:
    result = trial(text, reason=text, notes=(text,), tags={text: text}, workspace=text)
    assert decode_line(encode_line(result))[0] == result


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_number_that_is_not_finite_is_stored(value: float) -> None:
    result = trial(
        verdicts=(Verdict("j", value), Verdict("k", value, error="own words")),
        execution=Verdict("execution", value),
        duration_s=value,
        usage=Usage(cost_usd=value, per_model_usage={"m": {"cost_usd": value, "at": Path("x")}}),
    )
    line = encode_line(result)
    json.loads(line, parse_constant=lambda name: pytest.fail(f"stored {name}"))
    back = decode_line(line)[0]
    assert back.usage.cost_usd is None
    assert back.usage.per_model_usage == {"m": {"cost_usd": None, "at": "x"}}
    assert back.verdicts[0].value is None
    assert back.verdicts[0].error == f"the value {value} is not finite"
    assert back.verdicts[1].error == "own words"


def test_sanitised_makes_json_of_anything() -> None:
    odd = {1: (1, 2.5, None, True), "\ud800": {3}, "x": b"y"}
    assert sanitised(odd) == {"1": [1, 2.5, None, True], "\\ud800": [3], "x": "b'y'"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"\0\0\0", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a stored trial"),
        (b"{}", "not a stored trial"),
        (b'{"v": "1"}', "not a stored trial"),
        (b'{"v": 1}', "without all it needs"),
        (
            b'{"v": 1, "suite": "s", "case": "c", "split": "dev", "status": "passed", "usage": 3}',
            "without all it needs",
        ),
    ],
)
def test_what_is_no_stored_trial(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode_line(line)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=9), json_values, max_size=4))
def test_yaml_says_what_was_meant(data: dict[str, Any]) -> None:
    text = dump_yaml(data)
    assert yaml.load(text, yaml.CSafeLoader) == data
    assert dump_yaml(data) == text


def test_yaml_has_neither_anchors_nor_sorted_keys() -> None:
    shared = ["x"]
    assert dump_yaml({"b": shared, "a": shared}) == b"b:\n- x\na:\n- x\n"
