from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.aggregate import Aggregate, JudgeInfo, aggregate
from pytest_agent_eval.evidence.intervals import wilson
from pytest_agent_eval.results import Status, TrialResult, Value, Verdict

J = JudgeInfo("j", "check")
ERROR, SKIP = "error", "skip"


def verdict(value: Any, judge: str = "j") -> Verdict:
    if value == ERROR:
        return Verdict(judge, error="it raised")
    if value == SKIP:
        return Verdict(judge, skipped=True)
    return Verdict(judge, value)


def trial(case: str, value: Any, **more: Any) -> TrialResult:
    more = {"split": "dev", "status": "passed", **more}
    return TrialResult("s", case, verdicts=(verdict(value),), **more)


def overall(results: list[TrialResult], judge: JudgeInfo = J) -> Aggregate:
    (found,) = [a for a in aggregate(results, [judge]) if a.split == "all"]
    return found


def cases(*values: Value | str, **more: Any) -> list[TrialResult]:
    return [trial(f"case-{index}", value, **more) for index, value in enumerate(values)]


def test_booleans_make_a_pass_rate() -> None:
    found = overall(cases(True, True, False, True))
    assert (found.kind, found.value, found.passed) == ("rate", 0.75, 3)
    assert found.interval == wilson(3, 4)
    assert (found.cases, found.scored, found.clusters, found.trials) == (4, 4, 4, 1)


def test_numbers_make_a_mean() -> None:
    found = overall(cases(3, 4, 5))
    assert (found.kind, found.value) == ("mean", 4.0)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(1.5158622882496697)


def test_booleans_and_numbers_make_neither() -> None:
    found = overall(cases(True, 4))
    assert (found.kind, found.value, found.interval) == ("mixed", None, None)
    assert found.no_interval == "booleans and numbers are mixed"
    assert found.scored == 2


def test_errors_and_skips_leave_the_rate_and_are_counted() -> None:
    found = overall(cases(True, False, ERROR, SKIP, SKIP))
    assert (found.value, found.cases, found.scored) == (0.5, 5, 2)
    assert (found.errored, found.skipped) == (1, 2)
    assert found.error_rate == pytest.approx(1 / 3)


def test_one_missing_score_among_five_leaves_the_mean_over_four() -> None:
    found = overall(cases(2, 4, ERROR, 4, 2))
    assert (found.value, found.scored, found.errored) == (3.0, 4, 1)


def test_a_judge_without_scores_has_no_value() -> None:
    found = overall(cases(ERROR, SKIP))
    assert (found.kind, found.value, found.error_rate) == ("none", None, 1.0)
    assert found.no_interval == "no case was scored"
    assert overall(cases(SKIP)).error_rate is None


def test_infrastructure_errors_are_in_no_rate() -> None:
    results = [*cases(True, True), trial("broken", False, status="error", kind="infrastructure")]
    found = overall(results)
    assert (found.value, found.cases) == (1.0, 2)


def test_verdicts_of_unknown_judges_are_left_out() -> None:
    result = TrialResult("s", "c", "dev", "passed", verdicts=(Verdict("other", False),))
    assert overall([result]).cases == 0


def test_every_half_and_both_together() -> None:
    results = [
        trial("a", True, split="dev"),
        trial("b", False, split="dev"),
        trial("c", True, split="holdout"),
    ]
    found = {a.split: (a.value, a.scored) for a in aggregate(results, [J])}
    assert found == {"dev": (0.5, 2), "holdout": (1.0, 1), "all": (pytest.approx(2 / 3), 3)}


def test_one_half_alone_is_everything() -> None:
    dev, both = aggregate(cases(True, False), [J])
    assert (dev.split, both.split) == ("dev", "all")
    assert dev.interval == both.interval


def test_trials_are_averaged_before_cases_are() -> None:
    results = [trial("a", value, trial=index) for index, value in enumerate([1, 1, 1, 1])]
    found = overall([*results, trial("b", 5)])
    assert found.value == 3.0
    assert found.scored == 2


def test_trials_that_disagree_count_for_what_their_spread_is_worth() -> None:
    results = [
        trial(f"case-{case}", (case + number) % 3 > 0, trial=number)
        for case in range(12)
        for number in (1, 2, 3)
    ]
    found = overall(results)
    assert found.value == pytest.approx(2 / 3)
    # Each case passed 2 of 3: no case differs, and the interval is still that of 36 outcomes.
    assert found.interval is not None
    assert found.interval.method == "wilson, 12 clusters worth 36 cases"
    assert found.interval.low == pytest.approx(wilson(24, 36).low)  # type: ignore[union-attr]
    assert (found.flaky, found.trials, found.passed) == (12, 3, 0)
    assert (found.pass_at_k, found.pass_hat_k) == (1.0, 0.0)


def test_trials_that_agree_are_plain_cases() -> None:
    results = [trial(f"c{case}", case > 1, trial=t) for case in range(8) for t in (1, 2)]
    found = overall(results)
    assert found.interval == wilson(6, 8)
    assert (found.pass_at_k, found.pass_hat_k, found.flaky) == (0.75, 0.75, 0)


def test_an_error_in_one_of_two_trials_is_half_an_error() -> None:
    results = [trial("a", True), trial("a", ERROR, trial=2), trial("b", True)]
    found = overall(results)
    assert (found.scored, found.errored, found.error_rate) == (2, 1, 0.25)


def test_groups_of_one_case_are_no_clusters() -> None:
    results = [trial(f"c{i}", i % 2 == 0, group=f"g{i}") for i in range(10)]
    found = overall(results)
    assert found.interval == wilson(5, 10)


def test_groups_widen_the_interval_of_a_rate() -> None:
    results = [trial(f"c{i}", i % 4 < 2, group=f"g{i // 2}") for i in range(80)]
    found = overall(results)
    single = wilson(40, 80)
    assert found.interval is not None
    assert found.interval.method == "wilson, 40 clusters"
    assert found.interval.low == pytest.approx(wilson(20, 40).low)  # type: ignore[union-attr]
    assert found.interval.high - found.interval.low > 1.2 * (single.high - single.low)  # type: ignore[union-attr]


def test_too_few_groups_give_no_interval_and_say_why() -> None:
    results = [trial(f"c{i}", i > 0, group=f"g{i // 2}") for i in range(8)]
    found = overall(results)
    assert (found.interval, found.no_interval) == (None, "fewer than 5 independent groups")


def test_groups_in_a_mean() -> None:
    results = [trial(f"c{i}", float(i // 2), group=f"g{i // 2}") for i in range(20)]
    found = overall(results)
    assert found.interval is not None
    assert found.interval.method == "t over 10 groups"
    assert overall(results[:18]).no_interval == "fewer than 10 independent groups"


def test_trials_of_few_cases_give_no_interval() -> None:
    results = [trial(f"c{c}", t > c, trial=t) for c in range(4) for t in (1, 2, 3)]
    assert overall(results).no_interval == "fewer than 5 independent groups"
    results += [trial("c4", t > 1, trial=t) for t in (1, 2, 3)]
    assert overall(results).interval is not None


def test_a_group_and_a_case_of_one_name_are_two_clusters() -> None:
    results = [trial("x", True), trial("a", True, group="x"), trial("b", True, group="x")]
    assert overall(results).clusters == 2


def test_variants_of_a_case_are_one_cluster() -> None:
    results = [trial(f"c{i}", i > 0, variant=v) for i in range(6) for v in ("old", "new")]
    found = overall(results)
    assert (found.scored, found.clusters) == (12, 6)


def test_identical_numbers_have_an_interval_only_on_a_known_scale() -> None:
    results = cases(*[5] * 20)
    assert overall(results).interval is None
    assert overall(results).no_interval == "all 20 values are 5"
    known = overall(results, JudgeInfo("j", score_range=(1, 5)))
    assert known.interval is not None
    assert 4 < known.interval.low < known.interval.high == 5


@pytest.mark.parametrize("value", [1e300, 10**400, -(10**400)])
def test_a_value_too_large_to_average_is_said_so(value: float) -> None:
    found = overall(cases(3, value, 1e-3))
    assert (found.kind, found.value) == ("mean", None)
    assert found.no_interval == "a value is too large to average"


values = st.one_of(st.booleans(), st.sampled_from([ERROR, SKIP]))
tables = st.lists(
    st.tuples(values, st.sampled_from(["dev", "holdout"]), st.none() | st.sampled_from("abcdefg")),
    max_size=40,
)


@given(tables, st.randoms(use_true_random=False))
def test_invariants(table: list[tuple[Any, str, str | None]], rng: random.Random) -> None:
    results = [
        trial(f"c{index}", value, split=split, group=group)
        for index, (value, split, group) in enumerate(table)
    ]
    found = aggregate(results, [J])
    shuffled = list(results)
    rng.shuffle(shuffled)
    assert aggregate(shuffled, [J]) == found
    halves = [a for a in found if a.split != "all"]
    both = found[-1]
    for field in ("cases", "scored", "errored", "skipped", "passed"):
        assert getattr(both, field) == sum(getattr(a, field) for a in halves)
    for one in found:
        assert one.scored + one.errored + one.skipped == one.cases
        assert (one.interval is None) == bool(one.no_interval)
        assert (one.value is None) == (one.scored == 0)
        if one.interval and one.value is not None:
            assert 0 <= one.interval.low < one.interval.high <= 1
            assert one.value == pytest.approx(one.passed / one.scored)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_a_mean_is_the_mean(numbers: list[int]) -> None:
    found = overall(cases(*numbers))
    assert found.value == pytest.approx(math.fsum(numbers) / len(numbers))


def test_what_summary_yaml_shows() -> None:
    rate = overall(cases(True, True, False, ERROR)).to_dict()
    assert rate["mean"] == rate["pass_rate"] == pytest.approx(2 / 3)
    assert (rate["scored_cases"], rate["errored_cases"], rate["skipped_cases"]) == (3, 1, 0)
    mean = overall(cases(4, 4)).to_dict()
    assert (mean["mean"], mean["pass_rate"]) == (4.0, None)
    assert mean["no_interval"] == "all 2 values are 4"
    repeated = overall([trial("a", True), trial("a", False, trial=2)]).to_dict()
    assert (repeated["trials"], repeated["flaky_cases"]) == (2, 1)
    assert (repeated["pass_at_k"], repeated["pass_hat_k"]) == (1.0, 0.0)
    grouped = overall([trial("a", 1, group="g"), trial("b", 2, group="g")]).to_dict()
    assert grouped["clusters"] == 1


def test_a_judge_survives_its_mapping() -> None:
    for judge in (J, JudgeInfo("k", "llm", (1, 5), True)):
        assert JudgeInfo.from_dict(judge.to_dict()) == judge


STATUSES: tuple[Status, ...] = ("passed", "failed", "tolerated", "skipped")


@pytest.mark.parametrize("status", STATUSES)
def test_all_other_statuses_count(status: Status) -> None:
    assert overall([trial("a", True, status=status)]).scored == 1
