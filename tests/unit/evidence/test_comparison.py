"""Wins, losses and ties against a baseline: rates, gates, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.aggregate import Aggregate, JudgeInfo, aggregate
from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.intervals import wilson
from pytest_agent_eval.evidence.summary import SuiteInfo, Summary, comparison, summarise
from pytest_agent_eval.reports.junit import pairwise_property
from pytest_agent_eval.reports.terminal import aggregate_text, gate_text, summary_lines
from pytest_agent_eval.results import TrialResult, Verdict

JUDGE = JudgeInfo("pairwise", "pairwise", gated=True)
OUTCOMES = {"win": 1, "tie": 0, "loss": -1}


def trial(case: str, outcome: str, **more: Any) -> TrialResult:
    verdict = {
        "error": Verdict("pairwise", error="no answer"),
        "skip": Verdict("pairwise", skipped=True, rationale="no such case in the baseline"),
    }.get(outcome) or Verdict("pairwise", OUTCOMES[outcome])
    return TrialResult("s", case, "dev", "passed", verdicts=(verdict,), **more)


def trials(*outcomes: str) -> list[TrialResult]:
    return [trial(f"case-{number}", outcome) for number, outcome in enumerate(outcomes)]


def overall(results: list[TrialResult]) -> Aggregate:
    (found,) = [one for one in aggregate(results, [JUDGE]) if one.split == "all"]
    return found


def summary(
    results: list[TrialResult], baseline: str = "run-1", mode: Any = "complete", **bounds: Any
) -> Summary:
    count = {"dev": len({result.case for result in results}), "holdout": 0}
    info = SuiteInfo(
        "s",
        "shop",
        judges=(JUDGE,),
        thresholds={"pairwise": bounds} if bounds else {},
        total=count,
        selected=count,
        baseline=baseline,
    )
    return summarise([SuiteInfo.from_dict(info.to_dict())], results, gate_mode=mode)


def gate(results: list[TrialResult], **more: Any) -> Gate:
    (found,) = summary(results, **more).gates
    return found


def lines(found: Summary) -> str:
    return " ".join(" ".join(line.text for line in summary_lines(found, width=100)).split())


@given(st.lists(st.sampled_from(["win", "loss", "tie", "error", "skip"]), min_size=1, max_size=40))
def test_the_win_rate_is_wins_of_all_that_were_compared(outcomes: list[str]) -> None:
    found = overall(trials(*outcomes))
    wins, losses, ties = (outcomes.count(name) for name in ("win", "loss", "tie"))
    compared = wins + losses + ties
    assert (found.scored, found.skipped) == (compared, outcomes.count("skip"))
    assert found.errored == outcomes.count("error")
    if not compared:
        assert (found.kind, found.value) == ("none", None)
        return
    assert (found.kind, found.wins, found.losses, found.ties) == ("wins", wins, losses, ties)
    assert found.value == pytest.approx(wins / compared)
    assert found.interval == wilson(wins, compared)
    # Exchanging the runs exchanges wins and losses, and leaves the ties.
    swap = {"win": "loss", "loss": "win"}
    other = overall(trials(*(swap.get(name, name) for name in outcomes)))
    assert (other.wins, other.losses, other.ties) == (losses, wins, ties)


def test_trials_of_a_case_are_averaged_first() -> None:
    several = [trial("a", outcome, trial=n) for n, outcome in enumerate(("win", "win", "loss"))]
    found = overall([*several, trial("b", "tie")])
    assert found.value == pytest.approx((2 / 3 + 0) / 2)
    assert (found.scored, found.wins, found.losses, found.ties) == (2, 2, 1, 1)


def test_cases_of_a_group_are_one_observation() -> None:
    found = overall([trial(f"c{n}", "win", group=f"g{n % 6}") for n in range(12)])
    assert found.clusters == 6
    alone = overall([trial(f"c{n}", "win") for n in range(12)])
    assert found.interval is not None
    assert alone.interval is not None
    assert found.interval.low < alone.interval.low


@pytest.mark.parametrize(
    ("outcomes", "bounds", "outcome"),
    [
        (["win", "loss"], {"min_win_rate": 0.5}, "passed"),
        (["win", "loss", "tie"], {"min_win_rate": 0.5}, "missed"),
        (["win", "loss", "error", "skip"], {"min_win_rate": 0.5}, "passed"),
        (["win"] * 9 + ["loss"], {"min_win_rate": 0.5, "confidence": 0.95}, "passed"),
        (["win"] * 6 + ["loss"] * 4, {"min_win_rate": 0.5, "confidence": 0.95}, "missed"),
        (["skip", "skip"], {"min_win_rate": 0.5}, "missed"),
        (["win", "win", "error"], {"max_error_rate": 0.3}, "missed"),
        (["win", "skip"], {"min_cases": 2}, "missed"),
        (["win"], {"min_win_rate": 0.5, "split": "dev"}, "passed"),
    ],
)
def test_gates(outcomes: list[str], bounds: dict[str, Any], outcome: str) -> None:
    assert gate(trials(*outcomes), **bounds).outcome == outcome


@pytest.mark.parametrize("mode", ["complete", "always"])
@pytest.mark.parametrize("key", ["min_win_rate", "max_error_rate", "min_cases"])
def test_without_a_baseline_nothing_is_decided(mode: str, key: str) -> None:
    found = gate(trials("skip"), baseline="", mode=mode, **{key: 1})
    assert (found.outcome, found.value) == ("not decided", None)
    assert "--agent-eval-baseline RUN" in gate_text(found)


def test_what_is_said() -> None:
    results = trials(*["win"] * 7, *["loss"] * 3, *["tie"] * 2, "skip", "error")
    said = lines(summary(results, min_win_rate=0.5))
    expected = (
        "win rate 0.58 [0.32, 0.81] over 12 cases: 7 wins, 3 losses, 2 ties against run-1, "
        "12 of 13 scored, 1 judge error, 1 skipped"
    )
    assert expected in said
    assert "GATE pairwise min_win_rate >= 0.5: 0.58 [0.32, 0.81] over 12 cases -> passed" in said
    assert "12 cases cannot tell on which side of 0.5 the win rate is" in said
    assert "passed:" not in lines(summary(trials("win", "win")))
    (suite,) = summary(results).suites
    assert suite.pairwise is not None
    assert pairwise_property("shop", suite.pairwise, "run-1") == (
        "agent_eval.pairwise.shop",
        expected,
    )
    assert comparison(suite.info, results) == suite.pairwise
    assert "1 win, 1 loss, 1 tie" in aggregate_text(overall(trials("win", "loss", "tie")))


def test_that_nothing_was_compared_is_one_line() -> None:
    said = lines(summary(trials("skip", "skip"), baseline=""))
    assert said.count("pairwise") == 1
    assert "pairwise: skipped, no run to compare with is named" in said
    told = lines(summary(trials("skip", "skip")))
    assert "no case was scored, 2 skipped" in told


def test_in_files() -> None:
    data = summary(trials("win", "win", "loss", "tie", "error", "skip")).to_yaml_dict("run-2")
    assert data["pairwise"] == {
        "run_b": "run-1",
        "cases_compared": 4,
        "wins_a": 2,
        "wins_b": 1,
        "ties": 1,
        "errors": 1,
        "skipped": 1,
        "win_rate": 0.5,
        "interval": wilson(2, 4).to_dict(),  # type: ignore[union-attr]
    }
    judge = data["judges"]["pairwise"]
    assert (judge["mean"], judge["pass_rate"], judge["win_rate"]) == (None, None, 0.5)
    assert (judge["wins"], judge["losses"], judge["ties"]) == (2, 1, 1)
    assert "pairwise" not in summary(trials("skip")).to_yaml_dict()
