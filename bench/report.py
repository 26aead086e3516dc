"""The HTML report of a large run: seconds, size of the file, and the same as multiples of a floor.

The floor reads every file that the report is made of, as it lies in the run directory and in the
dataset, and deflates it: what any report that holds these texts has to do at least. Run it with a
directory to keep the report (and the run) there.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import zlib
from pathlib import Path

from measure import scratch

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.reports.html import make
from pytest_agent_eval.results import TrialResult, Usage, Verdict
from pytest_agent_eval.runs.stored import StoredRun, StoredTrial

CASES, JUDGES = 2000, 10
SECONDS, MIB = 3.0, 30.0
ROUNDS = 3
WORDS = [
    *("order", "parcel", "refund", "kiln", "glaze", "bowl", "teapot", "week", "money", "letter"),
    *("customer", "policy", "reply", "invoice", "delivered", "broken", "handle", "plate"),
    *("returned", "account", "window", "days", "asked", "answer", "sorry", "please", "thanks"),
]


def prose(rng: random.Random, words: int) -> str:
    """Text that deflates about as well as prose does."""
    text = " ".join(f"{rng.choice(WORDS)}{rng.choice(('', '', ',', '.'))}" for _ in range(words))
    return f"{text} {rng.getrandbits(64):x}"


def store(root: Path, cases: int, judges: int, seed: int = 1) -> FinishedRun:
    """Write a run and its dataset below ``root``."""
    rng = random.Random(seed)
    run = root / ".agent-eval" / "runs" / "20260101T000000Z-ab12"
    suite = root / "evals" / "eval.yaml"
    suite.parent.mkdir(parents=True)
    suite.write_text("dataset:\n  path: cases\n")
    names = [f"judge_{n}" if n % 3 else f"score_{n}" for n in range(judges)]
    results, before = [], []
    for number in range(cases):
        name = f"case-{number:04}-{rng.choice(WORDS)}-{rng.choice(WORDS)}"
        case = suite.parent / "cases" / name
        case.mkdir(parents=True)
        (case / "input.yaml").write_text(f"prompt: {prose(rng, 60)}\n")
        (case / "annotations.yaml").write_text(f"expected_output:\n  word: {rng.choice(WORDS)}\n")
        results.append(trial(run, name, number, names, rng))
        before.append(trial(None, name, number, names, rng))
    infos = SuiteInfo(
        "evals/eval.yaml",
        "large",
        judges=tuple(JudgeInfo(n, "llm", (1, 5) if n.startswith("score") else None) for n in names),
        thresholds={names[1]: {"min_pass_rate": 0.9}, names[0]: {"min_mean": 2.5}},
        total={"dev": cases // 2, "holdout": cases - cases // 2},
        selected={"dev": cases // 2, "holdout": cases - cases // 2},
    )
    old = run.with_name("20251231T000000Z-cd34")
    baseline = StoredRun(old, {}, {(t.suite, t.case, None, 1): StoredTrial(t) for t in before})
    header = {"started": "2026-01-01T00:00:00Z", "git": {"commit": "0123456789abcdef"}}
    return FinishedRun(run.name, run, header, summarise([infos], results), (), baseline)


def trial(
    run: Path | None, name: str, number: int, judges: list[str], rng: random.Random
) -> TrialResult:
    """One result; with its record where there is a run."""
    verdicts = tuple(
        Verdict(judge, rng.randint(1, 5), prose(rng, 14))
        if judge.startswith("score")
        else Verdict(judge, passed := rng.random() < 0.97, prose(rng, 14), passed=passed)
        for judge in judges
    )
    failed = any(verdict.passed is False for verdict in verdicts)
    if run is not None:
        record = run / "cases" / name / "1"
        (record / "files" / "output").mkdir(parents=True)
        (record / "files" / "output" / "reply.md").write_text(prose(rng, 250))
        (record / "files" / "output" / "decision.json").write_text('{"word": "bowl"}')
        (record / "stdout.log").write_text(prose(rng, 40))
        (record / "record.json").write_text(json.dumps({"output": prose(rng, 60)}))
        events = [
            {"type": "tool_call", "name": "Read", "id": "1", "input": {"file_path": "a.md"}},
            {"type": "tool_result", "id": "1", "text": prose(rng, 120)},
            {"type": "message", "agent": "root", "text": prose(rng, 120)},
        ]
        (record / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    return TrialResult(
        "evals/eval.yaml",
        name,
        "dev" if number % 2 else "holdout",
        "failed" if failed else "passed",
        kind="verdict" if failed else "",
        reason="a verdict failed" if failed else "",
        tags={"length": rng.choice(("short", "long"))},
        category=rng.choice(("refund", "exchange", "question")),
        execution=Verdict("execution", True, passed=True),
        verdicts=verdicts,
        duration_s=rng.random() * 20,
        usage=Usage(cost_usd=rng.random() / 10, input_tokens=900, output_tokens=200),
        started="2026-01-01T00:00:00Z",
        record=f"cases/{name}/1",
    )


def floor(root: Path) -> float:
    """Seconds of processor time to read all files and to deflate what they hold."""
    start = time.process_time()
    packer = zlib.compressobj(6)
    for place, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(place, name), "rb") as stream:
                packer.compress(stream.read())
    packer.flush()
    return time.process_time() - start


def main() -> int:
    """Measure; the exit status says whether the bounds hold."""
    with scratch() as project:
        root = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else project
        run = store(root, CASES, JUDGES)
        path = root / "report.html"
        floors, times = [], []
        for _ in range(ROUNDS):
            path.unlink(missing_ok=True)
            floors.append(floor(root))
            start = time.process_time()
            make(path).finished(run)
            times.append(time.process_time() - start)
        least, took = min(floors), min(times)
        size = path.stat().st_size / 1024 / 1024
        good = took < SECONDS and size < MIB
        print(
            f"report: {CASES} cases, {JUDGES} judges: {took:.2f} s of processor time (bound "
            f"{SECONDS:g} s), floor {least:.2f} s, ratio {took / least:.1f}; {size:.1f} MiB (bound "
            f"{MIB:g} MiB) {'ok' if good else 'TOO MUCH'}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
