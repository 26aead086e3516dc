from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.runners.process import ProcessOutcome, run_process
from pytest_agent_eval.runners.starting import cannot_start
from tests.unit.runners.processes import marked

PYTHON = sys.executable


def run(tmp_path: Path, *argv: str, timeout: float = 30, **options: Any) -> ProcessOutcome:
    options.setdefault("env", {"PATH": os.environ["PATH"]})
    options.setdefault("cwd", str(tmp_path))
    return run_process(
        argv,
        timeout=timeout,
        stdout_path=str(tmp_path / "stdout.log"),
        stderr_path=str(tmp_path / "stderr.log"),
        **options,
    )


def python(tmp_path: Path, source: str, **options: Any) -> ProcessOutcome:
    return run(tmp_path, PYTHON, "-S", "-c", source, **options)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_output_and_exit_status_are_kept(tmp_path: Path) -> None:
    outcome = run(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert outcome.exit_code == 3
    assert not outcome.timed_out
    assert not outcome.cancelled
    assert (tmp_path / "stdout.log").read_text() == "out\n"
    assert (tmp_path / "stderr.log").read_text() == "err\n"
    assert (outcome.stdout_bytes, outcome.stderr_bytes) == (4, 4)
    assert 0 < outcome.duration_s < 30


def test_no_file_is_made_without_output(tmp_path: Path) -> None:
    assert run(tmp_path, "true").exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_stdin_is_empty_and_there_is_no_terminal(tmp_path: Path) -> None:
    source = (
        "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid());"
        "os.open('/dev/tty', os.O_RDWR)"
    )
    outcome = python(tmp_path, source)
    assert outcome.exit_code == 1
    assert (tmp_path / "stdout.log").read_text() == "'' True\n"
    assert "/dev/tty" in (tmp_path / "stderr.log").read_text()


def test_bytes_that_are_not_utf8_stay(tmp_path: Path) -> None:
    data = bytes(range(256))
    python(tmp_path, "import os; os.write(1, bytes(range(256)))")
    assert (tmp_path / "stdout.log").read_bytes() == data


def test_the_environment_is_the_given_one_and_the_marker(tmp_path: Path, trial_id: str) -> None:
    outcome = run(tmp_path, "/usr/bin/env", env={"A": "1", "B": "x\ny"}, trial_id=trial_id)
    assert outcome.exit_code == 0
    lines = (tmp_path / "stdout.log").read_text()
    assert lines == f"A=1\nB=x\ny\nAGENT_EVAL_TRIAL={trial_id}\n"


def test_death_by_a_signal_is_a_negative_exit_status(tmp_path: Path) -> None:
    outcome = run(tmp_path, "sh", "-c", "kill -SEGV $$")
    assert outcome.exit_code == -signal.SIGSEGV
    assert not outcome.timed_out


def test_a_timeout_ends_it_and_keeps_partial_output(tmp_path: Path, trial_id: str) -> None:
    outcome = run(tmp_path, "sh", "-c", "echo begun; exec sleep 60", timeout=0.5, trial_id=trial_id)
    assert outcome.timed_out
    assert outcome.exit_code is None
    assert (tmp_path / "stdout.log").read_text() == "begun\n"
    assert 0.5 <= outcome.duration_s < 5


def test_output_written_on_sigterm_is_kept(tmp_path: Path) -> None:
    source = (
        "import signal, sys, time\n"
        "def end(*_):\n    print('x' * 200000); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    outcome = python(tmp_path, source, timeout=1.0)
    assert outcome.timed_out
    assert outcome.stdout_bytes == len("ready\n") + 200_001


def test_one_that_ignores_sigterm_is_killed(tmp_path: Path, trial_id: str) -> None:
    outcome = run(
        tmp_path,
        "sh",
        "-c",
        "trap '' TERM; sleep 60; sleep 60",
        timeout=0.3,
        grace=0.5,
        trial_id=trial_id,
    )
    assert outcome.timed_out
    assert outcome.survivors == 0


DETACHED = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if {double} and os.fork() != 0:
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open("pid.tmp", "w") as stream:
        stream.write(str(os.getpid()))
    os.rename("pid.tmp", "pid")
    while True:
        print("still here", flush=True)
        time.sleep(0.05)
while not os.path.exists("pid"):
    time.sleep(0.01)
time.sleep({sleep})
"""


@pytest.mark.parametrize("double", [False, True])
def test_a_grandchild_in_its_own_session_that_ignores_sigterm_is_gone(
    tmp_path: Path, trial_id: str, double: bool
) -> None:
    started = time.monotonic()
    source = DETACHED.format(double=double, sleep=60)
    outcome = python(tmp_path, source, timeout=1.0, trial_id=trial_id, grace=1.0)
    assert outcome.timed_out
    assert time.monotonic() - started < 10
    assert not is_running(int((tmp_path / "pid").read_text()))
    size = (tmp_path / "stdout.log").stat().st_size
    time.sleep(0.3)
    assert (tmp_path / "stdout.log").stat().st_size == size


@pytest.mark.parametrize("double", [False, True])
def test_what_is_left_after_a_normal_end_is_ended(
    tmp_path: Path, trial_id: str, double: bool
) -> None:
    source = DETACHED.format(double=double, sleep=0)
    outcome = python(tmp_path, source, trial_id=trial_id, grace=0.5)
    assert outcome.exit_code == 0
    assert outcome.leftovers == 1
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_child_that_dropped_the_marker_is_found_among_the_descendants(
    tmp_path: Path, trial_id: str
) -> None:
    source = (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '61'], env={}, start_new_session=True)\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "time.sleep(1.2)\n"  # recorded meanwhile; then the parent is gone
    )
    outcome = python(tmp_path, source, trial_id=trial_id, grace=0.5)
    assert outcome.exit_code == 0
    assert outcome.leftovers == 1
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_background_job_that_holds_stdout_does_not_hold_us(tmp_path: Path, trial_id: str) -> None:
    started = time.monotonic()
    outcome = run(tmp_path, "sh", "-c", "sleep 60 & echo done", trial_id=trial_id)
    assert outcome.exit_code == 0
    assert outcome.leftovers == 1
    assert (tmp_path / "stdout.log").read_text() == "done\n"
    assert time.monotonic() - started < 10


def test_a_leftover_without_a_marker_is_found_by_its_group(tmp_path: Path) -> None:
    outcome = run(tmp_path, "sh", "-c", "sleep 60 > /dev/null 2>&1 & echo $!")
    assert outcome.leftovers == 1
    assert not is_running(int((tmp_path / "stdout.log").read_text()))


def test_a_quick_child_of_a_detached_parent_is_found(tmp_path: Path, trial_id: str) -> None:
    outcome = run(tmp_path, "setsid", "--fork", "sleep", "60", trial_id=trial_id)
    assert outcome.exit_code == 0
    assert outcome.leftovers == 1


def test_other_processes_are_left_alone(tmp_path: Path, trial_id: str) -> None:
    other = subprocess.Popen(["sleep", "60"], env={"AGENT_EVAL_TRIAL": trial_id + "0"})
    try:
        run(tmp_path, "sh", "-c", "sleep 60 & exit 0", trial_id=trial_id)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_set_event_ends_it(tmp_path: Path, trial_id: str) -> None:
    cancelled = threading.Event()
    timer = threading.Timer(0.3, cancelled.set)
    timer.start()
    outcome = run(tmp_path, "sleep", "60", cancelled=cancelled, trial_id=trial_id)
    timer.join()
    assert outcome.cancelled
    assert not outcome.timed_out
    assert outcome.exit_code is None
    assert outcome.duration_s < 10


def test_nothing_is_started_when_already_cancelled(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    outcome = run(tmp_path, "sh", "-c", "echo started", cancelled=cancelled)
    assert outcome.cancelled
    assert not (tmp_path / "stdout.log").exists()


def test_ctrl_c_in_the_waiting_thread_ends_the_process(tmp_path: Path, trial_id: str) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, "sh", "-c", "sleep 60", trial_id=trial_id)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert marked(trial_id) == []


def test_many_at_once(tmp_path: Path) -> None:
    outcomes: list[ProcessOutcome] = []

    def one(number: int) -> None:
        place = tmp_path / str(number)
        place.mkdir()
        outcomes.append(run(place, "sh", "-c", f"sleep 0.1; exit {number}"))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcome.exit_code or 0 for outcome in outcomes) == list(range(16))


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["no-such-agent"], "'no-such-agent' was not found; PATH of the agent is "),
        (["./no-such-agent"], "'./no-such-agent' does not exist"),
        (["./plain"], "is not executable"),
        (["./noshebang"], "a script needs a #! line"),
        (["./badshebang"], "names an interpreter that does not exist"),
        (["."], "is not executable"),
        ([], "the command is empty"),
        ([""], "the command is empty"),
        (["sh", "-c", "a\0b"], "embedded null byte"),
        (["sh", "-c", "x" * 200_000], "too long: its longest argument has 200,000 bytes"),
    ],
)
def test_what_cannot_be_started(tmp_path: Path, argv: list[str], expected: str) -> None:
    (tmp_path / "plain").write_text("text")
    for name, text in (("noshebang", "\x7fno program"), ("badshebang", "#!/no/such/interpreter\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    with pytest.raises(RunnerError) as caught:
        run(tmp_path, *argv)
    assert expected in str(caught.value)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="no directory /no/such/place"):
        run(tmp_path, "true", cwd="/no/such/place")


def test_the_path_of_the_given_environment_is_searched(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "my-agent"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho mine\n")
    script.chmod(0o755)
    run(tmp_path, "my-agent", env={"PATH": str(script.parent)})
    assert (tmp_path / "stdout.log").read_text() == "mine\n"


def test_a_long_output_is_cut_in_the_middle(tmp_path: Path) -> None:
    source = "import sys\nfor i in range(200000): print(i)"
    outcome = python(tmp_path, source, cap=65536)
    data = (tmp_path / "stdout.log").read_bytes()
    assert len(data) <= 65536
    assert data.startswith(b"0\n1\n2\n")
    assert data.endswith(b"199998\n199999\n")
    assert b"bytes dropped" in data
    assert outcome.stdout_bytes > 1_000_000


LEAKY = r"""
import os, sys, time
key = os.environ["MY_KEY"]
for part in ("first ", key[:5], key[5:], " then ", key, key[:7]):
    os.write(1, part.encode())
    os.write(2, part.encode())
    time.sleep(0.02)
# What a kill would leave on disk at this moment.
for _ in range(1000):
    seen = open("stdout.log").read() if os.path.exists("stdout.log") else ""
    if seen.endswith("then ***MY_KEY***"):
        sys.exit(0)
    time.sleep(0.02)
sys.exit(repr(seen))
"""


def test_secrets_never_reach_the_disk(tmp_path: Path) -> None:
    env = {"MY_KEY": "sk-0123456789"}
    outcome = python(tmp_path, LEAKY, env=env, secrets=Secrets.of(env))
    assert outcome.exit_code == 0
    expected = "first ***MY_KEY*** then ***MY_KEY***sk-0123"
    assert (tmp_path / "stdout.log").read_text() == expected
    assert (tmp_path / "stderr.log").read_text() == expected
    assert outcome.stdout_bytes == len("first  then ") + 2 * 13 + 7


def test_output_that_is_held_back_to_the_end_is_kept(tmp_path: Path) -> None:
    secrets = Secrets.of({"MY_KEY": "sk-0123456789"})
    assert run(tmp_path, "printf", "sk-0", secrets=secrets).stdout_bytes == 4
    assert (tmp_path / "stdout.log").read_text() == "sk-0"


MEMORY = r"""
import re, sys
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.runners.process import run_process
outcome = run_process(
    ["head", "-c", "1G", "/dev/zero"], cwd="/", env={"PATH": "/usr/bin:/bin"}, timeout=120,
    stdout_path=sys.argv[1], stderr_path=sys.argv[2],
)
assert outcome.exit_code == 0 and outcome.stdout_bytes == 1024**3, outcome
# Not getrusage: its peak is inherited from the process that started this one.
print(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1])
"""


def test_a_gibibyte_of_output_fills_neither_memory_nor_disk(tmp_path: Path) -> None:
    done = subprocess.run(
        [PYTHON, "-c", MEMORY, str(tmp_path / "out"), str(tmp_path / "err")],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 300 * 1024
    size = (tmp_path / "out").stat().st_size
    assert 16 * 1024**2 - 256 < size <= 16 * 1024**2


ABANDONED = """
import os, sys, threading, time
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.runners.process import run_process
threading.Thread(target=run_process, daemon=True, args=(["sleep", "60"],), kwargs=dict(
    cwd="/", env={"PATH": "/usr/bin:/bin"}, timeout=120, stdout_path=sys.argv[1],
    stderr_path=sys.argv[2], trial_id=sys.argv[3],
)).start()
time.sleep(0.5)
raise SystemExit("the main thread ends")
"""


def test_no_process_outlives_the_interpreter(tmp_path: Path, trial_id: str) -> None:
    done = subprocess.run(
        [PYTHON, "-c", ABANDONED, str(tmp_path / "out"), str(tmp_path / "err"), trial_id],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.stderr == "the main thread ends\n"
    assert marked(trial_id) == []


def test_it_also_works_where_the_system_cannot_tell_the_end(
    tmp_path: Path, trial_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    outcome = run(tmp_path, "sh", "-c", "echo out; exec >&- 2>&-; sleep 0.2; exit 4")
    assert outcome.exit_code == 4
    outcome = run(tmp_path, "sleep", "60", timeout=0.3, trial_id=trial_id)
    assert outcome.timed_out


@pytest.mark.parametrize(
    ("number", "lasting"),
    [(errno.ENOENT, True), (errno.EACCES, True), (errno.EAGAIN, False), (errno.EMFILE, False)],
)
def test_what_cannot_be_started_now_and_what_never(
    tmp_path: Path, number: int, lasting: bool
) -> None:
    error = cannot_start(OSError(number, os.strerror(number)), ["agent"], str(tmp_path), {})
    assert error.lasting == lasting
