from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import Command, store, trial


def make(runs: Path, name: str, *failing: int, count: int = 20, variant: str | None = None) -> None:
    results = [trial(f"c{n:02}", value=n not in failing, variant=variant) for n in range(count)]
    store(runs, *results, name=name).close()


def test_runs_against_the_first(runs: Path, command: Command) -> None:
    make(runs, "old")
    make(runs, "same")
    make(runs, "bad", *range(8), count=21)
    status, out, err = command("compare", "old", "same", "bad")
    assert (status, err) == (1, "")
    same, bad = out.split("\n\n")
    assert same.startswith("evals/eval.yaml, same\n  against old:\n")
    assert "polite  no difference shown: 1.00 -> 1.00, difference 0.00 [" in same
    assert bad.startswith("evals/eval.yaml, bad\n  against old:\n")
    assert "polite  worse: 1.00 -> 0.60, difference -0.40 [" in bad
    assert "p 0.0078; regressed: c00," in " ".join(bad.split())
    assert "only in this run, 1 case: c20" in bad
    assert command("compare", "old", "same")[0] == 0
    assert command("compare", "bad", "old")[0] == 0  # better


def test_as_json(runs: Path, command: Command) -> None:
    make(runs, "old")
    make(runs, "bad", *range(8))
    status, out, _ = command("compare", "--json", "old", "bad")
    [data] = json.loads(out)
    assert status == 1
    assert (data["run"], data["baseline"]) == ("bad", "old")
    assert data["judges"]["polite"]["outcome"] == "worse"
    assert data["judges"]["polite"]["p"] == 0.0078125


def test_variants_of_one_run(runs: Path, command: Command) -> None:
    results = [
        trial(f"c{n:02}", variant=v, value=v != "b" or n > 8) for v in "abc" for n in range(20)
    ]
    store(runs, *results, name="run").close()
    status, out, _ = command("compare", "run", "--variants")
    assert status == 1
    b, c = out.split("\n\n")
    assert b.startswith("evals/eval.yaml [b], run\n  against variant a:\n")
    assert "worse: 1.00 -> 0.55" in b
    assert "no difference shown" in c
    assert "(p 0.0078 for all judges together)" in " ".join(b.split())
    status, out, _ = command("compare", "run", "--variants", "b", "c")
    assert status == 0
    assert out.startswith("evals/eval.yaml [c], run\n  against variant b:\n")
    assert "better: 0.55 -> 1.00" in out


def test_mistakes(runs: Path, command: Command) -> None:
    make(runs, "old")
    make(runs, "new")
    for words, said in (
        (("old",), "needs two runs, or one with --variants"),
        (("old", "nwe"), "no run named nwe"),
        (("old", "new", "--variants"), "--variants needs one run"),
        (("old", "--variants"), "the run old has no variants"),
        (("old", "new", "--suite", "x"), "no suite x in the run new; there is evals/eval.yaml"),
    ):
        status, _, err = command("compare", *words)
        assert status == 2
        assert said in err
    store(runs, trial("a", variant="x"), name="one").close()
    assert "needs two variants; there is x" in command("compare", "one", "--variants")[2]
    assert "no variant y; there is x" in command("compare", "one", "--variants", "y")[2]
