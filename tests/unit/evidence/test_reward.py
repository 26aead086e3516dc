"""The reward of a trial."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.reward import (
    Reward,
    RewardRule,
    aggregate_rewards,
    normalised,
    reward_of,
)
from pytest_agent_eval.results import TrialResult, Verdict
from pytest_agent_eval.suite.models.judge import JudgeConfig
from pytest_agent_eval.suite.models.reward import RewardConfig

JUDGES: list[dict[str, Any]] = [
    {"name": "safe", "check": "return True", "feedback_type": "bool"},
    {"name": "tone", "llm_rubric": "?", "score_range": [0, 10]},
    {"name": "depth", "llm_rubric": "?"},
    {"name": "speed", "check": "return 1", "feedback_type": "float"},
]


def rule(judges: list[dict[str, Any]] | None = None, **block: Any) -> RewardRule:
    made = [JudgeConfig.model_validate(one) for one in (judges or JUDGES)]
    return RewardRule.of(RewardConfig.model_validate(block), made)


def verdicts(**values: Any) -> list[Verdict]:
    """``error`` and ``skip`` are no values."""
    made: dict[Any, dict[str, Any]] = {"error": {"error": "it raised"}, "skip": {"skipped": True}}
    return [
        Verdict(name, **made[value]) if value in ("error", "skip") else Verdict(name, value)
        for name, value in values.items()
    ]


@pytest.mark.parametrize(
    ("block", "values", "reward"),
    [
        # One judge: cut off, or normalised on request; no gate unless asked for.
        ({"judge": "speed"}, {"safe": False, "speed": 0.4}, 0.4),
        ({"judge": "speed"}, {"speed": 7}, 1.0),
        ({"judge": "speed"}, {"speed": -1}, 0.0),
        ({"judge": "safe"}, {"safe": True}, 1.0),
        ({"judge": "tone", "normalize": True}, {"tone": 4}, 0.4),
        ({"judge": "tone", "normalize": True, "gate": True}, {"safe": False, "tone": 4}, 0.0),
        # Its own scale, then that of the block, then 1 to 5.
        ({"judge": "depth", "normalize": True}, {"depth": 4}, 0.75),
        ({"judge": "depth", "normalize": True, "score_range": [0, 8]}, {"depth": 4}, 0.5),
        ({"judge": "tone", "normalize": True, "score_range": [0, 8]}, {"tone": 4}, 0.4),
        # Weighted: skipped judges leave both sums.
        ({"weights": {"tone": 3, "safe": 1}}, {"safe": True, "tone": 5}, 0.625),
        ({"weights": {"tone": 3, "depth": 1}}, {"safe": True, "tone": "skip", "depth": 3}, 0.5),
        ({"weights": {"tone": 1}}, {"safe": False, "tone": 10}, 0.0),
        ({"weights": {"tone": 1}, "gate": False}, {"safe": False, "tone": 10}, 1.0),
        ({"weights": {"speed": 1}, "raw": ["speed"]}, {"safe": True, "speed": 0.25}, 0.25),
        ({"weights": {"speed": 1}}, {"safe": True, "speed": 2}, 0.25),
        ({"weights": {"tone": 1, "depth": 0}}, {"safe": True, "tone": 5, "depth": "error"}, 0.5),
        ({"weights": {"tone": 5e-324}}, {"safe": True, "tone": 5}, 0.5),
        ({"weights": {"tone": 1e308, "depth": 1e308}}, {"safe": True, "tone": 5, "depth": 3}, 0.5),
        ({}, {"safe": True, "tone": 5, "depth": 5, "speed": 1}, 0.625),
        # A formula.
        ({"formula": "0.5 * tone + 0.5 * depth"}, {"safe": True, "tone": 5, "depth": 5}, 0.75),
        ({"formula": "tone - 2"}, {"safe": True, "tone": 5}, 0.0),
        ({"formula": "9 * tone"}, {"safe": True, "tone": 5}, 1.0),
        ({"formula": "x = [tone, depth]\nmean(x)"}, {"safe": True, "tone": 5, "depth": 5}, 0.75),
        ({"formula": "a, b = tone, 2\na / b"}, {"safe": True, "tone": 10}, 0.5),
        ({"formula": "tone = tone / 2\ntone"}, {"safe": True, "tone": 10}, 0.5),
        ({"formula": "tone if safe else depth"}, {"safe": True, "tone": 5, "depth": "skip"}, 0.5),
        ({"formula": "mean([])"}, {"safe": True}, 0.0),
        ({"formula": "min(tone, 0.1) if not safe else 1"}, {"safe": True, "tone": 1}, 1.0),
        ({"formula": "speed", "raw": ["speed"]}, {"safe": True, "speed": 0.1}, 0.1),
        # The gate is certain as soon as one is false.
        ({"formula": "tone"}, {"safe": False, "tone": "error"}, 0.0),
    ],
)
def test_rewards(block: dict[str, Any], values: dict[str, Any], reward: float) -> None:
    found = reward_of(rule(**block), verdicts(**values))
    assert found.value == pytest.approx(reward)
    assert not found.reason


@pytest.mark.parametrize(
    ("block", "values", "reason"),
    [
        ({"judge": "tone"}, {"tone": "error"}, "judge tone is in error"),
        ({"judge": "tone"}, {"tone": "skip"}, "judge tone was skipped"),
        ({"judge": "tone"}, {}, "judge tone gave no verdict"),
        (
            {"weights": {"tone": 1, "depth": 1}},
            {"safe": True, "tone": "error", "depth": 5},
            "error",
        ),
        ({"weights": {"tone": 1}}, {"safe": True, "tone": "skip"}, "every judge with a weight was"),
        ({"formula": "tone + depth"}, {"safe": True, "tone": 5}, "judge depth gave no verdict"),
        ({"formula": "1 / tone"}, {"safe": True, "tone": 0}, "the formula raised ZeroDivision"),
        ({"formula": "[tone]"}, {"safe": True, "tone": 0}, "the formula comes to [0.0], which"),
        ({"formula": "tone"}, {"safe": "error", "tone": 5}, "safe is in error, and it may be one"),
        ({"formula": "tone"}, {"tone": 5}, "judge safe gave no verdict, and it may be one"),
    ],
)
def test_no_reward_where_a_needed_value_is_missing(
    block: dict[str, Any], values: dict[str, Any], reason: str
) -> None:
    found = reward_of(rule(**block), verdicts(**values))
    assert found.value is None
    assert reason in found.reason


def test_a_skipped_or_numeric_judge_does_not_close_the_gate() -> None:
    gated = rule(weights={"tone": 1})
    assert reward_of(gated, verdicts(safe="skip", tone=5)) == Reward(0.5)
    assert reward_of(gated, verdicts(safe=True, tone=5, depth="error")) == Reward(0.5)


def test_the_judge_that_compares_runs_has_no_part() -> None:
    judges = [*JUDGES, {"name": "pairwise", "prompt": "?"}]
    found = reward_of(rule(judges), verdicts(safe=True, tone=5, depth=3, speed=3, pairwise=-1))
    assert found == Reward(0.625)


numbers = st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False)
values = st.fixed_dictionaries(
    {
        "safe": st.sampled_from([True, False, "skip", "error"]),
        "tone": numbers,
        "depth": numbers | st.sampled_from([True, "skip", "error"]),
        "speed": numbers,
    }
)
weights = st.fixed_dictionaries(
    {name: st.floats(0, 1e300) for name in ("safe", "tone", "depth", "speed")}
).filter(lambda found: any(found.values()))
blocks = st.one_of(
    st.builds(lambda w, raw: {"weights": w, "raw": raw}, weights, st.sampled_from([[], ["tone"]])),
    st.builds(
        lambda name, yes: {"judge": name, "normalize": yes},
        st.sampled_from(["safe", "tone", "depth"]),
        st.booleans(),
    ),
    st.sampled_from(
        ["tone * 1000000 - depth", "tone / depth", "speed // depth % 3", "sum([tone, safe]) - 9"]
    ).map(lambda formula: {"formula": formula}),
)


@given(blocks, values)
def test_a_reward_is_between_0_and_1_or_says_why_not(
    block: dict[str, Any], given_values: dict[str, Any]
) -> None:
    found = reward_of(rule(**block), verdicts(**given_values))
    if found.value is None:
        assert found.reason
    else:
        assert 0.0 <= found.value <= 1.0
        assert not found.reason


@given(weights, st.floats(0, 10), st.floats(0, 10), st.floats(1, 5))
def test_a_weighted_reward_grows_with_a_value(
    given_weights: dict[str, float], one: float, other: float, depth: float
) -> None:
    low, high = sorted((one, other))
    found = [
        reward_of(
            rule(weights=given_weights), verdicts(safe=True, tone=tone, depth=depth, speed=3)
        ).value
        for tone in (low, high)
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0] <= found[1] + 1e-12


@given(blocks, values)
def test_a_false_boolean_behind_a_gate_makes_it_0(
    block: dict[str, Any], given_values: dict[str, Any]
) -> None:
    gated = rule(**block, gate=True)
    assert reward_of(gated, verdicts(**{**given_values, "safe": False})) == Reward(0.0)


@given(numbers, st.floats(-1e308, 1e308), st.floats(-1e308, 1e308))
def test_normalising_stays_on_the_scale(value: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    if low == high:
        return
    assert 0.0 <= normalised(value, (low, high)) <= 1.0
    assert (normalised(low, (low, high)), normalised(high, (low, high))) == (0.0, 1.0)
    assert math.isclose(normalised(7, (-3, 17)), 0.5)


def test_rewards_of_trials_are_averaged_by_case() -> None:
    def trial(case: str, reward: float | None, reason: str = "", **more: Any) -> TrialResult:
        more = {"split": "dev", "status": "passed", **more}
        return TrialResult("s", case, reward=reward, reward_reason=reason, **more)

    found = aggregate_rewards(
        [
            trial("a", 1.0),
            trial("a", 0.0, trial=2),
            trial("b", 0.9),
            trial("c", None, "judge x was skipped"),
            trial("d", 0.7, split="holdout"),
            trial("e", None, status="error", split="holdout"),
        ]
    )
    assert [(one.split, one.value, one.scored, one.skipped) for one in found] == [
        ("dev", pytest.approx(0.7), 2, 1),
        ("holdout", 0.7, 1, 0),
        ("all", pytest.approx(0.7), 3, 1),
    ]
    assert found[2].interval is not None
    assert found[2].interval.low >= 0
    assert aggregate_rewards([trial("a", None)]) == ()
