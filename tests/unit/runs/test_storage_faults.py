"""Where results cannot be stored: said with path and reason, and what is stored stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.reader import read_header, read_results
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial

ROOT = Path(__file__).parents[3]


def run(code: str, *arguments: Path | str, as_nobody: bool = False) -> str:
    """What a Python process prints that stores results where it cannot."""
    head = """
import os, resource, sys
from pathlib import Path
from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial
if {as_nobody} and os.getuid() == 0:
    os.setuid(65534)
"""
    command = [sys.executable, "-c", head.format(as_nobody=as_nobody) + code]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FILL = """
writer = RunWriter.create(Path(sys.argv[1]), HEADER, name="run")
number = 0
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    while True:
        writer.append(trial(f"c{number}", reason="x" * 1000))
        number += 1
except RunDirectoryError as error:
    print(number, error)
try:
    writer.close({"status": {"passed": number}, "notes": ["n" * 50_000]}, 0)
except RunDirectoryError as error:
    print("close", error)
"""


def test_a_file_that_may_not_grow_keeps_what_it_has(runs: Path) -> None:
    said, closing = run(FILL, runs, "20000").splitlines()
    number, _, message = said.partition(" ")
    path = runs / "run"
    assert message == f"{path / 'results.jsonl'}: a result cannot be stored: File too large"
    assert closing == f"close {path}: results cannot be stored here: File too large"
    stored = read_results(path)
    assert len(stored.results) == int(number) > 5
    assert stored.notes == ("results.jsonl: the last line is torn and was dropped",)
    assert "ended" not in read_header(path), "what was there is not half replaced"
    resumed = RunWriter.resume(path, HEADER)
    resumed.append(trial("more"))
    resumed.close({}, 0)
    assert len(read_results(path).results) == int(number) + 1
    assert read_results(path).notes == ()
    assert list(path.glob("*.tmp")) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.getuid() != 0:
        pytest.skip("needs root to mount a small file system")
    options = ["-t", "tmpfs", "-o", "size=256k", "tmpfs"]
    done = subprocess.run([mount, *options, str(place)], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_keeps_what_it_has(small_disk: Path) -> None:
    said, closing = run(FILL, small_disk / "runs").splitlines()
    number, _, message = said.partition(" ")
    path = small_disk / "runs" / "run"
    reason = "No space left on device"
    assert message == f"{path / 'results.jsonl'}: a result cannot be stored: {reason}"
    assert closing == f"close {path}: results cannot be stored here: {reason}"
    assert len(read_results(path).results) == int(number) > 100
    with pytest.raises(RunDirectoryError, match=reason):
        RunWriter.create(small_disk / "other", HEADER)
    (path / "results.jsonl").write_bytes((path / "results.jsonl").read_bytes()[:5000])
    resumed = RunWriter.resume(path, HEADER)
    resumed.append(trial("more"))
    resumed.close({}, 0)
    assert read_results(path).results[-1].case == "more"


REFUSED = """
place = Path(sys.argv[1])
for attempt in (
    lambda: RunWriter.create(place / "new", HEADER),
    lambda: RunWriter.create(place, HEADER, name="run"),
    lambda: RunWriter.resume(place / "run", HEADER),
    lambda: RunWriter.join(place / "run", "gw0"),
):
    try:
        attempt()
    except RunDirectoryError as error:
        print(error)
    else:
        print("written")
"""


def test_a_directory_that_may_not_be_written(tmp_path: Path) -> None:
    # Somebody else's process has to reach it: pytest's own directories are closed to others.
    place = Path(f"/tmp/agent-eval-{os.getpid()}-read-only")
    place.mkdir()
    try:
        writer = RunWriter.create(place, HEADER, name="run")
        writer.append(trial("a"))
        writer.close({}, 0)
        for path in (place, writer.path, writer.path / "cases"):
            path.chmod(0o555)
        for path in writer.path.glob("*.json*"):
            path.chmod(0o444)
        lines = run(REFUSED, place, as_nobody=True).splitlines()
        for path in (place, writer.path, writer.path / "cases"):
            path.chmod(0o755)
        assert len(lines) == 4
        for line, where in zip(lines, ("new", "", "run", "run"), strict=True):
            assert line == f"{place / where}: results cannot be stored here: Permission denied"
        assert len(read_results(writer.path).results) == 1
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("where", ["file", "file/runs", "file/.agent-eval/runs"])
def test_a_file_in_the_way_is_named(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        RunDirectoryError,
        match=rf"{tmp_path / where}: results cannot be stored here: .*: {tmp_path / 'file'} is a file",
    ):
        RunWriter.create(tmp_path / where, HEADER)
    with pytest.raises(RunDirectoryError, match=f"{tmp_path / 'file'} is a file"):
        RunWriter.join(tmp_path / where / "run", "gw0")


def test_a_path_that_is_too_long(tmp_path: Path) -> None:
    place = tmp_path / "/".join(["d" * 200] * 30)
    with pytest.raises(RunDirectoryError, match=r"stored here: File name too long"):
        RunWriter.create(place, HEADER)
    with pytest.raises(RunDirectoryError, match=r"stored here: File name too long"):
        RunWriter.create(tmp_path, HEADER, name="n" * 300)
    writer = RunWriter.create(tmp_path / "runs", HEADER)
    with pytest.raises(RunDirectoryError, match=r"stored here: File name too long"):
        writer.fresh_trial_directory(*["d" * 250] * 20)


def test_a_run_that_was_removed_while_it_is_written(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    shutil.rmtree(writer.path)
    for attempt in (
        lambda: writer.append(trial("a")),
        lambda: writer.trial_directory("a", "1"),
        lambda: writer.fresh_trial_directory("a", "1"),
        lambda: writer.describe([]),
        writer.merge,
        writer.close,
    ):
        with pytest.raises(RunDirectoryError, match=rf"{writer.path}.*: No such file"):
            attempt()


def test_a_device_that_takes_nothing(runs: Path) -> None:
    writer = RunWriter.create(runs, HEADER)
    (writer.path / "results.jsonl").unlink()
    (writer.path / "results.jsonl").symlink_to("/dev/full")
    with pytest.raises(RunDirectoryError, match=r"a result cannot be stored: No space left"):
        writer.append(trial("a"))
