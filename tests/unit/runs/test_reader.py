from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.results import Verdict
from pytest_agent_eval.runs.lines import trial_key
from pytest_agent_eval.runs.reader import (
    read_header,
    read_results,
)
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial


def test_a_file_torn_at_any_byte_loses_at_most_the_last_line(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    results = [trial(name, reason="größer", verdicts=(Verdict("j", 3.5),)) for name in "abc"]
    for result in results:
        writer.append(result)
    writer.close(None)
    path = writer.path / "results.jsonl"
    whole = path.read_bytes()
    start_of_last = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start_of_last, len(whole) + 1):
        path.write_bytes(whole[:end])
        stored = read_results(writer.path)
        if end >= len(whole) - 1:
            assert (stored.results, stored.notes) == (tuple(results), ())
        else:
            assert stored.results == tuple(results[:2])
            torn = (
                ()
                if end == start_of_last
                else ("results.jsonl: the last line is torn and was dropped",)
            )
            assert stored.notes == torn


def test_a_line_after_a_torn_one_is_not_lost(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    writer.append(trial("a"))
    writer.close(None)
    with open(writer.path / "results.jsonl", "ab") as stream:
        stream.write(b'{"v":1,"case":"b","su')
    writer.append(trial("c"))
    stored = read_results(writer.path)
    assert [result.case for result in stored.results] == ["a", "c"]
    assert stored.notes == ("results.jsonl, line 2: not JSON; dropped",)


def test_a_newer_version_is_read_with_a_note(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    data = {**trial("a").to_dict(), "v": 2, "colour": "blue"}
    (writer.path / "results.jsonl").write_text(json.dumps(data) + "\n\n")
    stored = read_results(writer.path)
    assert [result.case for result in stored.results] == ["a"]
    assert stored.notes == (
        "results.jsonl: written by a newer version; what it added is not shown",
    )


def test_of_several_attempts_the_last_one_counts(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    first = trial("a", status="failed", started="2026-01-01T00:00:00Z")
    second = trial("a", started="2026-01-01T00:01:00Z")
    for result in (first, trial("b"), second, trial("a", trial=2)):
        writer.append(result)
    stored = read_results(writer.path)
    assert stored.results == (second, trial("b"), trial("a", trial=2))
    assert stored.superseded == (first,)
    assert stored.attempts == {trial_key(first): 2}


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        read_results(tmp_path / "missing")
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        read_header(tmp_path)
    (tmp_path / "results.jsonl").mkdir()
    with pytest.raises(RunDirectoryError, match="Is a directory"):
        read_results(tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"), [("{", "not valid JSON"), ("[]", "not a JSON mapping")]
)
def test_a_header_that_is_none(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(RunDirectoryError, match=reason):
        read_header(tmp_path)
