"""Wall time of 200 agents that wait half a second, on a Dask cluster of two workers on loopback.

The floor is counted as in ``parallel.py``: 7 waves of 32 agents wait 3.5 seconds; the least is that
of a plugin that connects and submits as many calls that wait.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from measure import run, scratch
from parallel import CASES, FLOOR, PARALLELISM, WAITS, least, median, write_project

BOUND = 1.25
ROUNDS = 3
WORKERS = 2


def main() -> int:
    """Start the cluster, write the project, measure, print one line."""
    with scratch() as root:
        processes: list[subprocess.Popen[bytes]] = []
        try:
            address = _start(root.parent, processes)
            write_project(root, "command")
            command = [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "eval.yaml"),
                *("--agent-eval-dask", address, "--agent-eval-parallelism", str(PARALLELISM)),
            ]
            run(command, root)
            wall = median([run(command, root) for _ in range(ROUNDS)])
            bare = least(root, "cluster", address)
        finally:
            for process in reversed(processes):  # the scheduler last: its workers say goodbye to it
                _end(process)
    ratio = wall / FLOOR
    print(
        f"{CASES} command agents of {WAITS} s on {WORKERS} Dask workers, {PARALLELISM} at once: "
        f"floor {FLOOR:.1f} s, least {bare:.2f} s (ratio {bare / FLOOR:.2f}), "
        f"ours {wall:.2f} s wall, ratio {ratio:.2f} (bound {BOUND:g}) "
        f"{'ok' if ratio <= BOUND else 'MISSED'}"
    )
    return 0 if ratio <= BOUND else 1


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, also one that does not want to."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start(directory: Path, processes: list[subprocess.Popen[bytes]]) -> str:
    """Start a scheduler and its workers; the scheduler's address once all are there."""
    from distributed import Client

    file = directory / "scheduler.json"
    common = [sys.executable, "-m"]
    with open(directory / "dask.log", "wb") as log:
        scheduler = [
            *common,
            *("distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"),
            *("--scheduler-file", str(file)),
        ]
        processes.append(subprocess.Popen(scheduler, cwd=directory, stdout=log, stderr=log))
        while not file.exists():
            time.sleep(0.05)
        address = str(json.loads(file.read_text())["address"])
        worker = [
            *common,
            *("distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"),
            *("--nthreads", str(PARALLELISM // WORKERS)),
        ]
        for _ in range(WORKERS):
            processes.append(subprocess.Popen(worker, cwd=directory, stdout=log, stderr=log))
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(WORKERS, timeout=60)
    return address


if __name__ == "__main__":
    sys.exit(main())
