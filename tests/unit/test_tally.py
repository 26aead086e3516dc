"""What the status line counts."""

from __future__ import annotations

from dataclasses import replace

from pytest_agent_eval.execution.engine import Running
from pytest_agent_eval.execution.engine import Snapshot as EngineSnapshot
from pytest_agent_eval.results import TrialResult, Usage
from pytest_agent_eval.tally import EngineTally, Tally

LATER = "2999-01-01T00:00:00.000+00:00"
EARLIER = "2020-01-01T00:00:00.000+00:00"
CARRIED_OUT = TrialResult(
    "eval.yaml",
    "a",
    "dev",
    "passed",
    duration_s=10.0,
    judging_s=2.0,
    usage=Usage(cost_usd=0.5),
    started=LATER,
)


def test_what_was_taken_over_takes_no_time_and_costs_nothing() -> None:
    tally = Tally()
    tally.spend(CARRIED_OUT)
    tally.spend(replace(CARRIED_OUT, started=EARLIER))
    tally.spend(TrialResult("eval.yaml", "b", "dev", "skipped"))
    shown = tally.snapshot(9, (), 2)
    assert (shown.finished_seconds, shown.cost_usd) == ((1, 12.0), 0.5)
    tally.spend(replace(CARRIED_OUT, started=EARLIER, rescored=True))
    shown = tally.snapshot(9, (), 2)
    assert (shown.finished_seconds, shown.cost_usd) == ((2, 14.0), 0.5), "judging alone"


def test_a_cost_that_nobody_knows_is_not_zero() -> None:
    tally = Tally()
    tally.spend(replace(CARRIED_OUT, usage=Usage()))
    assert tally.snapshot(1, (), 1).cost_usd is None


def test_the_engine_is_counted_each_trial_once() -> None:
    failed = replace(CARRIED_OUT, case="b", status="failed")
    errored = replace(CARRIED_OUT, trial=2, status="error")
    at = [
        EngineSnapshot(4, (CARRIED_OUT,), (Running("b", 5.0),)),
        EngineSnapshot(4, (CARRIED_OUT, failed, errored), ()),
    ]
    tally = EngineTally(lambda: at.pop(0), 3)
    first, second = tally(), tally()
    assert (first.total, first.done, first.running) == (4, 1, (("b", 5.0),))
    assert (second.done, second.failed, second.errors, second.cost_usd) == (3, 1, 1, 1.5)
    assert second.parallelism == 3


def test_of_a_trial_that_is_carried_out_again_the_last_result_counts() -> None:
    tally = Tally()
    for status in ("failed", "passed"):
        tally.count("a", status)
    tally.count("b", "tolerated")
    shown = tally.snapshot(2, (), 1)
    assert (shown.done, shown.failed, shown.tolerated) == (2, 0, 1)
