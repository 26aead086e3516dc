"""Real processes: a parent that is killed, its agents, and the watchdog that ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pytest_agent_eval.runners import process_tree
from pytest_agent_eval.runners.watchdog import Agents, Watchdog

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
    found = []
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end while it is looked at
            if any(word.endswith("watchdog.py") for word in child.cmdline()):
                found.append(child)
    return found


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


# Runs an agent, forks, and ends when it is told to; the child goes on, with an agent of its own.
FORKING = """\
import os, signal, sys, threading, time
from pathlib import Path
from pytest_agent_eval.runners.process import run_process

def run(command, marker):
    run_process(["sh", "-c", command], cwd=directory, env={"PATH": "/usr/bin:/bin"}, timeout=600,
                stdout_path=directory + "/out", stderr_path=directory + "/err", trial_id=marker)

how, marker, directory = sys.argv[1:]
run("true", marker)
if how == "holds":
    threading.Thread(target=run, args=("sleep 300", marker), daemon=True).start()
child = os.fork()
if child == 0:
    if how == "runs":
        run("echo $$ > child; sleep 300", marker + "-child")
    time.sleep(300)
Path(directory, "forked").write_text(str(child))
if how == "runs":
    while not os.path.exists(directory + "/child"):
        time.sleep(0.01)
    os._exit(0)
time.sleep(300)
"""


def _forking(tmp_path: Path, how: str, marker: str) -> tuple[subprocess.Popen[bytes], int]:
    with (tmp_path / "stderr").open("wb") as stderr:
        parent = subprocess.Popen(
            [sys.executable, "-X", "dev", "-W", "error", "-c", FORKING, how, marker, str(tmp_path)],
            stderr=stderr,
        )
    assert _until(lambda: (tmp_path / "forked").exists() and (tmp_path / "forked").read_text() > "")
    return parent, int((tmp_path / "forked").read_text())


def test_a_forked_child_does_not_keep_agents_of_a_killed_parent(tmp_path: Path) -> None:
    marker = f"forked-{os.getpid()}"
    parent, child = _forking(tmp_path, "holds", marker)
    try:
        assert _until(lambda: bool(_marked(marker)))
        parent.kill()
        parent.wait()
        assert _until(lambda: not _marked(marker))
    finally:
        parent.kill()
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_has_a_watchdog_of_its_own(tmp_path: Path) -> None:
    marker = f"forking-{os.getpid()}"
    parent, child = _forking(tmp_path, "runs", marker)
    try:
        assert parent.wait() == 0
        assert len(_marked(f"{marker}-child")) >= 1, (
            "the end of the parent ends nothing of the child"
        )
    finally:
        os.kill(child, signal.SIGKILL)
    assert _until(lambda: not _marked(f"{marker}-child"))
    assert (tmp_path / "stderr").read_text() == "", "no warnings of what was not waited for"


QUIET = """\
import os, sys
from pytest_agent_eval.runners.process import run_process
for i in range(20):
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
run_process(["true"], cwd="/", env={"PATH": "/usr/bin:/bin"}, timeout=60,
            stdout_path="/nowhere/out", stderr_path="/nowhere/err", trial_id="quiet")
print(flush=True)
sys.stdin.read()
"""


def test_a_normal_end_is_quiet_and_nothing_is_inherited() -> None:
    with subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", QUIET],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        (watchdog,) = _watchdogs_of(parent.pid)
        # stdin, stdout, stderr, and one that tells of the end of its parent
        assert _until(lambda: watchdog.num_fds() <= 4)
        assert os.getsid(watchdog.pid) == watchdog.pid
        assert parent.communicate(timeout=60) == (b"", b"")
    assert parent.returncode == 0
    assert _until(lambda: not watchdog.is_running())


@pytest.fixture
def agent() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        ["sleep", "300"],
        env={"PATH": os.environ["PATH"], "AGENT_EVAL_TRIAL": f"agent-{os.getpid()}"},
        start_new_session=True,
    ) as process:
        yield process
        process.kill()


def _new_watchdog(before: list[psutil.Process]) -> psutil.Process:
    (found,) = [process for process in _watchdogs_of(os.getpid()) if process not in before]
    return found


def test_to_be_let_go_is_no_reason_to_end_anything(agent: subprocess.Popen[bytes]) -> None:
    before = _watchdogs_of(os.getpid())
    watchdog = Watchdog(process_tree.__file__)
    key = watchdog.expect("nobody")
    watchdog.started(key, agent.pid, "nobody")
    process = _new_watchdog(before)
    watchdog.close()
    assert process.wait(30) == 0
    assert agent.poll() is None


def test_one_that_was_ended_is_started_again_and_told_everything(tmp_path: Path) -> None:
    marker = f"again-{os.getpid()}"
    parent = subprocess.Popen([sys.executable, "-c", TWICE, marker, str(tmp_path)])
    assert _until((tmp_path / "first").exists)
    (watchdog,) = _watchdogs_of(parent.pid)
    watchdog.kill()
    assert _until(lambda: watchdog.status() == psutil.STATUS_ZOMBIE)
    (tmp_path / "go").touch()
    assert _until((tmp_path / "second").exists)
    parent.kill()
    parent.wait()
    assert _until(lambda: not _marked(marker))


TWICE = """\
import os, sys, threading, time
from pytest_agent_eval.runners.process import run_process
marker, directory = sys.argv[1:]
def run(name):
    run_process(["sh", "-c", f"echo > {name}; sleep 300"], cwd=directory, timeout=600,
                env={"PATH": "/usr/bin:/bin"}, trial_id=marker,
                stdout_path=directory + "/out", stderr_path=directory + "/err")
threading.Thread(target=run, args=("first",)).start()
while not os.path.exists(directory + "/go"):
    time.sleep(0.01)
run("second")
"""


def test_without_it_agents_run_and_people_are_told_once() -> None:
    watchdog = Watchdog(process_tree.__file__, interpreter="/nowhere/python")
    key = watchdog.expect("x")
    watchdog.started(key, 12345, "x")
    watchdog.forget(key)
    assert watchdog.problem() == (
        "agents go on running if pytest is killed: no process watches them: "
        "[Errno 2] No such file or directory: '/nowhere/python'"
    )
    assert watchdog.problem() == ""


def test_an_interpreter_that_does_not_run_it_is_given_up() -> None:
    watchdog = Watchdog(process_tree.__file__, interpreter="/bin/false")

    def said() -> str:
        watchdog.forget(watchdog.expect("x"))
        return watchdog.problem()

    assert _until(lambda: said().endswith("it ended again and again"))


def test_an_agent_that_was_only_announced_is_found(agent: subprocess.Popen[bytes]) -> None:
    agents = Agents(process_tree.__file__)
    agents.take(b"1 0 somebody else\n2 0 agent-%d\n" % os.getpid())
    assert len(agents) == 2
    agents.end()
    assert agent.wait() == -signal.SIGTERM


def test_an_announced_agent_without_a_marker_is_nobody(agent: subprocess.Popen[bytes]) -> None:
    agents = Agents(process_tree.__file__)
    agents.take(b"1 0 \n")
    agents.end(grace=0)
    assert agent.poll() is None


def test_what_was_recorded_is_found_without_a_marker(tmp_path: Path) -> None:
    # The inner one loses the marker and the session, and then its parent.
    inner = f"exec env -i setsid sh -c 'echo $$ > {tmp_path}/pid; exec /bin/sleep 300'"
    root = subprocess.Popen(
        ["sh", "-c", f"({inner}) & while [ ! -e {tmp_path}/go ]; do sleep 0.01; done"],
        start_new_session=True,
    )
    assert _until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() > "")
    child = psutil.Process(int((tmp_path / "pid").read_text()))
    agents = Agents(process_tree.__file__)
    agents.take(b"1 %d \n" % root.pid)
    agents.record()
    (tmp_path / "go").touch()
    root.wait()
    assert child.is_running()
    agents.end()
    assert _until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_lines_that_come_in_pieces() -> None:
    agents = Agents(process_tree.__file__)
    for piece in (b"1 0 a b\n2", b" 77 c", b"\n1", b"\n"):
        agents.take(piece)
    assert len(agents) == 1
