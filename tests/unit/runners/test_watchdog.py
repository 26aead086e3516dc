"""Real processes: a parent that is killed, its agents, and the watchdog that ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

PARENT = """\
import sys, threading
from pytest_agent_eval.runners.process import run_process

command, marker, directory = sys.argv[1:4]
def run():
    run_process(["sh", "-c", command], cwd=directory, env={"PATH": "/usr/bin:/bin"}, timeout=600,
                stdout_path=directory + "/out", stderr_path=directory + "/err", trial_id=marker)
thread = threading.Thread(target=run, daemon=len(sys.argv) > 4)
thread.start()
thread.join(None if len(sys.argv) == 4 else 1)
"""

# One child holds stdout open, one is in a session of its own, one was forked twice.
FAMILY = """\
sleep 300 &
setsid sleep 301 &
(setsid sh -c 'sleep 302 & sleep 303' &)
echo started > {ready}
sleep 304
"""


def _until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _marked(marker: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("AGENT_EVAL_TRIAL") == marker:
                found.append(process)
        except psutil.Error:
            continue
    return found


def _watchdogs_of(pid: int) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process(pid).children()
        if any(word.endswith("watchdog.py") for word in child.cmdline())
    ]


def _parent(tmp_path: Path, marker: str, *more: str) -> subprocess.Popen[bytes]:
    tmp_path.mkdir(exist_ok=True)
    command = FAMILY.format(ready=tmp_path / "ready")
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, command, marker, str(tmp_path), *more],
        start_new_session=True,
    )


def test_agents_of_a_parent_that_is_killed_are_ended(tmp_path: Path) -> None:
    marker = f"watched-{os.getpid()}"
    parent = _parent(tmp_path, marker)
    assert _until((tmp_path / "ready").exists)
    assert _until(lambda: len(_marked(marker)) >= 6)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert _until(lambda: not _marked(marker))


def test_signals_to_the_whole_group_do_not_end_the_watchdog(tmp_path: Path) -> None:
    marker = f"signalled-{os.getpid()}"
    parent = _parent(tmp_path, marker)
    assert _until((tmp_path / "ready").exists)
    (watchdog,) = _watchdogs_of(parent.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        watchdog.send_signal(number)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert _until(lambda: not _marked(marker))
    assert _until(lambda: not watchdog.is_running())


def test_other_sessions_are_left_alone(tmp_path: Path) -> None:
    one, other = f"one-{os.getpid()}", f"other-{os.getpid()}"
    first, second = _parent(tmp_path / "a", one), _parent(tmp_path / "b", other)
    try:
        assert _until((tmp_path / "a/ready").exists)
        assert _until((tmp_path / "b/ready").exists)
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert _until(lambda: not _marked(one))
        assert len(_marked(other)) >= 6
    finally:
        second.send_signal(signal.SIGKILL)
        second.wait()
        assert _until(lambda: not _marked(other))


@pytest.mark.parametrize("ends", ["normally", "with agents"])
def test_it_ends_with_its_parent_and_holds_no_descriptor(tmp_path: Path, ends: str) -> None:
    tmp_path.mkdir(exist_ok=True)
    marker = f"quiet-{os.getpid()}"
    command = "echo done" if ends == "normally" else "sleep 300"
    arguments = [command, marker, str(tmp_path), *([] if ends == "normally" else ["daemon"])]
    done = subprocess.run(
        [sys.executable, "-c", PARENT, *arguments],
        capture_output=True,  # returns only when nobody holds the pipes any more
        timeout=60,
        check=True,
    )
    assert done.stdout == b""
    assert _until(lambda: not _marked(marker))
