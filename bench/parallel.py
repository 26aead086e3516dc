"""Wall time of 200 agents that wait half a second, 32 at once, against the time they wait.

The floor is not measured but counted: 200 agents in 7 waves of 32 wait 3.5 seconds. Everything else
is ours: the interpreter's start, pytest's, collection, the trials, the summary.
"""

from __future__ import annotations

import math
import statistics
import sys
from pathlib import Path

from measure import Sample, run, scratch

CASES = 200
PARALLELISM = 32
WAITS = 0.5
FLOOR = math.ceil(CASES / PARALLELISM) * WAITS
BOUND = 1.15
ROUNDS = 3

SUITE = """\
name: bench
dataset: {{path: cases}}
execution: {{parallelism: {parallelism}}}
runner: {runner}
judges:
  - {{name: answered, check: "return outputs['final_message'].strip() == 'ok', 'it said ok'"}}
"""

RUNNERS = {
    "command": f'{{type: cli, command: ["sh", "-c", "sleep {WAITS}; echo ok"]}}',
    "async": "{type: python, function: agent:answer}",
}

AGENT = f"""\
import asyncio


async def answer(task):
    await asyncio.sleep({WAITS})
    return "ok"
"""


def write_project(root: Path, runner: str, cases: int = CASES) -> None:
    """A suite of cases whose agents wait."""
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / "agent.py").write_text(AGENT)
    suite = SUITE.format(parallelism=PARALLELISM, runner=RUNNERS[runner])
    (root / "eval.yaml").write_text(suite)
    for number in range(cases):
        case = root / "cases" / f"case-{number:04d}"
        case.mkdir(parents=True, exist_ok=True)
        (case / "input.yaml").write_text(f"message: Where is parcel {number}?\n")


def main() -> int:
    """Write the project, measure, print one line for each kind of agent."""
    kept = True
    for runner in RUNNERS:
        with scratch() as root:
            write_project(root, runner)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "eval.yaml"]
            run(command, root)
            samples: list[Sample] = [run(command, root) for _ in range(ROUNDS)]
            wall = statistics.median(sample.wall for sample in samples)
            cpu = statistics.median(sample.cpu for sample in samples)
            ratio = wall / FLOOR
            kept = kept and ratio <= BOUND
            print(
                f"{CASES} {runner} agents of {WAITS} s, {PARALLELISM} at once: "
                f"floor {FLOOR:.1f} s, "
                f"ours {wall:.2f} s wall ({cpu:.2f} s cpu), ratio {ratio:.2f} (bound {BOUND:g}) "
                f"{'ok' if ratio <= BOUND else 'MISSED'}"
            )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
