from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command, close, store, trial


def test_no_run_yet(runs: Path, command: Command) -> None:
    status, out, err = command("runs")
    assert (status, out) == (1, "")
    assert err == (
        f"agent-eval runs: no run is stored in {runs}; pytest makes one when it runs a suite\n"
    )
    assert command("runs", "--json")[:2] == (1, "[]\n")
    assert not runs.exists(), "looking makes nothing"


def test_runs_are_listed_newest_first(
    runs: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = trial("a"), trial("b", value=False)
    close(store(runs, good, name="20260101T000000Z-0001"), good)
    close(store(runs, good, bad, name="20260102T000000Z-0002"), good, bad, status=1)
    killed = store(runs, bad, name="20260103T000000Z-0003")
    running = store(runs, name="20260104T000000Z-0004")
    (killed.path / "session.lock").unlink()  # as the end of its process would
    killed._lock = None
    monkeypatch.setenv("COLUMNS", "120")
    status, out, _ = command("runs")
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["20260104T000000Z-0004", "running", "no", "case"],
        ["20260103T000000Z-0003", "interrupted", "$0.25", "1", "failed"],
        [
            "20260102T000000Z-0002",
            "complete",
            "exit",
            "1",
            "$0.50",
            "1",
            "failed,",
            "1",
            "passed,",
            "1",
            "gate",
            "missed",
            "greetings",
        ],
        [
            "20260101T000000Z-0001",
            "complete",
            "exit",
            "0",
            "$0.25",
            "1",
            "passed,",
            "1",
            "gate",
            "missed",
            "greetings",
        ],
    ]
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, command("runs")[1].splitlines())) <= 60
    rows = json.loads(command("runs", "--json")[1])
    assert [(row["name"][-4:], row["state"], row["exit_status"]) for row in rows] == [
        ("0004", "running", None),
        ("0003", "interrupted", None),
        ("0002", "complete", 1),
        ("0001", "complete", 0),
    ]
    assert rows[2]["cases"] == {"passed": 1, "failed": 1}
    assert rows[2]["suites"] == ["greetings"]
    running.close()


def test_a_closed_run_is_not_read_beyond_its_header(runs: Path, command: Command) -> None:
    writer = store(runs, trial("a"))
    close(writer, trial("a"))
    for name in ("results.jsonl", "summary.yaml"):
        (writer.path / name).unlink()
    shutil.rmtree(writer.path / "cases")
    assert "1 passed" in command("runs")[1]


def test_what_is_torn_is_said(runs: Path, command: Command) -> None:
    writer = store(runs, trial("a"))
    with open(writer.path / "results.jsonl", "ab") as stream:
        stream.write(b'{"v":1,')
    (writer.path / "run.json").write_text("{")
    _, out, _ = command("runs")
    assert "1 passed" in out
    assert "run.json: not valid JSON" in out
    assert "results.jsonl: the last line is torn and was dropped" in out


def test_a_name_cannot_repaint_the_terminal(runs: Path, command: Command) -> None:
    writer = store(runs, trial("a"), suites=[{"name": "\x1b[2Jx\nfake  complete", "file": "f"}])
    writer.close({"status": {"passed": 1}}, 0)
    _, out, _ = command("runs")
    assert len(out.splitlines()) == 1
    assert "\x1b" not in out


def test_runs_of_a_directory_above_are_found_and_another_can_be_named(
    runs: Path, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(runs, name="here").close()
    store(tmp_path / "other", name="there").close()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert command("runs")[1].startswith("here ")
    assert command("runs", "--runs", str(tmp_path / "other"))[1].startswith("there ")


def test_a_run_that_was_scored_again_says_so(runs: Path, command: Command) -> None:
    store(runs, trial("a"), name="old").close()
    store(runs, trial("a", rescored=True), name="new", rescored_from="old").close()
    assert "(scored again: old)" in command("runs")[1]


def test_colour_is_for_terminals_that_want_it(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pty
    import subprocess
    import sys

    close(store(runs, trial("a")), trial("a"))

    def printed(**environment: str) -> bytes:
        leader, follower = pty.openpty()
        environ = {**os.environ, "TERM": "xterm", **environment}
        command = [sys.executable, "-m", "pytest_agent_eval", "runs"]
        done = subprocess.run(command, stdout=follower, env=environ, timeout=60, check=True)
        assert done.returncode == 0
        os.close(follower)
        said = os.read(leader, 65536)
        os.close(leader)
        return said

    assert b"\x1b[32m" in printed()
    assert b"\x1b" not in printed(NO_COLOR="1")
    assert b"\x1b" not in printed(TERM="dumb")


def test_a_reader_that_has_seen_enough_is_no_error(runs: Path) -> None:
    import subprocess
    import sys

    for number in range(3):
        store(runs, name=f"run{number}").close()
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "pytest_agent_eval", "runs"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("complete", "status", "state"),
    [
        (True, 0, "complete"),
        (True, 1, "complete"),
        (False, 0, "incomplete"),
        (False, 1, "incomplete"),
        (False, 2, "interrupted"),
    ],
)
def test_a_run_that_ended_by_itself_was_not_interrupted(
    runs: Path, command: Command, complete: bool, status: int, state: str
) -> None:
    close(store(runs, trial("a")), trial("a"), complete=complete, status=status)
    (row,) = json.loads(command("runs", "--json")[1])
    assert row["state"] == state
