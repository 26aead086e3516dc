"""Cost of a case whose agent is a command that copies one file.

The floor does what no runner can do without: a loop of ``mkdir``, a copy of the input and
``subprocess.run``. A case costs the time of 200 cases minus that of one, over 199.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from measure import run, scratch

CASES = 200
BOUNDS = {1: 2.0, 2: 1.3}
ROUNDS = 5

SUITE = """\
name: bench
dataset: {path: cases}
runner: {type: cli, command: "cp input.yaml output/copy.yaml"}
judges:
  - {name: copied, check: "return 'copy.yaml' in outputs['files'], 'looked for copy.yaml'"}
"""

FLOOR = """\
import os, shutil, subprocess, sys

root, cases = sys.argv[1], int(sys.argv[2])
for number in range(cases):
    workspace = f"{root}/floor-{os.getpid()}-{number}"
    os.mkdir(workspace)
    os.mkdir(f"{workspace}/output")
    shutil.copyfile(f"{root}/cases/case-{number:04d}/input.yaml", f"{workspace}/input.yaml")
    subprocess.run(["cp", "input.yaml", "output/copy.yaml"], cwd=workspace, check=True)
"""


def main() -> int:
    """Write the project, measure, print one line for each parallelism."""
    kept = True
    with scratch() as root:
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "floor.py").write_text(FLOOR)
        (root / "eval.yaml").write_text(SUITE)
        for number in range(CASES):
            case = root / "cases" / f"case-{number:04d}"
            case.mkdir(parents=True)
            (case / "input.yaml").write_text(f"message: Where is parcel {number}?\n")
        for parallelism, bound in BOUNDS.items():
            ratios, floors, mine = [], [], []
            for _ in range(ROUNDS):
                floors.append(_cost(root, _floor))
                mine.append(_cost(root, lambda n, p=parallelism: _ours(n, p)))
                ratios.append(mine[-1] / floors[-1])
            ratio = statistics.median(ratios)
            kept = kept and ratio <= bound
            print(
                f"a command that copies a file, {parallelism} at once: "
                f"floor {statistics.median(floors) * 1e3:.2f} ms, "
                f"ours {statistics.median(mine) * 1e3:.2f} ms, "
                f"ratio {ratio:.2f} (bound {bound:g}) {'ok' if ratio <= bound else 'MISSED'}"
            )
    return 0 if kept else 1


def _cost(root: Path, command) -> float:  # type: ignore[no-untyped-def]
    """Seconds of wall clock a case."""
    few, many = (run(command(number), root).wall for number in (1, CASES))
    return (many - few) / (CASES - 1)


def _floor(cases: int) -> list[str]:
    return [sys.executable, "floor.py", ".", str(cases)]


def _ours(cases: int, parallelism: int) -> list[str]:
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "eval.yaml"),
        *("--agent-eval-parallelism", str(parallelism), "--agent-eval-split", "all"),
        *([] if cases == CASES else ["-k", "case-0000"]),
    ]


if __name__ == "__main__":
    sys.exit(main())
