"""Wall time of 200 agents that wait half a second, 32 at once, against the time they wait.

The floor is not measured but counted: 200 agents in 7 waves of 32 wait 3.5 seconds. Everything else
is ours: the interpreter's start, pytest's, collection, the trials, the summary.

The least is what a plugin of pytest takes that reads no suite and no case, stores and judges
nothing: it imports pydantic, which checks a suite, and has the agents wait ahead of pytest.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
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
    "coroutine": "{type: python, function: agent:answer}",
}

AGENT = f"""\
import asyncio


async def answer(task):
    await asyncio.sleep({WAITS})
    return "ok"
"""

LEAST = f"""\
import asyncio, os, subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

COMMAND = ["sh", "-c", "sleep {WAITS}; echo ok"]


class Case(pytest.Item):
    def runtest(self):
        assert self.config.at_work[int(self.name)].result() == "ok"


class Cases(pytest.File):
    def collect(self):
        from pydantic import BaseModel
        for number in range({CASES}):
            yield Case.from_parent(self, name=str(number))


def pytest_collect_file(file_path, parent):
    return Cases.from_parent(parent, path=file_path) if file_path.name == "eval.yaml" else None


def command(session):
    pool = ThreadPoolExecutor({PARALLELISM})
    ask = lambda: subprocess.run(COMMAND, capture_output=True, text=True).stdout.strip()
    return [pool.submit(ask) for _ in session.items]


def coroutine(session):
    import threading
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    room = asyncio.Semaphore({PARALLELISM})
    async def answer():
        async with room:
            await asyncio.sleep({WAITS})
            return "ok"
    return [asyncio.run_coroutine_threadsafe(answer(), loop) for _ in session.items]


def cluster(session):
    from distributed import Client
    client = Client(os.environ["SCHEDULER"], set_as_default=False)
    session.config.add_cleanup(client.close)
    def ask(number):
        return subprocess.run(COMMAND, capture_output=True, text=True).stdout.strip()
    return [client.submit(ask, number) for number in range({CASES})]


def pytest_collection_finish(session):
    session.config.at_work = globals()[os.environ["AGENTS"]](session)
"""


def least(root: Path, agents: str, scheduler: str = "") -> float:
    """Seconds of the whole session of a plugin that does nothing else."""
    (root / "least.py").write_text(LEAST)
    environment = {"AGENTS": agents, "SCHEDULER": scheduler}
    plugins = ["-p", "no:agent-eval", "-p", "least"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugins]
    return median([run([*command, "eval.yaml"], root, environment) for _ in range(ROUNDS)])


def median(samples: Sequence[Sample]) -> float:
    """Seconds of wall clock."""
    return statistics.median(sample.wall for sample in samples)


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
            wall, bare = median(samples), least(root, runner)
            cpu = statistics.median(sample.cpu for sample in samples)
            ratio = wall / FLOOR
            kept = kept and ratio <= BOUND
            print(
                f"{CASES} {runner} agents of {WAITS} s, {PARALLELISM} at once: "
                f"floor {FLOOR:.1f} s, least {bare:.2f} s (ratio {bare / FLOOR:.2f}), "
                f"ours {wall:.2f} s wall ({cpu:.2f} s cpu), ratio {ratio:.2f} (bound {BOUND:g}) "
                f"{'ok' if ratio <= BOUND else 'MISSED'}"
            )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
