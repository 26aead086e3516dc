"""Many agents at once, and what limits them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

# Agents wait for the end of a fifo, which costs nothing, until all are there.
MANY = """\
import os, resource, sys, threading, time
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.process import run_process

number, directory = int(sys.argv[1]), sys.argv[2]
os.mkfifo(directory + "/fifo")
fifo = os.open(directory + "/fifo", os.O_RDWR)
codes, errors = [], []

def run(index):
    try:
        codes.append(run_process(
            ["sh", "-c", "exec < fifo; echo here; read word; true"],
            cwd=directory, env={"PATH": "/usr/bin:/bin"}, timeout=300,
            stdout_path=f"{directory}/{index}.out", stderr_path=f"{directory}/{index}.err",
            trial_id=f"many-{os.getpid()}-{index}",
        ).exit_code)
    except RunnerError as error:
        errors.append(str(error))

def here():
    return sum(os.path.exists(f"{directory}/{index}.out") for index in range(number))

threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
for thread in threads:
    thread.start()
until = time.monotonic() + 100
while len(errors) + here() < number and time.monotonic() < until:
    time.sleep(0.05)
os.close(fifo)
for thread in threads:
    thread.join()
print(codes.count(0), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
print(*sorted(set(errors)), sep="\\n")
"""


def _many(tmp_path: Path, number: int, soft: int, hard: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", MANY, str(number), str(tmp_path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_the_limit_of_open_files_is_raised_when_it_is_needed(tmp_path: Path) -> None:
    hard = min(1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    if hard < 1024:
        pytest.skip("this process may not open enough files")
    counts, *errors = _many(tmp_path, 100, 128, hard)
    assert errors == [""]
    worked, limit = map(int, counts.split())
    assert worked == 100
    assert 128 < limit <= 1024
    assert len(list(tmp_path.glob("*.out"))) == 100


def test_it_is_left_alone_when_it_is_not(tmp_path: Path) -> None:
    counts, *errors = _many(tmp_path, 2, 128, 256)
    assert (counts, errors) == ("2 128", [""])


def test_what_cannot_be_raised_is_a_clear_error(tmp_path: Path) -> None:
    counts, *errors = _many(tmp_path, 100, 64, 64)
    worked = int(counts.split()[0])
    assert 0 < worked < 100
    assert any("this process may open 64" in error and "ulimit -n" in error for error in errors)
    assert all("Too many open files" in error for error in errors)


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 5000 or (os.cpu_count() or 1) < 2,
    reason="this machine allows too little",
)
def test_a_thousand_agents_at_once(tmp_path: Path) -> None:
    soft = 1024
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    counts, *errors = _many(tmp_path, 1000, soft, hard)
    assert errors == [""]
    assert counts.split()[0] == "1000"
