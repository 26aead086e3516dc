"""Output that cannot be stored: a clear error, and no agent that goes on."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.capped_log import CappedLog
from pytest_agent_eval.runners.process import run_process
from tests.unit.runners.processes import marked

FOREVER = "(setsid sh -c 'while echo more; do sleep 0.01; done' &); echo begun; sleep 300"


def _run(tmp_path: Path, script: str, stdout: str, trial: str, cap: int = 1024 * 1024) -> None:
    run_process(
        ["sh", "-c", script],
        cwd=str(tmp_path),
        env={"PATH": os.environ["PATH"]},
        timeout=120,
        stdout_path=stdout,
        stderr_path=str(tmp_path / "err"),
        cap=cap,
        trial_id=trial,
        grace=1.0,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk(tmp_path: Path, trial_id: str) -> None:
    with pytest.raises(RunnerError, match=r"^/dev/full: the agent's output .*: No space left on"):
        _run(tmp_path, FOREVER, "/dev/full", trial_id)
    assert marked(trial_id) == []


def test_a_log_that_is_a_directory(tmp_path: Path, trial_id: str) -> None:
    with pytest.raises(RunnerError, match="cannot be stored here: Is a directory"):
        _run(tmp_path, FOREVER, str(tmp_path), trial_id)
    assert marked(trial_id) == []


def test_a_run_directory_that_was_removed(tmp_path: Path, trial_id: str) -> None:
    with pytest.raises(RunnerError, match=r"gone/out: .* No such file or directory"):
        _run(tmp_path, FOREVER, str(tmp_path / "gone/out"), trial_id)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_not_writable(tmp_path: Path, trial_id: str) -> None:
    (tmp_path / "kept").mkdir(mode=0o500)
    with pytest.raises(RunnerError, match="Permission denied"):
        _run(tmp_path, FOREVER, str(tmp_path / "kept/out"), trial_id)


def test_nothing_is_wrong_when_there_is_no_output(tmp_path: Path, trial_id: str) -> None:
    _run(tmp_path, "true", "/nowhere/out", trial_id)


LIMITED = """\
import sys
from pathlib import Path
from pytest_agent_eval.errors import RunnerError
from tests.unit.runners.test_full_disk import _run
try:
    _run(Path(sys.argv[1]), "head -c 300000 /dev/zero; sleep 300", sys.argv[1] + "/out", "limited")
except RunnerError as error:
    print(error)
"""


def test_a_limit_of_a_files_size(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert (
        done.stdout == f"{tmp_path}/out: the agent's output cannot be stored here: File too large\n"
    )
    assert (tmp_path / "out").stat().st_size == 100_000


def test_a_log_that_is_cut_short_meanwhile_can_be_closed(tmp_path: Path) -> None:
    log = CappedLog(str(tmp_path / "log"), 1024)
    log.write(b"x" * 5000)
    os.truncate(tmp_path / "log", 600)
    closing = threading.Thread(target=log.close, daemon=True)
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
    assert log.failure is None
    assert b"bytes dropped" in (tmp_path / "log").read_bytes()
