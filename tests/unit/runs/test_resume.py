"""Going on with a run: nothing that is stored is lost, whatever became of the session before."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.lines import encode_line
from pytest_agent_eval.runs.reader import read_header, read_results
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial


def cases(path: Path) -> list[str]:
    return [result.case for result in read_results(path).results]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "results.jsonl").read_bytes().splitlines()]


def test_a_run_goes_on(runs: Path) -> None:
    first = RunWriter.create(runs, {**HEADER, "options": {"limit": 2}, "git": {"commit": "1"}})
    first.append(trial("a"))
    first.close({"status": {"passed": 1}}, 2, complete=False, suites=[{"file": "x", "name": "x"}])
    other = RunWriter.create(runs, HEADER)
    second = RunWriter.resume(first.path, {**HEADER, "git": {"commit": "2"}})
    assert os.readlink(runs / "latest") == first.run_id != other.run_id
    during = read_header(first.path)
    assert (during["complete"], "ended" in during, "totals" in during) == (False, False, False)
    second.append(trial("b"))
    second.close(
        {"status": {"passed": 2}, "usage": {"cost_usd": 0.5}},
        0,
        suites=[{"file": "y", "name": "y"}],
    )
    assert cases(first.path) == ["a", "b"]
    header = read_header(first.path)
    assert (header["complete"], header["exit_status"]) == (True, 0)
    assert header["totals"] == {"cases": {"passed": 2}, "gates_missed": 0, "cost_usd": 0.5}
    assert header["started"] == during["started"]
    assert header["options"] == {"limit": 2}
    assert header["git"] == {"commit": "1"}
    assert [suite["file"] for suite in header["suites"]] == ["x", "y"]
    begun, gone_on = header["sessions"]
    assert (begun["options"], begun["git"], begun["exit_status"]) == (
        {"limit": 2},
        {"commit": "1"},
        2,
    )
    assert (gone_on["git"], gone_on["exit_status"]) == ({"commit": "2"}, 0)
    third = RunWriter.resume(first.path, HEADER)
    third.close({}, 1)
    assert [s["exit_status"] for s in read_header(first.path)["sessions"]] == [2, 0, 1]


@pytest.mark.parametrize("tail", [b'{"v":1,"su', b"\xff\x00", b'{"v":1}'])
def test_half_a_line_is_cut_off(runs: Path, tail: bytes) -> None:
    writer = RunWriter.create(runs, HEADER)
    writer.append(trial("a"))
    writer.close()
    with open(writer.path / "results.jsonl", "ab") as stream:
        stream.write(tail)
    resumed = RunWriter.resume(writer.path, HEADER)
    resumed.append(trial("b"))
    resumed.close()
    assert [line["case"] for line in lines(writer.path)] == ["a", "b"]
    assert read_results(writer.path).notes == ()


def test_a_whole_line_that_lacks_its_end_is_kept(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    writer.close()
    (writer.path / "results.jsonl").write_bytes(encode_line(trial("a"))[:-1])
    resumed = RunWriter.resume(writer.path, HEADER)
    resumed.append(trial("b"))
    resumed.close()
    assert [line["case"] for line in lines(writer.path)] == ["a", "b"]


@pytest.mark.parametrize("broken", [None, "", "{", "[]"])
def test_a_header_that_was_lost_is_made_anew(runs: Path, broken: str | None) -> None:
    writer = RunWriter.create(runs, HEADER)
    writer.append(trial("a"))
    writer.close()
    (writer.path / "run.json").unlink()
    if broken is not None:
        (writer.path / "run.json").write_text(broken)
    RunWriter.resume(writer.path, HEADER).close({}, 0)
    header = read_header(writer.path)
    assert (header["run_id"], header["complete"]) == (writer.run_id, True)
    assert cases(writer.path) == ["a"]


def test_files_of_killed_workers_are_kept_when_new_ones_have_their_names(runs: Path) -> None:
    first = RunWriter.create(runs, HEADER)
    for name in ("gw0", "gw1"):
        (first.path / f"results-{name}.jsonl").write_bytes(encode_line(trial(f"old-{name}")))
    first.close()
    before = RunWriter.join(first.path, "gw0")  # a worker may be there before the controller
    before.append(trial("early"))
    second = RunWriter.resume(first.path, HEADER)
    assert cases(first.path)[:2] == ["old-gw0", "old-gw1"]
    assert [path.name for path in first.path.glob("results-*")] == ["results-gw0.2.jsonl"]
    after = RunWriter.join(first.path, "gw1")
    after.append(trial("late"))
    before.append(trial("early-2"))
    for writer in (before, after):
        writer.close()
    assert second.merge() == ()
    second.close()
    assert sorted(cases(first.path)) == ["early", "early-2", "late", "old-gw0", "old-gw1"]
    assert list(first.path.glob("results-*")) == []


def test_a_worker_that_outlived_its_session_loses_nothing(runs: Path) -> None:
    first = RunWriter.create(runs, HEADER)
    left = RunWriter.join(first.path, "gw0")
    left.append(trial("a"))
    first.close()
    second = RunWriter.resume(first.path, HEADER)
    left.append(trial("b"))
    assert second.merge() == ("results-gw0.jsonl: a worker still writes it; it was read and left",)
    left.append(trial("c"))
    assert sorted(cases(first.path)) == ["a", "b", "c"]
    left.close()
    assert second.merge() == ()
    second.close()
    assert sorted(cases(first.path)) == ["a", "b", "c"]
    assert len(lines(first.path)) == 3
    left.append(trial("d"))  # its file has gone by now, so it makes one
    assert sorted(cases(first.path)) == ["a", "b", "c", "d"]


def test_two_sessions_cannot_write_one_run(runs: Path) -> None:
    first = RunWriter.create(runs, HEADER)
    who = rf"process {os.getpid()} on .* \(since .*\) is writing into this run"
    with pytest.raises(RunDirectoryError, match=who):
        RunWriter.resume(first.path, HEADER)
    first.append(trial("a"))
    first.close()
    second = RunWriter.resume(first.path, HEADER)
    with pytest.raises(RunDirectoryError, match=who):
        RunWriter.resume(first.path, HEADER)
    with pytest.raises(RunDirectoryError, match=who):
        RunWriter.create(runs, HEADER, name=first.run_id)
    second.append(trial("b"))
    second.close()
    assert cases(first.path) == ["a", "b"]
    RunWriter.resume(first.path, HEADER).close()


def test_what_cannot_be_resumed(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="there is no such run"):
        RunWriter.resume(runs / "x", HEADER)
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="there is no such run"):
        RunWriter.resume(tmp_path / "file", HEADER)
    writer = RunWriter.create(runs, HEADER)
    writer.close()
    (writer.path / "results.jsonl").unlink()
    (writer.path / "results.jsonl").mkdir()
    with pytest.raises(RunDirectoryError, match="Is a directory"):
        RunWriter.resume(writer.path, HEADER)
    (writer.path / "results.jsonl").rmdir()
    RunWriter.resume(writer.path, HEADER).close()


def test_suites_are_known_before_the_end(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    writer.describe([{"file": "a.yaml", "name": "a"}])
    writer.describe([{"file": "a.yaml", "name": "A"}, {"file": "b.yaml", "name": "b"}])
    suites = read_header(writer.path)["suites"]
    assert [(suite["file"], suite["name"]) for suite in suites] == [
        ("a.yaml", "A"),
        ("b.yaml", "b"),
    ]
    writer.close({}, 0)
    assert read_header(writer.path)["suites"] == suites


def test_leftovers_of_a_killed_attempt_do_not_mix_with_the_new_one(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    path = Path(writer.trial_directory("a", "1"))
    (path / "files").mkdir()
    (path / "files" / "stale").touch()
    (path / "events.jsonl").touch()
    outside = runs / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (path / "link").symlink_to(outside)
    (path / "files").chmod(0)
    other = Path(writer.trial_directory("a", "2"))
    (other / "mine").touch()
    assert writer.fresh_trial_directory("a", "1") == str(path)
    assert os.listdir(path) == []
    assert os.listdir(outside) == ["kept"]
    assert os.listdir(other) == ["mine"]
    assert Path(writer.fresh_trial_directory("b", "1")).is_dir()
    assert writer.fresh_trial_directory("b", "1") == writer.trial_directory("b", "1")


@pytest.mark.parametrize("what", ["file", "link"])
def test_something_else_where_a_trial_is_to_be(runs: Path, what: str) -> None:
    writer = RunWriter.create(runs, HEADER)
    outside = runs / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    place = Path(writer.trial_directory("a")) / "1"
    if what == "file":
        place.touch()
    else:
        place.symlink_to(outside)
    assert writer.fresh_trial_directory("a", "1") == str(place)
    assert place.is_dir()
    assert not place.is_symlink()
    assert os.listdir(outside) == ["kept"]


def test_a_name_that_is_too_long_for_a_file_is_cut(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    one, two = (writer.trial_directory("ü" * 200 + end, "1") for end in "ab")
    assert one != two
    assert Path(one).is_dir()
    assert writer.trial_directory("ü" * 200 + "a", "1") == one


ROOT = Path(__file__).parents[3]
SESSION = """
import os, signal, sys, threading
from pathlib import Path
from pytest_agent_eval.runs.stored import StoredRun
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial

path, total, workers, delay = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if delay != "never":
    threading.Timer(float(delay), os.kill, (os.getpid(), signal.SIGKILL)).start()
done = {result.case for result in StoredRun.open(path).results}
writer = RunWriter.resume(path, HEADER)
several = [RunWriter.join(path, f"gw{n}") for n in range(workers)] or [writer]
for number in range(total):
    if f"c{number}" not in done:
        several[number % len(several)].append(trial(f"c{number}", reason="x" * 3000))
        os.write(1, b"%d\\n" % number)
for worker in several[:workers]:
    worker.close()
writer.merge()
writer.close({}, 0)
os._exit(0)
"""


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_trial_is_stored_exactly_once_whenever_the_session_is_killed(
    runs: Path, workers: int, seed: int
) -> None:
    chance = random.Random(seed)
    total = 1000
    writer = RunWriter.create(runs, HEADER, name="run")
    writer.close()
    path = writer.path
    acknowledged: set[int] = set()
    for session in range(12):
        # However fast the machine is, some of these end a session in its middle.
        delay = "never" if session == 11 else str(chance.random() * 0.08)
        command = [sys.executable, "-c", SESSION, str(path), str(total), str(workers), delay]
        ended = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, timeout=60, check=False)
        assert ended.returncode in (0, -signal.SIGKILL)
        acknowledged.update(
            int(line) for line in ended.stdout.splitlines(keepends=True) if line.endswith(b"\n")
        )
        stored = {int(case[1:]) for case in cases(path)}
        assert acknowledged <= stored, "what was stored before the kill is there"
    written = [line["case"] for line in lines(path)]
    assert sorted(written) == sorted(f"c{number}" for number in range(total))
    assert read_header(path)["complete"] is True
