from __future__ import annotations

import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs import appender as appender_module
from pytest_agent_eval.runs.appender import Appender
from pytest_agent_eval.runs.lines import encode_line
from pytest_agent_eval.runs.reader import (
    read_results,
)
from pytest_agent_eval.runs.writer import RunWriter

HEADER = {"v": 1, "suites": [], "options": {}}


def trial(case: str = "a", **more: Any) -> TrialResult:
    return TrialResult("s", case, "dev", **{"status": "passed", **more})


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / ".agent-eval" / "runs"


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), max_size=9, unique=True)
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    writer = RunWriter.create(tmp_path_factory.mktemp("runs"), HEADER)
    results = [trial(name, reason=name) for name in names]
    for result in results:
        writer.append(result)
    stored = read_results(writer.path)
    assert stored.results == tuple(results)
    assert stored.notes == ()
    writer.close(None)


def test_a_result_is_in_the_file_as_soon_as_it_is_appended(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    writer.append(trial("a"))
    assert len((writer.path / "results.jsonl").read_bytes().splitlines()) == 1


def test_threads_lose_nothing(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: writer.append(trial(f"c{n}", reason="x" * n)), range(400)))
    stored = read_results(writer.path)
    assert sorted(r.case for r in stored.results) == sorted(f"c{n}" for n in range(400))
    assert stored.notes == ()
    writer.close(None)


def append_some(path: str, worker: int) -> None:
    appender = Appender(path)
    for number in range(200):
        appender.append(encode_line(trial(f"{worker}-{number}", reason="y" * 5000)))
    appender.close()


def test_processes_that_share_a_file_lose_nothing(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    path = str(writer.path / "results.jsonl")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(append_some, [path] * 2, range(2)))
    stored = read_results(writer.path)
    assert len(stored.results) == 400
    assert stored.notes == ()


def test_a_full_disk_is_said_and_damages_no_other_line(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RunWriter.create(runs, HEADER)
    writer.append(trial("a"))
    write = os.write
    calls: list[int] = []

    def full(fd: int, data: bytes) -> int:
        calls.append(fd)
        if len(calls) == 1:
            return write(fd, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RunDirectoryError, match="cannot be stored: No space left on device"):
        writer.append(trial("b"))
    monkeypatch.setattr(os, "write", write)
    writer.append(trial("c"))
    assert [result.case for result in read_results(writer.path).results] == ["a", "c"]


def test_lines_reach_the_disk_without_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = threading.Event()
    sync = os.fsync

    def note(fd: int) -> None:
        sync(fd)
        synced.set()

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(appender_module, "SYNC_AFTER", 0.01)
    appender = Appender(str(tmp_path / "file"))
    appender.append(b"one\n")
    assert synced.wait(30)
    synced.clear()
    appender.append(b"two\n")
    assert synced.wait(30)
    appender.close()
    appender.close()
    assert (tmp_path / "file").read_bytes() == b"one\ntwo\n"


def test_lines_are_written_while_a_slow_disk_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial that waits to be stored is a trial in memory, and a case that pytest waits for."""
    syncing, synced = threading.Event(), threading.Event()

    def slow(fd: int) -> None:
        syncing.set()
        assert synced.wait(30)

    appender = Appender(str(tmp_path / "file"))
    appender.append(b"one\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", slow)
        thread = threading.Thread(target=appender._sync)
        thread.start()
        assert syncing.wait(30)
        writing = threading.Thread(target=appender.append, args=(b"two\n",), daemon=True)
        writing.start()
        writing.join(30)
        assert not writing.is_alive()
        assert (tmp_path / "file").read_bytes() == b"one\ntwo\n"
        synced.set()
        thread.join(30)
    appender.close()


def test_a_file_system_that_cannot_sync_still_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int) -> None:
        raise OSError(22, "Invalid argument")

    appender = Appender(str(tmp_path / "file"))
    appender.append(b"one\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        appender._sync()
    appender.append(b"two\n")
    appender.close()
    assert (tmp_path / "file").read_bytes() == b"one\ntwo\n"
