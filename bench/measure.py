"""What the benchmarks share: run a command as a whole process, several times, and compare."""

from __future__ import annotations

import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sample:
    """One finished process: seconds of wall clock and of processor time, peak MiB."""

    wall: float
    cpu: float
    rss: float


def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> Sample:
    """Run a command to its end.

    Raises:
        SystemExit: it failed; shows what it printed.
    """
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            argv, cwd=cwd, env={**_environment(), **(env or {})}, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 5):
            output.seek(0)
            sys.exit(f"{argv} exited with {process.returncode}\n{output.read().decode()}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory for a project and for what pytest writes; in memory where that is possible.

    What a disk's directories cost depends on its history, and would be most of what is measured.
    """
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    with tempfile.TemporaryDirectory(dir=memory if usable else None) as directory:
        os.environ["TMPDIR"] = directory
        tempfile.tempdir = None  # it remembers the directory of an earlier call
        try:
            project = Path(directory, "project")
            project.mkdir()
            yield project
        finally:
            del os.environ["TMPDIR"]


def compare(
    floor: Sequence[str], ours: Sequence[str], cwd: Path, *, rounds: int
) -> tuple[Sample, Sample, float]:
    """Run two commands in turn; the medians of both and the median ratio of processor time."""
    run(floor, cwd), run(ours, cwd)  # warm the caches
    floors, mine = [], []
    for _ in range(rounds):
        floors.append(run(floor, cwd))
        mine.append(run(ours, cwd))
    ratio = statistics.median(b.cpu / a.cpu for a, b in zip(floors, mine, strict=True))
    return _median(floors), _median(mine), ratio


def report(name: str, floor: Sample, ours: Sample, ratio: float, bound: float) -> bool:
    """Print one line; returns whether the ratio keeps to its bound."""
    kept = ratio <= bound
    print(
        f"{name}: floor {floor.cpu:.2f} s cpu ({floor.wall:.2f} s wall, {floor.rss:.0f} MiB), "
        f"ours {ours.cpu:.2f} s cpu ({ours.wall:.2f} s wall, {ours.rss:.0f} MiB), "
        f"ratio {ratio:.2f} (bound {bound:g}) {'ok' if kept else 'MISSED'}"
    )
    return kept


def self_rss() -> float:
    """Peak memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _environment() -> dict[str, str]:
    """The environment, but modules are compiled once, as they are where people install them."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def _median(samples: Sequence[Sample]) -> Sample:
    return Sample(
        statistics.median(item.wall for item in samples),
        statistics.median(item.cpu for item in samples),
        statistics.median(item.rss for item in samples),
    )
