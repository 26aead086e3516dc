from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.results import Usage
from pytest_agent_eval.runs.finding import find_run, run_names
from pytest_agent_eval.runs.lines import encode_line
from pytest_agent_eval.runs.reader import read_results
from pytest_agent_eval.runs.stored import StoredRun
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000+00:00"


def test_a_killed_session_is_read_with_all_its_files(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    (writer.path / "results.jsonl").write_bytes(encode_line(trial("a")) + b'{"v":1,"su')
    (writer.path / "results-gw0.jsonl").write_bytes(
        encode_line(trial("b", variant="v", trial=2, status="failed"))
    )
    run = StoredRun.open(writer.path)
    found = run.find("s", "b", "v", 2)
    assert found is not None
    assert (found.result.status, found.earlier) == ("failed", ())
    assert run.find("s", "b") is None
    assert [result.case for result in run.results] == ["a", "b"]
    assert run.notes == ("results.jsonl: the last line is torn and was dropped",)
    assert not run.complete
    assert f"process {os.getpid()} on " in run.writer
    writer.close()
    assert StoredRun.open(writer.path).writer == ""
    assert StoredRun.open(writer.path).complete


def test_a_run_is_read_while_another_process_merges_it(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    rounds = 60

    def write() -> None:
        for number in range(rounds):
            worker = RunWriter.join(writer.path, "gw0")
            worker.append(trial(f"c{number}"))
            worker.close()
            writer.merge()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        last = 0
        while not writing.done():
            run = StoredRun.open(writer.path)
            assert len(run.results) >= last
            assert run.notes == ()
            last = len(run.results)
        writing.result()
    assert len(StoredRun.open(writer.path).results) == rounds
    writer.close()


def test_a_run_without_a_header_is_read(runs: Path) -> None:
    (runs / "x").mkdir(parents=True)
    (runs / "x" / "results.jsonl").write_bytes(encode_line(trial("a")))
    run = StoredRun.open(runs / "x")
    assert (run.header, len(run.results)) == ({}, 1)
    assert "run.json" in run.notes[0]
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        StoredRun.open(runs / "y")


@pytest.mark.parametrize("files", ["one", "merged", "left after a merge", "several"])
def test_what_was_judged_again_is_no_attempt_and_costs_nothing_again(
    runs: Path, files: str
) -> None:
    writer = RunWriter.create(runs, HEADER)
    first = trial("a", started=at(1), status="error", usage=Usage(cost_usd=1.0))
    second = trial("a", started=at(2), status="failed", usage=Usage(cost_usd=10.0))
    again = trial("a", started=at(2), rescored=True, usage=Usage(cost_usd=10.0))
    third = trial("a", started=at(3), usage=Usage(cost_usd=100.0))
    if files == "one":
        for result in (first, second, again, third):
            writer.append(result)
    else:
        gw3, gw0 = (RunWriter.join(writer.path, name) for name in ("gw3", "gw0"))
        gw3.append(first)
        gw3.append(second)
        gw0.append(again)
        gw0.append(third)
        gw3.close()
        gw0.close()
        left = {path: path.read_bytes() for path in writer.path.glob("results-*")}
        if files != "several":
            writer.merge()
        if files == "left after a merge":
            for path, content in left.items():
                path.write_bytes(content)
    stored = StoredRun.open(writer.path).find("s", "a")
    assert stored is not None
    assert stored.result == third
    assert stored.earlier == (first, again)
    assert sum(attempt.usage.cost_usd or 0 for attempt in stored.attempts) == 111
    both = read_results(writer.path)
    assert (both.results, both.superseded) == ((third,), (first, again))
    assert list(both.attempts.values()) == [3]
    writer.close()


def test_a_rescored_run_points_at_the_records_of_another(runs: Path) -> None:
    old = RunWriter.create(runs, HEADER, name="20260101T000000Z-0001")
    record = old.trial_directory("x", "1")
    result = trial("x", record=old.relative(record))
    old.append(result)
    old.close()
    new = RunWriter.create(runs, {**HEADER, "rescored_from": old.run_id})
    source = StoredRun.open(old.path)
    pointing = trial("x", record=source.reference(result, new.path), rescored=True)
    assert pointing.record == "../20260101T000000Z-0001/cases/x/1"
    new.append(pointing)
    new.close()
    run = StoredRun.open(new.path)
    assert run.results == (pointing,)
    assert run.record_directory(pointing) == Path(record)
    shutil.rmtree(record)
    with pytest.raises(RunDirectoryError, match=r"x: its record is no longer there: .*cases/x/1"):
        run.record_directory(pointing)
    shutil.rmtree(old.path)
    with pytest.raises(
        RunDirectoryError,
        match="x: its record was in the run 20260101T000000Z-0001, which is no longer there",
    ):
        run.record_directory(pointing)


@pytest.mark.parametrize("record", ["/etc", "../../..", "../../outside"])
def test_a_record_outside_the_runs_is_refused(runs: Path, record: str) -> None:
    writer = RunWriter.create(runs, HEADER)
    (runs.parent / "outside").mkdir()
    with pytest.raises(RunDirectoryError, match="outside the stored runs"):
        StoredRun.open(writer.path).record_directory(trial("a", record=record))


def test_a_trial_that_was_not_carried_out_has_no_record(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    with pytest.raises(RunDirectoryError, match=r"a\[v\]: nothing was recorded"):
        StoredRun.open(writer.path).record_directory(trial("a", variant="v"))


def test_a_run_elsewhere_cannot_be_pointed_at(runs: Path, tmp_path: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    result = trial("a", record=writer.relative(writer.trial_directory("a", "1")))
    with pytest.raises(RunDirectoryError, match="has to be beside it"):
        StoredRun.open(writer.path).reference(result, tmp_path / "other" / "run")


def make(runs: Path, *names: str) -> None:
    for name in names:
        RunWriter.create(runs, HEADER, name=name).close()


def test_finding_a_run(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = "20260101T000000Z-aaaa", "20260102T000000Z-bbbb"
    make(runs, two, one)
    assert run_names(runs) == [two, one]
    assert find_run(runs).name == one, "latest is what was written last"
    assert find_run(runs, "latest").name == one
    assert find_run(runs, two) == runs / two
    assert find_run(runs, "20260102") == runs / two
    assert find_run(runs, str(runs / one)) == runs / one
    monkeypatch.chdir(runs)
    assert find_run(Path("elsewhere"), f"./{one}") == runs / one
    assert find_run(Path("elsewhere"), one) == runs / one
    (runs / "latest").unlink()
    assert find_run(runs).name == two
    (runs / "latest").symlink_to("gone")
    assert find_run(runs).name == two


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2026010", r"2026010 is the beginning of 4 runs: 20260104T000000Z-dddd, .* and 1 more"),
        ("20260101T000000Z-aaab", "did you mean 20260101T000000Z-aaaa"),
        ("nothing", "the newest there are 20260104T000000Z-dddd, 20260103"),
        ("./nothing", "nothing: there is no such run"),
        ("/etc", "/etc: not a run: it holds neither run.json nor results.jsonl"),
    ],
)
def test_a_run_that_is_not_there(runs: Path, text: str, message: str) -> None:
    make(runs, *(f"2026010{n}T000000Z-{4 * letter}" for n, letter in enumerate("abcd", 1)))
    with pytest.raises(RunDirectoryError, match=message):
        find_run(runs, text)


def test_no_run_at_all(runs: Path) -> None:
    for text in ("", "latest"):
        with pytest.raises(RunDirectoryError, match="no run is stored in"):
            find_run(runs, text)
    with pytest.raises(
        RunDirectoryError, match=r"no run named x in .*; no run is stored there yet"
    ):
        find_run(runs, "x")
    runs.mkdir(parents=True)
    (runs / "notes").mkdir()
    assert run_names(runs) == []
