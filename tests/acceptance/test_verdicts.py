"""What a judge returns -> what is recorded: the rows of verdicts.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from pytest_agent_eval.judges import make_judges
from pytest_agent_eval.judges.verdict import to_verdict
from pytest_agent_eval.llm import Gateway, ModelProcess
from pytest_agent_eval.results import Verdict
from pytest_agent_eval.suite import Known, load_suite
from tests.provider import provider, text

ROWS = json.loads(Path(__file__).with_name("verdicts.json").read_text("utf-8"))["rows"]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['kind']}-{row['returned']}" for row in ROWS])
def test_row(
    row: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    models: ModelProcess,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    if row["kind"] == "model":
        verdict = _of_model(row, tmp_path, models)
    else:
        verdict = to_verdict(
            eval(row["returned"], {"numpy": numpy}),
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


def _of_model(row: dict[str, Any], directory: Path, models: ModelProcess) -> Verdict:
    """The verdict of a judge whose model answers with this text."""
    keys = ("feedback_type", "score_range")
    judge = {"name": "judge", "llm_rubric": "Is it good?", "model": "openai/some-model"} | {
        key: row[key] for key in keys if row.get(key) is not None
    }
    suite = {"dataset": {"path": "cases"}, "runner": {"type": "cli", "command": "true"}}
    (directory / "cases").mkdir()
    path = directory / "eval.yaml"
    path.write_text(json.dumps({**suite, "judges": [judge]}))
    record = {"case": "a", "conversation": "Good morning.", "workspace": "/w", "case_dir": "/c"}
    with provider(lambda asked: text(row["returned"])) as server:
        gateway = Gateway(directory, mode="live", api_base=server.url, process=models)
        loaded = load_suite(path, rootdir=directory, known=Known())
        (made,) = make_judges(loaded, rootdir=directory, gateway=gateway)
        return made.judge(record)
