from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.names import new_run_name
from pytest_agent_eval.runs.reader import (
    latest_run,
    read_header,
)
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial


def test_a_new_run_has_its_files(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    assert (runs.parent / ".gitignore").read_text() == "*\n"
    assert sorted(os.listdir(writer.path)) == [
        "cases",
        "results.jsonl",
        "run.json",
        "session.lock",
    ]
    assert os.readlink(runs / "latest") == writer.run_id
    assert latest_run(runs) == writer.path.resolve()
    header = read_header(writer.path)
    assert header["run_id"] == writer.run_id
    assert "ended" not in header
    assert header["complete"] is False
    writer.close(None)
    assert sorted(os.listdir(writer.path)) == ["cases", "results.jsonl", "run.json"]


def test_latest_points_at_the_newest_and_runs_never_collide(runs: Path) -> None:
    writers = [RunWriter.create(runs, HEADER) for _ in range(30)]
    assert len({writer.run_id for writer in writers}) == 30
    assert os.readlink(runs / "latest") == writers[-1].run_id
    leftovers = [name for name in os.listdir(runs) if name.startswith(".latest")]
    assert leftovers == []


def test_a_directory_of_the_user_gets_no_gitignore_a_new_one_does(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    RunWriter.create(mine, HEADER)
    assert not (mine / ".gitignore").exists()
    RunWriter.create(tmp_path / "fresh", HEADER)
    assert (tmp_path / "fresh" / ".gitignore").read_text() == "*\n"


def test_a_gitignore_that_is_there_is_kept(runs: Path) -> None:
    runs.mkdir(parents=True)
    (runs.parent / ".gitignore").write_text("!keep\n")
    RunWriter.create(runs, HEADER)
    assert (runs.parent / ".gitignore").read_text() == "!keep\n"


def test_without_symlinks_the_newest_name_is_the_latest(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "symlink", refuse)
    writer = RunWriter.create(runs, HEADER)
    assert not (runs / "latest").exists()
    (runs / "20010101T000000Z-0000").mkdir()
    (runs / "notes").mkdir()
    assert latest_run(runs) == writer.path


def test_a_latest_that_is_a_directory_is_left_alone(runs: Path) -> None:
    (runs / "latest").mkdir(parents=True)
    (runs / "latest" / "file").touch()
    RunWriter.create(runs, HEADER)
    assert (runs / "latest" / "file").exists()
    assert [name for name in os.listdir(runs) if name.startswith(".latest")] == []


def test_no_run_is_no_latest(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(RunDirectoryError, match="no run is stored"):
            latest_run(directory)


def test_a_place_that_cannot_be_written_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="results cannot be stored here: Not a directory"):
        RunWriter.create(tmp_path / "file" / "runs", HEADER)


def test_trial_directories(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    path = writer.trial_directory("naïve: case?", "1")
    assert os.path.isdir(path)
    assert os.path.isabs(path)
    assert writer.relative(path) == "cases/naïve: case?/1"
    assert writer.trial_directory("naïve: case?", "1") == path
    assert os.path.isdir(writer.trial_directory("suite", "a", "2"))


@pytest.mark.parametrize("part", ["", ".", "..", "a/b", "../x", "a\0b", "\ud800"])
def test_a_part_that_is_no_file_name_is_refused(runs: Path, part: str) -> None:
    writer = RunWriter.create(runs, HEADER)
    with pytest.raises(RunDirectoryError, match="cannot"):
        writer.trial_directory(part, "1")


def test_a_file_where_a_directory_should_be(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    (writer.path / "cases" / "a").touch()
    with pytest.raises(RunDirectoryError, match="Not a directory"):
        writer.trial_directory("a", "1")
    with pytest.raises(RunDirectoryError, match="Not a directory"):
        writer.trial_directory("a", "b", "1")


def test_two_runs_of_one_moment(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = 1_767_225_600_500_000_000
    moments = iter([first, first, first + 1_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    one, two = RunWriter.create(runs, HEADER), RunWriter.create(runs, HEADER)
    assert (one.run_id, two.run_id) == ("20260101T000000Z-8000", "20260101T000000Z-8041")


def test_a_run_that_is_there_is_not_begun_anew(runs: Path) -> None:
    RunWriter.create(runs, HEADER, name="run").close({}, 0)
    with pytest.raises(RunDirectoryError, match="there is a run named run"):
        RunWriter.create(runs, HEADER, name="run")
    assert read_header(runs / "run")["complete"] is True
    RunWriter.resume(runs / "run", HEADER).close()


def test_names_sort_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    start = 1_767_225_599_999_900_000
    moments = [start + step * 20_000 for step in range(300)]
    told = iter(moments)
    monkeypatch.setattr(time, "time_ns", lambda: next(told))
    names = [new_run_name() for _ in moments]
    assert names == sorted(set(names))
    assert (names[0][:16], names[-1][:16]) == ("20251231T235959Z", "20260101T000000Z")


def test_when_every_name_is_taken(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_767_225_600_500_000_000)
    RunWriter.create(runs, HEADER)
    with pytest.raises(RunDirectoryError, match=r"every name for a new run is taken"):
        RunWriter.create(runs, HEADER)


def test_merging_into_a_directory_that_has_gone(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    os.rename(writer.path, runs / "moved")
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        writer.merge()


def test_merging_onto_something_else(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    (writer.path / "results-gw0.jsonl").write_bytes(b"")
    (writer.path / "results.jsonl").unlink()
    with pytest.MonkeyPatch.context() as patch:

        def refuse(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(os, "replace", refuse)
        with pytest.raises(RunDirectoryError, match="No space left"):
            writer.merge()
    assert sorted(os.listdir(writer.path)) == [
        "cases",
        "results-gw0.jsonl",
        "run.json",
        "session.lock",
    ]


def test_closing_writes_the_summary_and_the_end(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    writer.append(trial())
    summary = {"b": "größer\nzwei", "a": [True, None, 1.5], "odd": "\ud800", "nan": float("nan")}
    writer.close(summary, 1, complete=False)
    text = (writer.path / "summary.yaml").read_text("utf-8")
    assert "größer" in text
    assert yaml.safe_load(text) == {
        "b": "größer\nzwei",
        "a": [True, None, 1.5],
        "odd": "\\ud800",
        "nan": None,
    }
    header = read_header(writer.path)
    assert (header["exit_status"], header["complete"]) == (1, False)
    assert header["ended"] >= header["started"]
    assert [name for name in os.listdir(writer.path) if name.endswith(".tmp")] == []


def test_a_worker_closes_without_touching_the_header(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    RunWriter.join(writer.path, "gw0").close()
    assert "ended" not in read_header(writer.path)


def test_a_directory_that_has_gone_is_said_when_closing(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    os.rename(writer.path, runs / "moved")
    with pytest.raises(RunDirectoryError, match="No such file"):
        writer.close({}, 0)
