"""The texts of suites.json: what must load, what is no suite, and what must be said at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import SuiteError
from pytest_agent_eval.suite import is_suite, load_suite, missing_models

ROWS = json.loads(Path(__file__).with_name("suites.json").read_text(encoding="utf-8"))
SUITES = [row for row in ROWS["valid"] if not row.get("not_a_suite")]
FOREIGN = [row for row in ROWS["valid"] if row.get("not_a_suite")]


def name_of(row: dict[str, Any]) -> str:
    return str(row["name"])


@pytest.mark.parametrize("row", SUITES, ids=name_of)
def test_valid_texts_load_with_their_warnings(row: dict[str, Any], tmp_path: Path) -> None:
    text = row["yaml"].encode()
    assert is_suite(text).suite
    suite = load_suite(tmp_path / "eval.yaml", text=text)
    expected = row.get("warns", [])
    assert len(suite.warnings) == len(expected)
    for word in expected:
        assert any(word in str(warning) for warning in suite.warnings)
    assert missing_models(suite, {}) == ()


@pytest.mark.parametrize("row", FOREIGN, ids=name_of)
def test_foreign_files_are_no_suites(row: dict[str, Any]) -> None:
    recognition = is_suite(row["yaml"].encode())
    assert not recognition.suite
    assert recognition.reason


@pytest.mark.parametrize("row", ROWS["invalid"], ids=name_of)
def test_all_problems_are_reported_at_once(row: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / "eval.yaml", rootdir=tmp_path, text=row["yaml"].encode())
    found = list(caught.value.problems)
    for wanted in row["problems"]:
        fitting = [
            problem
            for problem in found
            if wanted.get("path", problem.path) == problem.path
            and wanted.get("line", problem.line) == problem.line
            and all(word in problem.message for word in wanted.get("says", []))
        ]
        assert fitting, f"{wanted} not among {[str(problem) for problem in found]}"
    assert len(found) == len(row["problems"]), "nothing is reported twice, or besides"
    assert all(problem.line and problem.file == "eval.yaml" for problem in found)
    assert [problem.line for problem in found] == sorted(problem.line or 0 for problem in found)
