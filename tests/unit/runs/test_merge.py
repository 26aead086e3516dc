from __future__ import annotations

from pathlib import Path

import pytest

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.lines import encode_line
from pytest_agent_eval.runs.reader import (
    read_results,
    result_files,
)
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial


def test_files_of_workers_become_one(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    workers = [RunWriter.join(writer.path, f"gw{index}") for index in range(12)]
    for number in range(60):
        started = f"2026-01-01T00:00:{number:02}Z"
        workers[number % 12].append(trial(f"c{number}", started=started))
    for worker in workers:
        worker.close()
    assert len(read_results(writer.path).results) == 60
    assert writer.merge() == ()
    assert [path.name for path in result_files(writer.path)] == ["results.jsonl"]
    assert [r.case for r in read_results(writer.path).results] == [f"c{n}" for n in range(60)]
    assert writer.merge() == ()
    writer.append(trial("after"))
    assert len(read_results(writer.path).results) == 61
    writer.close(None)


def test_a_trial_that_two_workers_did_is_there_once_with_its_attempts(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    one, two = (RunWriter.join(writer.path, name) for name in ("gw0", "gw1"))
    first = trial("a", status="failed", started="2026-01-01T00:00:00Z")
    second = trial("a", started="2026-01-01T00:00:09Z")
    two.append(second)
    one.append(first)
    before = read_results(writer.path)
    copies = {path: path.read_bytes() for path in result_files(writer.path)}
    writer.merge()
    after = read_results(writer.path)
    assert after == before
    assert (after.results, after.superseded) == ((second,), (first,))
    assert (writer.path / "results.jsonl").read_bytes().count(b"\n") == 1
    # A kill between writing the merged file and removing the others leaves both.
    for path, content in copies.items():
        if path.name != "results.jsonl":
            path.write_bytes(content)
    assert read_results(writer.path) == before
    writer.merge()
    assert read_results(writer.path) == before


def test_a_torn_worker_file_is_noted_when_merged(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    (writer.path / "results-gw0.jsonl").write_bytes(encode_line(trial("a")) + b'{"v":')
    assert writer.merge() == ("results-gw0.jsonl: the last line is torn and was dropped",)
    assert read_results(writer.path).results == (trial("a"),)


def test_a_worker_name_cannot_leave_the_directory(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    with pytest.raises(RunDirectoryError, match="cannot name"):
        RunWriter.join(writer.path, "../x")
