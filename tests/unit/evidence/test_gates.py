from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.aggregate import JudgeInfo, scores_by_case
from pytest_agent_eval.evidence.gates import Coverage, Gate, GateMode, decide_gates
from pytest_agent_eval.results import TrialResult, Verdict

JUDGES = (JudgeInfo("j", score_range=None),)


def results(*values: Any, split: str = "dev") -> list[TrialResult]:
    verdicts = [
        Verdict("j", error="raised")
        if value == "error"
        else Verdict("j", skipped=True)
        if value == "skip"
        else Verdict("j", value)
        for value in values
    ]
    return [
        TrialResult("s", f"{split}-{index}", split, "passed", verdicts=(verdict,))
        for index, verdict in enumerate(verdicts)
    ]


def full(found: list[TrialResult]) -> Coverage:
    counts = {half: sum(1 for r in found if r.split == half) for half in ("dev", "holdout")}
    return Coverage(counts, counts, counts)


def decide(
    found: list[TrialResult],
    coverage: Coverage | None = None,
    mode: GateMode = "complete",
    judges: tuple[JudgeInfo, ...] = JUDGES,
    **keys: Any,
) -> tuple[Gate, ...]:
    scores = scores_by_case(found, judges)
    return decide_gates("s", {"j": keys}, judges, scores, coverage or full(found), mode=mode)


def outcome(found: list[TrialResult], **keys: Any) -> tuple[str, str]:
    (gate,) = decide(found, **keys)
    return gate.outcome, gate.reason


@pytest.mark.parametrize(
    ("values", "keys", "expected"),
    [
        ([True] * 9 + [False], {"min_pass_rate": 0.9}, "passed"),
        ([True] * 9 + [False], {"min_pass_rate": 0.91}, "missed"),
        ([True] * 9 + [False], {"min_mean": 0.9}, "passed"),
        ([True] * 7 + [False] * 3, {"min_pass_rate": 0.7}, "passed"),
        ([3, 4], {"min_mean": 3.5}, "passed"),
        ([3, 4], {"min_mean": 3.51}, "missed"),
        ([0.1, 0.2, 0.3], {"min_mean": 0.2}, "passed"),
        ([True, True, True, "error"], {"max_error_rate": 0.25}, "passed"),
        ([True, True, True, "error"], {"max_error_rate": 0.24}, "missed"),
        ([True, "skip", "skip", "error"], {"max_error_rate": 0.5}, "passed"),
        ([True, True], {"min_cases": 2}, "passed"),
        ([True, "error"], {"min_cases": 2}, "missed"),
    ],
)
def test_bounds(values: list[Any], keys: dict[str, Any], expected: str) -> None:
    assert outcome(results(*values), **keys)[0] == expected


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_equality_passes(kn: tuple[int, int]) -> None:
    k, n = kn
    found = [
        *results(*[True] * min(k, 40), *[False] * min(n - k, 40)),
    ]
    passed, total = min(k, 40), len(found)
    bound = passed / total
    assert outcome(found, min_pass_rate=bound)[0] == "passed"
    assert outcome(found, min_pass_rate=bound + 1e-9)[0] == "missed"


def test_equality_passes_for_averaged_trials() -> None:
    found = [
        TrialResult("s", f"c{c}", "dev", "passed", trial=t, verdicts=(Verdict("j", t != 1),))
        for c in range(7)
        for t in (1, 2, 3)
    ]
    scores = scores_by_case(found, JUDGES)
    coverage = Coverage({"dev": 7}, {"dev": 7}, {"dev": 7})
    (gate,) = decide_gates("s", {"j": {"min_pass_rate": 2 / 3}}, JUDGES, scores, coverage)
    assert gate.outcome == "passed"


@pytest.mark.parametrize(
    ("values", "key", "reason"),
    [
        ([], "min_mean", "no case has a verdict of this judge"),
        (["skip", "skip"], "min_mean", "no case was scored (2 skipped)"),
        (["error", "skip"], "min_pass_rate", "no case was scored (1 judge error, 1 skipped)"),
        (["error", "error"], "min_pass_rate", "no case was scored (2 judge errors)"),
        (["skip"], "max_error_rate", "no case was scored (1 skipped)"),
        ([3, 4], "min_pass_rate", "the judge gave numbers, which have no pass rate"),
        ([3, True], "min_mean", "the judge gave booleans and numbers"),
        ([3, 1e200], "min_mean", "a value is too large to average"),
    ],
)
def test_a_missing_metric_is_missed_with_the_reason(
    values: list[Any], key: str, reason: str
) -> None:
    keys: dict[str, Any] = {key: 0.0}
    (gate,) = decide(results(*values), **keys)
    assert (gate.outcome, gate.value, gate.reason) == ("missed", None, reason)


def test_confidence_asks_for_the_end_of_the_interval() -> None:
    nine = results(*[True] * 90, *[False] * 10)
    assert outcome(nine, min_pass_rate=0.85) == ("passed", "")
    assert outcome(nine, min_pass_rate=0.85, confidence=0.95) == (
        "missed",
        "the lower end at 95 % does not clear it",
    )
    assert outcome(nine, min_pass_rate=0.82, confidence=0.95) == ("passed", "")


def test_all_of_20_do_not_show_090_but_35_do() -> None:
    keys = {"min_pass_rate": 0.9, "confidence": 0.95}
    assert outcome(results(*[True] * 34), **keys)[0] == "missed"
    assert outcome(results(*[True] * 35), **keys)[0] == "passed"


def test_the_error_rate_needs_the_upper_end() -> None:
    found = results(*[True] * 30)
    assert outcome(found, max_error_rate=0.05)[0] == "passed"
    assert outcome(found, max_error_rate=0.05, confidence=0.95) == (
        "missed",
        "the upper end at 95 % does not clear it",
    )
    assert outcome(found, max_error_rate=0.12, confidence=0.95)[0] == "passed"


def test_confidence_without_an_interval_is_missed() -> None:
    found = results(5, 5, 5)
    assert outcome(found, min_mean=3, confidence=0.9) == (
        "missed",
        "no interval: all 3 values are 5",
    )
    known = (JudgeInfo("j", score_range=(1, 5)),)
    (gate,) = decide(results(*[5] * 30), judges=known, min_mean=4, confidence=0.9)
    assert gate.outcome == "passed"


def test_confidence_does_not_touch_the_number_of_cases() -> None:
    assert outcome(results(True, True), min_cases=2, confidence=0.99) == ("passed", "")


def test_a_split_looks_at_its_half() -> None:
    found = [*results(True, True), *results(False, True, split="holdout")]
    (gate,) = decide(found, min_pass_rate=0.9, split="dev")
    assert (gate.outcome, gate.cases, gate.split) == ("passed", 2, "dev")
    (gate,) = decide(found, min_pass_rate=0.9, split="holdout")
    assert (gate.outcome, gate.value) == ("missed", 0.5)
    (gate,) = decide(found, min_pass_rate=0.75)
    assert (gate.outcome, gate.cases) == ("passed", 4)


def test_keys_come_in_one_order_and_others_are_left_out() -> None:
    keys: dict[str, Any] = {
        "min_cases": 1,
        "max_error_rate": 0.5,
        "min_mean": 0.5,
        "min_pass_rate": None,
    }
    gates = decide(results(True), min_win_rate=0.5, min_median=3, **keys)
    wanted = ["min_mean", "min_win_rate", "max_error_rate", "min_cases"]
    assert [gate.key for gate in gates] == wanted
    assert gates[1].reason == "only pairwise has a win rate"


def coverage(
    total: tuple[int, int],
    selected: tuple[int, int],
    finished: tuple[int, int],
    half: str | None = None,
) -> Coverage:
    counts = [
        dict(zip(("dev", "holdout"), numbers, strict=True))
        for numbers in (total, selected, finished)
    ]
    return Coverage(counts[0], counts[1], counts[2], half)


@pytest.mark.parametrize(
    ("total", "selected", "finished", "split", "gap"),
    [
        ((20, 20), (20, 20), (20, 20), None, ""),
        ((20, 20), (8, 4), (8, 4), None, "12 of 40 cases selected"),
        ((20, 20), (20, 20), (20, 19), None, "39 of 40 cases have a result"),
        ((20, 20), (0, 0), (0, 0), None, "0 of 40 cases selected"),
        # One half alone is no partial selection for a gate on it.
        ((20, 20), (20, 0), (20, 0), None, "20 of 40 cases selected"),
        ((20, 20), (20, 0), (20, 0), "dev", ""),
        ((20, 20), (20, 0), (20, 0), "holdout", "0 of 20 holdout cases selected"),
        ((20, 20), (3, 20), (3, 20), "holdout", ""),
        ((20, 20), (3, 20), (3, 20), None, "23 of 40 cases selected"),
        ((20, 20), (3, 0), (3, 0), None, "3 of 40 cases selected"),
        ((20, 20), (20, 20), (20, 18), "holdout", "18 of 20 holdout cases have a result"),
        ((20, 20), (20, 20), (18, 20), "holdout", ""),
        # The dataset has no holdout case at all: nothing is missing, the metric is.
        ((20, 0), (20, 0), (20, 0), "holdout", ""),
        ((0, 0), (0, 0), (0, 0), None, ""),
    ],
)
def test_what_is_missing(
    total: tuple[int, int],
    selected: tuple[int, int],
    finished: tuple[int, int],
    split: str | None,
    gap: str,
) -> None:
    assert coverage(total, selected, finished).gap(split) == gap


def test_asking_for_a_half_makes_it_all_that_a_gate_is_about() -> None:
    chosen = coverage((20, 20), (20, 0), (20, 0), "dev")
    assert chosen.gap(None) == chosen.gap("dev") == ""
    assert chosen.gap("holdout") == "0 of 20 holdout cases selected"
    assert coverage((20, 20), (3, 0), (3, 0), "dev").gap(None) == "3 of 20 dev cases selected"


def test_gates_can_be_switched_off() -> None:
    whole = coverage((1, 0), (1, 0), (1, 0))
    (gate,) = decide_gates("eval.yaml", {"a": {"min_cases": 1}}, [], {}, whole, mode="never")
    assert (gate.outcome, gate.reason) == ("not decided", "gates are switched off")


def test_a_gate_on_a_half_that_the_dataset_lacks_is_missed() -> None:
    whole = coverage((2, 0), (2, 0), (2, 0))
    (gate,) = decide(results(True, True), whole, min_pass_rate=0.5, split="holdout")
    assert (gate.outcome, gate.reason) == ("missed", "no case has a verdict of this judge")


def test_a_partial_run_does_not_decide_unless_asked_to() -> None:
    found = results(False, False)
    partial = coverage((40, 0), (2, 0), (2, 0))
    (gate,) = decide(found, partial, min_pass_rate=0.5)
    assert (gate.outcome, gate.reason) == ("not decided", "2 of 40 cases selected")
    assert gate.value is None
    (gate,) = decide(found, partial, "always", min_pass_rate=0.5)
    assert (gate.outcome, gate.value) == ("missed", 0.0)


def test_what_summary_yaml_shows() -> None:
    (gate,) = decide(results(True, True), min_pass_rate=0.9, split="dev", confidence=0.9)
    assert gate.operator == ">="
    data = gate.to_dict()
    assert data["interval"]["confidence"] == 0.9
    assert {key: data[key] for key in ("judge", "key", "bound", "outcome", "split")} == {
        "judge": "j",
        "key": "min_pass_rate",
        "bound": 0.9,
        "outcome": "missed",
        "split": "dev",
    }
    (gate,) = decide(results(True, True), max_error_rate=0.1)
    assert gate.operator == "<="
    assert "reason" not in gate.to_dict()
