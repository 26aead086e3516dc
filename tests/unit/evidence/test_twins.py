from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.aggregate import JudgeInfo, case_scores
from pytest_agent_eval.evidence.intervals import wilson
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.evidence.twins import Twins, twins_of
from pytest_agent_eval.results import TrialResult, Value, Verdict

JUDGE = JudgeInfo("j", "check")


def side(
    pair: str, role: str, *values: Value, error: str = "", split: str = "dev"
) -> list[TrialResult]:
    """The trials of one case, one a value; a value of None is skipped, or an error."""
    return [
        TrialResult(
            "s",
            f"{pair}-{role}",
            split,
            "passed",
            group=pair,
            trial=number,
            verdicts=(
                Verdict(
                    "j",
                    value,
                    passed=value if isinstance(value, bool) else None,
                    skipped=value is None and not error,
                    error=error if value is None else "",
                ),
            ),
        )
        for number, value in enumerate(values, 1)
    ]


def found(results: list[TrialResult], pairs: set[str]) -> Twins | None:
    return twins_of(case_scores(results, [JUDGE])["j"], pairs)


sides = st.tuples(
    st.lists(st.booleans(), min_size=1, max_size=4), st.lists(st.booleans(), min_size=1, max_size=4)
)


@given(st.lists(sides, min_size=1, max_size=20))
def test_it_counts_pairs_by_sides_of_which_every_trial_passed(pairs: Any) -> None:
    results = []
    for number, (one, other) in enumerate(pairs):
        results += [*side(f"p{number}", "yes", *one), *side(f"p{number}", "no", *other)]
    twins = found(results, {f"p{number}" for number in range(len(pairs))})
    assert twins is not None
    right = [all(one) + all(other) for one, other in pairs]
    assert (twins.both, twins.one, twins.none) == tuple(right.count(n) for n in (2, 1, 0))
    assert twins.pairs == len(pairs)
    assert twins.interval == wilson(twins.both, twins.pairs)
    assert 0.0 <= twins.interval.low <= twins.value <= twins.interval.high <= 1.0
    data = twins.to_dict()
    assert data["both"] + data["one"] + data["none"] == data["pairs"]


@given(st.booleans(), st.integers(1, 12))
def test_a_constant_answer_scores_nothing(answer: bool, pairs: int) -> None:
    """It is right on one side of each pair, so that its plain rate is one half."""
    results = []
    for number in range(pairs):
        results += [*side(f"p{number}", "yes", answer), *side(f"p{number}", "no", not answer)]
    names = tuple(f"p{number}" for number in range(pairs))
    info = SuiteInfo("s", "twins", judges=(JUDGE,), pairs=names)
    aggregate = summarise([info], results).suites[0].aggregates[-1]
    assert aggregate.value == 0.5
    assert aggregate.twins is not None
    assert (aggregate.twins.value, aggregate.twins.one) == (0.0, pairs)


@given(st.lists(sides, min_size=1, max_size=12), st.randoms())
def test_the_order_does_not_matter(pairs: Any, random: Any) -> None:
    results = []
    for number, (one, other) in enumerate(pairs):
        results += [*side(f"p{number}", "yes", *one), *side(f"p{number}", "no", *other)]
    names = {f"p{number}" for number in range(len(pairs))}
    before = found(results, names)
    random.shuffle(results)
    assert found(results, names) == before


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([], id="its case did not run"),
        pytest.param(side("p", "no", None), id="its judge was skipped"),
        pytest.param(side("p", "no", None, error="it raised"), id="its judge raised"),
        pytest.param(side("p", "no", True, None, error="it raised"), id="one trial of it raised"),
    ],
)
def test_a_pair_counts_only_with_both_sides(other: list[TrialResult]) -> None:
    assert found([*side("p", "yes", True), *other], {"p"}) is None


def test_an_error_does_not_save_a_side_that_failed() -> None:
    twins = found([*side("p", "yes", True), *side("p", "no", False, None, error="raised")], {"p"})
    assert twins is not None
    assert (twins.both, twins.one, twins.none) == (0, 1, 0)


def test_only_declared_pairs_count() -> None:
    """Two of three levels that a selection left are no pair, nor are two cases without a group."""
    results = [*side("levels", "1", True), *side("levels", "2", True)]
    assert found(results, set()) is None
    plain = [
        TrialResult("s", name, "dev", "passed", verdicts=(Verdict("j", True),)) for name in "ab"
    ]
    assert found(plain, {"a", "b"}) is None


def test_they_stand_beside_the_rate_of_each_split() -> None:
    results = [
        *side("p", "yes", True),
        *side("p", "no", True),
        *side("q", "yes", True, split="holdout"),
        *side("q", "no", False, split="holdout"),
    ]
    info = SuiteInfo("s", "twins", judges=(JUDGE,), pairs=("p", "q"))
    data = summarise([info], results).to_yaml_dict()
    shown = {half: data["splits"][half]["j"]["twins"]["value"] for half in ("dev", "holdout")} | {
        "all": data["judges"]["j"]["twins"]["value"]
    }
    assert shown == {"dev": 1.0, "holdout": 0.0, "all": 0.5}
    assert (
        "twins"
        not in summarise([SuiteInfo("s", "none", judges=(JUDGE,))], results).to_yaml_dict()[
            "judges"
        ]["j"]
    )
    numbers = [*side("p", "yes", 4), *side("p", "no", 5)]
    assert "twins" not in summarise([info], numbers).to_yaml_dict()["judges"]["j"]
