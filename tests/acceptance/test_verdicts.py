"""What a judge returns -> what is recorded: the rows of verdicts.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from pytest_agent_eval.judges.verdict import to_verdict

ROWS = json.loads(Path(__file__).with_name("verdicts.json").read_text("utf-8"))["rows"]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['kind']}-{row['returned']}" for row in ROWS])
def test_row(row: dict[str, Any]) -> None:
    if row["kind"] == "model":
        pytest.skip("answers of a model are for the LLM judges, which come later")
    answer = eval(row["returned"], {"numpy": numpy})
    verdict = to_verdict(
        answer,
        name="judge",
        feedback_type=row.get("feedback_type"),
        score_range=row.get("score_range"),
    )
    if "error" in row:
        assert row["error"] in verdict.error
        assert verdict.value is None
        assert verdict.passed is None
    else:
        assert verdict.error == ""
        assert verdict.value == row["value"]
        assert type(verdict.value) is type(row["value"])
