"""Cost of a case whose agent is a command that copies one file.

The floor does what no runner can do without: a loop of ``mkdir``, a copy of the input and
``subprocess.run``. A case costs the time of 200 cases minus that of one, over 199.

The least is what a plugin of pytest costs that does what a stored trial consists of and nothing
else, ahead of pytest in threads: a workspace, two logs, the digest of the case, a look at what
changed, the files and the record stored, one line of results.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from functools import partial
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

LEAST = """\
import hashlib, json, os, shutil, subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest


def files_in(directory):
    return {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(directory)}


class Case(pytest.Item):
    def work(self):
        case, store = f"cases/{self.name}", f"{self.config.store}/{self.name}"
        workspace = f"{self.config.store}/{self.name}-workspace"
        for directory in (workspace, f"{workspace}/output", store, f"{store}/files"):
            os.mkdir(directory)
        with open(f"{case}/input.yaml", "rb") as stream:
            record = {"case": self.name, "digest": hashlib.sha256(stream.read()).hexdigest()}
        shutil.copyfile(f"{case}/input.yaml", f"{workspace}/input.yaml")
        before = files_in(workspace)
        with open(f"{store}/stdout.log", "wb") as out, open(f"{store}/stderr.log", "wb") as err:
            agent = subprocess.Popen(
                ["cp", "input.yaml", "output/copy.yaml"], cwd=workspace, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            )
            record["exit_code"] = agent.wait()
        record["changed"] = files_in(workspace) != before
        record["files"] = os.listdir(f"{workspace}/output")
        for name in record["files"]:
            shutil.copyfile(f"{workspace}/output/{name}", f"{store}/files/{name}")
        with open(f"{store}/stdout.log") as stream:
            record["output"] = stream.read()
        with open(f"{store}/record.json", "w") as stream:
            json.dump(record, stream)
        os.write(self.config.results, json.dumps(record).encode() + b"\\n")
        shutil.rmtree(workspace)
        return record

    def runtest(self):
        assert "copy.yaml" in self.config.at_work[self.name].result()["files"]


class Cases(pytest.File):
    def collect(self):
        for number in range(int(os.environ["CASES"])):
            yield Case.from_parent(self, name=f"case-{number:04d}")


def pytest_collect_file(file_path, parent):
    return Cases.from_parent(parent, path=file_path) if file_path.name == "eval.yaml" else None


def pytest_collection_finish(session):
    config = session.config
    config.store = f"{os.getcwd()}/least-{os.getpid()}"
    os.mkdir(config.store)
    config.results = os.open(f"{config.store}/results.jsonl", os.O_CREAT | os.O_WRONLY)
    pool = ThreadPoolExecutor(int(os.environ["PARALLELISM"]))
    config.at_work = {item.name: pool.submit(item.work) for item in session.items}
"""


def main() -> int:
    """Write the project, measure, print one line for each parallelism."""
    kept = True
    with scratch() as root:
        (root / "pytest.ini").write_text("[pytest]\n")
        (root / "floor.py").write_text(FLOOR)
        (root / "least.py").write_text(LEAST)
        (root / "eval.yaml").write_text(SUITE)
        for number in range(CASES):
            case = root / "cases" / f"case-{number:04d}"
            case.mkdir(parents=True)
            (case / "input.yaml").write_text(f"message: Where is parcel {number}?\n")
        for parallelism, bound in BOUNDS.items():
            ratios, floors, leasts, mine = [], [], [], []
            for _ in range(ROUNDS):
                floors.append(_cost(root, _floor))
                leasts.append(_cost(root, _least, PARALLELISM=str(parallelism)))
                mine.append(_cost(root, partial(_ours, parallelism)))
                ratios.append(mine[-1] / floors[-1])
            ratio = statistics.median(ratios)
            least = statistics.median(a / b for a, b in zip(leasts, floors, strict=True))
            kept = kept and ratio <= bound
            print(
                f"a command that copies a file, {parallelism} at once: "
                f"floor {statistics.median(floors) * 1e3:.2f} ms, "
                f"least {statistics.median(leasts) * 1e3:.2f} ms (ratio {least:.2f}), "
                f"ours {statistics.median(mine) * 1e3:.2f} ms, "
                f"ratio {ratio:.2f} (bound {bound:g}) {'ok' if ratio <= bound else 'MISSED'}"
            )
    return 0 if kept else 1


def _cost(root: Path, command: Callable[[int], list[str]], **env: str) -> float:
    """Seconds of wall clock a case."""
    few, many = (run(command(n), root, {"CASES": str(n), **env}).wall for n in (1, CASES))
    return (many - few) / (CASES - 1)


def _floor(cases: int) -> list[str]:
    return [sys.executable, "floor.py", ".", str(cases)]


def _least(cases: int) -> list[str]:
    plugins = ["-p", "no:cacheprovider", "-p", "no:agent-eval", "-p", "least"]
    return [sys.executable, "-m", "pytest", "-q", *plugins, "eval.yaml"]


def _ours(parallelism: int, cases: int) -> list[str]:
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "eval.yaml"),
        *("--agent-eval-parallelism", str(parallelism), "--agent-eval-split", "all"),
        *([] if cases == CASES else ["-k", "case-0000"]),
    ]


if __name__ == "__main__":
    sys.exit(main())
