"""A judge beside its human labels: what is compared, what is left out, and the word for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.calibration import Calibration, calibrate
from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.results import TrialResult, Value, Verdict


def trial(case: str, value: Value = None, **more: Any) -> TrialResult:
    verdict = Verdict("j", value, error=more.pop("error", ""), skipped=more.pop("skipped", False))
    return TrialResult(
        suite="s",
        case=case,
        split=more.pop("split", "dev"),
        status=more.pop("status", "passed"),
        verdicts=more.pop("verdicts", (verdict,)),
        **more,
    )


def half(n: int) -> dict[str, bool]:
    return {f"c{i:02d}": i % 2 == 0 for i in range(n)}


def agreeing(labels: Mapping[str, Value], **more: Any) -> list[TrialResult]:
    return [trial(case, value, **more) for case, value in labels.items()]


def test_a_judge_that_says_what_people_say_is_validated() -> None:
    found = calibrate("j", half(20), agreeing(half(20)))
    assert (found.kind, found.labels, found.compared, found.units) == ("bool", 20, 20, 20)
    assert (found.agreement.value, found.kappa.value, found.chance) == (1.0, 1.0, 0.5)
    assert found.spearman is None
    assert found.validated
    assert found.reason == ""
    assert found.table == ((False, False, 10), (True, True, 10))
    assert found.disagreeing == ()


def test_a_judge_that_may_be_guessing_is_not() -> None:
    labels = half(20)
    results = [trial(case, i % 3 == 0) for i, case in enumerate(labels)]
    found = calibrate("j", labels, results)
    assert not found.validated
    assert found.reason == "the interval includes chance"
    assert sum(cases for _, _, cases in found.table) == 20
    assert len(found.disagreeing) == sum(c for label, value, c in found.table if label != value)


def test_a_judge_that_says_the_contrary_is_not() -> None:
    labels = half(30)
    found = calibrate("j", labels, [trial(case, not label) for case, label in labels.items()])
    assert found.kappa.value == -1.0
    assert not found.validated
    assert found.reason == "it agrees less than chance would"


def test_a_judge_that_always_says_yes_is_not_however_often_it_is_right() -> None:
    labels = {f"c{i:02d}": i > 0 for i in range(30)}
    found = calibrate("j", labels, [trial(case, True) for case in labels])
    assert found.agreement.value == pytest.approx(29 / 30)
    assert found.kappa.value is None
    assert found.reason == "the judge gave the same value everywhere"
    assert not found.validated


def test_numbers_are_decided_by_their_order() -> None:
    labels = {f"c{i:02d}": i % 5 + 1 for i in range(20)}
    lenient = [trial(case, 0.5 * label + 2.5) for case, label in labels.items()]
    found = calibrate("j", labels, lenient)
    assert found.kind == "number"
    assert found.agreement.value == pytest.approx(0.2)  # where both say 5
    assert found.spearman is not None
    assert found.spearman.value == pytest.approx(1.0)
    assert found.deciding is found.spearman
    assert found.validated
    assert found.kappa.value is not None
    assert 0 < found.kappa.value < 1


def test_what_has_no_verdict_is_left_out_and_counted() -> None:
    labels = half(8)
    results = [
        trial("c00", True),
        trial("c01", skipped=True),
        trial("c02", error="it raised"),
        trial("c03", 1),
        trial("c04", status="error", verdicts=()),
        trial("c05", status="skipped", kind="budget", verdicts=()),
        trial("c07", status="failed", verdicts=(Verdict("other", True),)),
        trial("unlabelled", False),
    ]
    found = calibrate("j", labels, results)
    assert found.labels == 8
    assert found.compared == 1
    assert (found.skipped, found.errored, found.unlike, found.not_run) == (2, 2, 1, 2)
    assert found.table == ((True, True, 1),)
    assert not found.validated


def test_labels_without_any_verdict() -> None:
    found = calibrate("j", half(8), [])
    assert (found.compared, found.not_run, found.chance) == (0, 8, None)
    assert found.reason == "no case has a label and a verdict"
    assert found.table == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, True, False], True),
        ([True, False], False),  # a tie is no majority
        ([True, None], True),
        ([2, 5, 3], 3),
        ([2, 3], 2.5),
        ([4, None, None], 4),
    ],
)
def test_the_value_of_several_trials(values: list[Value], expected: Value) -> None:
    label: Any = True if isinstance(expected, bool) else 9
    results = [
        trial("a", value, trial=number, error="" if value is not None else "it raised")
        for number, value in enumerate(values, 1)
    ]
    found = calibrate("j", {"a": label}, results)
    assert found.table == ((label, expected, 1),)


def test_trials_of_a_broken_infrastructure_say_nothing() -> None:
    results = [trial("a", False, status="error"), trial("a", True, trial=2)]
    assert calibrate("j", {"a": True}, results).table == ((True, True, 1),)


def test_a_value_beyond_all_numbers_is_an_error() -> None:
    assert calibrate("j", {"a": 1}, [trial("a", 10**400)]).errored == 1


def test_twins_count_once() -> None:
    labels = half(14)
    alone = calibrate("j", labels, agreeing(labels))
    twins = [trial(case, value, group=f"g{int(case[1:]) // 2}") for case, value in labels.items()]
    found = calibrate("j", labels, twins)
    assert alone.validated
    assert (found.compared, found.units) == (14, 7)
    assert not found.validated
    assert found.reason == "fewer than 8 independent labels (7) exclude nothing"


# -- in the summary -------------------------------------------------------------------------------


def _summary(labels: Mapping[str, Value] | None, said: Mapping[str, Value], **more: Any) -> Any:
    judges = (JudgeInfo("j", "check", gated=True, labels=labels), JudgeInfo("other"))  # type: ignore[arg-type]
    counts = {"dev": len(said), "holdout": 0}
    info = SuiteInfo(
        "s",
        "suite",
        judges=judges,
        thresholds={"j": {"min_pass_rate": 0.4}},
        total=counts,
        selected=counts,
        **more,
    )
    results = [
        trial(case, value, variant=more.get("variant"), verdicts=(Verdict("j", value),))
        for case, value in said.items()
    ]
    return summarise([info], results)


def test_every_number_of_an_unvalidated_judge_says_so() -> None:
    said = {case: i % 3 == 0 for i, case in enumerate(half(20))}
    summary = _summary(half(20), said)
    (suite,) = summary.suites
    assert suite.unvalidated == {"j"}
    data = summary.to_yaml_dict()
    assert data["judges"]["j"]["unvalidated"] is True
    assert data["splits"]["dev"]["j"]["unvalidated"] is True
    assert data["gates"][0]["unvalidated"] is True
    assert all(case["j"]["unvalidated"] is True for case in data["per_case"].values())
    assert data["calibration"]["j"]["validated"] is False
    assert "unvalidated" not in data["judges"]["other"]
    assert all("j (unvalidated)" in claim for claim in suite.claims)
    assert suite.claims


@pytest.mark.parametrize("labels", [None, half(20)])
def test_no_number_of_another_judge_does(labels: Mapping[str, Value] | None) -> None:
    data = _summary(labels, half(20)).to_yaml_dict()
    assert "unvalidated" not in str(data)
    assert ("calibration" in data) == (labels is not None)


def test_each_variant_has_its_own() -> None:
    data = _summary(half(20), half(20), variant="fast").to_yaml_dict()
    assert data["variants"]["fast"]["calibration"]["j"]["validated"] is True


def test_labels_cross_processes_and_files() -> None:
    judge = JudgeInfo("j", labels={"a": True, "b": 2})
    assert JudgeInfo.from_dict(judge.to_dict()) == judge
    assert "labels" not in JudgeInfo("j").to_dict()
    assert JudgeInfo.from_dict({"name": "j", "labels": "nonsense"}).labels is None


def test_what_is_stored_of_it() -> None:
    found: Calibration = calibrate("j", half(20), agreeing(half(20))[:-1])
    data = found.to_dict()
    assert data["compared_cases"] == 19
    assert data["not_run_cases"] == 1
    assert data["kappa"]["value"] == 1.0
    assert data["kappa"]["interval"]["method"] == "Fleiss-Cohen-Everitt, at least wilson"
    assert "spearman" not in data
    numbers = calibrate("j", {"a": 1}, [trial("a", 1)]).to_dict()
    assert numbers["weighted_kappa"]["value"] is None
    assert numbers["spearman"]["reason"] == "the human labels are all alike"
    assert Gate("s", "j", "min_mean", 1, 1, None, 1, "passed", unvalidated=True).to_dict()[
        "unvalidated"
    ]


def test_cases_that_were_shown_as_examples_are_left_out() -> None:
    labels = half(20)
    found = calibrate("j", labels, agreeing(labels), taught={"c00", "c01", "elsewhere"})
    assert (found.labels, found.compared, found.taught) == (20, 18, 2)
    assert found.to_dict()["taught_cases"] == 2
    info = JudgeInfo("j", labels=labels, taught=frozenset({"c03"}))
    suite = SuiteInfo.from_dict(SuiteInfo("s", "s", judges=(info,)).to_dict())
    ((one,),) = [part.calibrations for part in summarise([suite], agreeing(labels)).suites]
    assert (one.compared, one.taught) == (19, 1)
    nothing = calibrate("j", labels, agreeing(labels), taught=labels)
    assert (nothing.compared, nothing.validated) == (0, False)
