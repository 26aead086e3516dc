from __future__ import annotations

from pathlib import Path

import pytest

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.baseline import Baseline
from pytest_agent_eval.runs.stored import StoredRun
from pytest_agent_eval.runs.writer import RunWriter
from tests.unit.runs.made import HEADER, trial


def stored(runs: Path, *results: TrialResult, name: str = "") -> Path:
    writer = RunWriter.create(runs, HEADER, name=name)
    for result in results:
        writer.append(result)
    writer.close()
    return writer.path


def test_trials_are_found_by_what_they_are_known_by(runs: Path) -> None:
    path = stored(runs, trial("a"), trial("b", variant="v"), trial("b", variant="w", trial=2))
    baseline = Baseline.open(path)
    assert baseline.name == path.name
    found = baseline.find("s", "b", "w", 2)
    assert found is not None
    assert found.result.variant == "w"
    assert baseline.lacks("s", "a") == ""
    assert baseline.find("s", "b") is None


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (("t", "a", None, 1), "no result of this suite in the baseline"),
        (("s", "c", None, 1), "no such case in the baseline"),
        (("s", "a", None, 2), "no trial 2 of it in the baseline"),
        (("s", "a", "v", 1), "the baseline has this case only without a variant"),
        (("s", "b", None, 1), "the baseline has this case only as v, w"),
        (("s", "b", "v", 2), "no trial 2 of it in the baseline"),
    ],
)
def test_why_there_is_none(runs: Path, key: tuple[str, str, str | None, int], why: str) -> None:
    path = stored(runs, trial("a"), trial("b", variant="v"), trial("b", variant="w", trial=2))
    baseline = Baseline.open(path)
    assert baseline.find(*key) is None
    assert baseline.lacks(*key) == why


def test_a_run_of_other_suites_is_refused(runs: Path) -> None:
    baseline = Baseline.open(stored(runs, trial("a"), TrialResult("t", "a", "dev", "passed")))
    assert baseline.suites == ("s", "t")
    baseline.require(["x", "s"])
    baseline.require([])
    with pytest.raises(RunDirectoryError, match="has no result of x or y; it is a run of s, t"):
        baseline.require(["y", "x"])


def test_a_run_without_results_or_with_a_writer_is_refused(runs: Path) -> None:
    with pytest.raises(RunDirectoryError, match="holds no result"):
        Baseline.open(stored(runs))
    writer = RunWriter.create(runs, HEADER)
    writer.append(trial("a"))
    with pytest.raises(RunDirectoryError, match="is still being written, by process"):
        Baseline.open(writer.path)
    writer.close()
    assert Baseline.open(writer.path).suites == ("s",)


def test_the_executions_of_this_session_are_refused(runs: Path) -> None:
    first = stored(runs, trial("a", record="cases/a/1"), name="first")
    (first / "cases" / "a" / "1").mkdir(parents=True)
    again = stored(runs, trial("a", record="../first/cases/a/1", rescored=True), name="again")
    other = stored(runs, trial("a", record="cases/a/1"), name="other")
    for one, two in ((first, first), (first, again), (again, first), (again, again)):
        with pytest.raises(RunDirectoryError, match="the very executions"):
            Baseline.open(one, other_than=StoredRun.open(two))
    Baseline.open(other, other_than=StoredRun.open(again))
    Baseline.open(again, other_than=StoredRun.open(other))


def test_identity(runs: Path) -> None:
    results = [trial("a", started="2026-01-01T00:00:01Z"), trial("b")]
    one = Baseline.open(stored(runs, *results, name="one"))
    backwards = stored(runs.parent / "elsewhere", *reversed(results), name="one")
    assert Baseline.open(backwards).identity("s") == one.identity("s")
    assert one.identity("t") != one.identity("s")
    others = [
        stored(runs, *results, name="two"),
        stored(runs.parent / "x", results[0], name="one"),
        stored(runs.parent / "y", trial("a", started="2026-02-01"), results[1], name="one"),
    ]
    assert len({Baseline.open(path).identity("s") for path in others} | {one.identity("s")}) == 4
