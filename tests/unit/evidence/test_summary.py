from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.outcomes import case_outcomes, combine_statuses
from pytest_agent_eval.evidence.summary import SuiteInfo, Totals, summarise
from pytest_agent_eval.results import Status, TrialResult, Usage, Verdict

WORKED = Verdict("execution", True, passed=True)


def trial(case: str, *verdicts: Verdict, **more: Any) -> TrialResult:
    more = {"suite": "s", "split": "dev", "status": "passed", "execution": WORKED, **more}
    return TrialResult(case=case, verdicts=verdicts, **more)


def info(cases: int = 0, **more: Any) -> SuiteInfo:
    more = {"key": "s", "name": "answers", "judges": (JudgeInfo("j", "check"),), **more}
    return SuiteInfo(total={"dev": cases}, selected={"dev": cases}, **more)


def passing(number: int, passed: int | None = None) -> list[TrialResult]:
    good = number if passed is None else passed
    return [trial(f"c{i}", Verdict("j", i < good)) for i in range(number)]


def test_all_pass_says_what_the_sample_shows() -> None:
    (suite,) = summarise([info(20)], passing(20)).suites
    assert suite.claims == (
        "j: 20 of 20 passed: the rate is above 0.84 at 95 %; a gate of 0.90 needs 35",
    )


@pytest.mark.parametrize(
    ("number", "bound", "claim"),
    [
        (20, 0.85, "above 0.84 at 95 %; a gate of 0.85 needs 22"),
        (20, 0.8, "above 0.84 at 95 %"),
        (20, 1.0, "above 0.84 at 95 %; a gate of 0.90 needs 35"),
    ],
)
def test_the_claim_looks_at_the_gate(number: int, bound: float, claim: str) -> None:
    suite = info(number, thresholds={"j": {"min_pass_rate": bound}})
    (found,) = summarise([suite], passing(number)).suites
    assert found.claims[0].endswith(claim)


def test_an_interval_around_the_bound_cannot_tell() -> None:
    suite = info(30, thresholds={"j": {"min_pass_rate": 0.9}})
    (found,) = summarise([suite], passing(30, 27)).suites
    cannot_tell = "j: 30 cases cannot tell on which side of 0.9 the rate is: 0.74 to 0.97 at 95 %"
    assert found.claims == (cannot_tell,)
    easier = info(30, thresholds={"j": {"min_pass_rate": 0.8}})
    (found,) = summarise([easier], passing(30, 27)).suites
    assert found.claims[0].endswith("0.74 to 0.97 at 95 %; at 0.90, 62 cases could")
    assert summarise([info(30)], passing(30, 27)).suites[0].claims == ()
    far = info(30, thresholds={"j": {"min_mean": 0.5}})
    assert summarise([far], passing(30, 27)).suites[0].claims == ()


def test_groups_are_what_a_claim_counts() -> None:
    results = [trial(f"c{i}", Verdict("j", True), group=f"g{i // 2}") for i in range(20)]
    (suite,) = summarise([info(20)], results).suites
    assert suite.claims[0].endswith(
        "above 0.72 at 95 %; a gate of 0.80 needs 16 independent groups"
    )


def test_one_suite_is_written_in_the_shape_that_tools_read() -> None:
    results = [
        trial("a", Verdict("j", True, "fine"), usage=Usage(cost_usd=0.5, num_turns=2)),
        trial("b", Verdict("j", error="it raised"), status="failed", kind="judge"),
        trial("c", Verdict("j", skipped=True, rationale="if: false"), status="skipped"),
    ]
    data = summarise([info(3)], results).to_yaml_dict("run-1")
    assert data["run_id"] == "run-1"
    assert data["complete"] is True
    assert data["judges"]["j"]["mean"] == data["judges"]["j"]["pass_rate"] == 1.0
    assert data["judges"]["j"]["scored_cases"] == 1
    assert data["judges"]["j"]["errored_cases"] == 1
    assert data["per_case"] == {
        "a": {"j": {"value": True, "rationale": "fine", "judge_type": "check"}},
        "b": {"j": {"value": None, "rationale": "", "judge_type": "check", "error": "it raised"}},
        "c": {"j": {"value": None, "rationale": "if: false", "judge_type": "check"}},
    }
    assert data["run_metrics"] == {
        "cost_per_turn_usd": 0.25,
        "output_tokens_per_turn": None,
        "cache_hit_rate": None,
        "cost_per_mtok_usd": None,
    }
    assert data["status"] == {"passed": 1, "failed": 1, "skipped": 1}
    assert data["cases"]["b"] == {"status": "failed", "split": "dev", "kind": "judge"}
    assert list(data["splits"]) == ["dev"]
    json.dumps(data, allow_nan=False)


def test_several_suites_are_written_by_key() -> None:
    infos = [info(1), info(1, key="t", name="other")]
    results = [trial("a", Verdict("j", True)), trial("a", Verdict("j", False), suite="t")]
    summary = summarise(infos, [*results, trial("x", suite="gone")])
    data = summary.to_yaml_dict()
    assert list(data["suites"]) == ["s", "t"]
    assert data["suites"]["t"]["judges"]["j"]["mean"] == 0.0
    assert summarise([], []).to_yaml_dict() == {"run_id": "", "complete": True, "suites": {}}


def test_several_trials_of_a_case_are_one_entry() -> None:
    results = [
        trial("a", Verdict("j", True, "yes"), trial=2),
        trial("a", Verdict("j", False, "no"), trial=1, status="failed", record="cases/a/1"),
        trial("b", Verdict("j", 4), trial=1),
        trial("b", Verdict("j", 4), trial=2),
        trial("c", Verdict("j", error="x"), trial=1),
        trial("c", Verdict("j", skipped=True), trial=2),
        trial("d", Verdict("j", 10**400), trial=1),
        trial("d", Verdict("j", 3), trial=2),
    ]
    data = summarise([info(4, pass_rule="any")], results).to_yaml_dict()
    per_case = data["per_case"]
    assert per_case["a"]["j"] == {
        "value": 0.5,
        "rationale": "no",
        "judge_type": "check",
        "trials": [False, True],
    }
    assert per_case["b"]["j"]["value"] == 4
    assert per_case["c"]["j"]["error"] == "x"
    assert per_case["d"]["j"]["value"] is None
    assert data["cases"]["a"] == {
        "status": "passed",
        "split": "dev",
        "trials": ["failed", "passed"],
    }
    assert data["status"] == {"passed": 4}


def test_variants_are_cases_of_their_own() -> None:
    results = [trial("a", Verdict("j", True), variant=v) for v in ("old", "new")]
    infos = [info(1, variant=variant) for variant in ("old", "new")]
    assert list(summarise(infos, results).to_yaml_dict()["per_case"]) == ["a[old]", "a[new]"]


def test_a_case_without_a_result_leaves_the_run_incomplete_and_gates_undecided() -> None:
    suite = info(3, thresholds={"j": {"min_pass_rate": 0.5}})
    summary = summarise([suite], passing(2))
    assert not summary.complete
    (gate,) = summary.gates
    assert (gate.outcome, gate.reason) == ("not decided", "2 of 3 cases have a result")
    assert summary.missed == ()
    (gate,) = summarise([suite], passing(2), gate_mode="always").gates
    assert gate.outcome == "passed"


def test_a_case_that_the_budget_left_out_has_no_result() -> None:
    suite = info(2, thresholds={"j": {"min_pass_rate": 0.5}})
    left = trial("b", status="skipped", kind="budget", execution=None)
    summary = summarise([suite], [trial("a", Verdict("j", True)), left])
    reason = "incomplete: 1 of 2 cases have a result, the session's budget is spent"
    assert (summary.gates[0].outcome, summary.gates[0].reason) == ("not decided", reason)
    assert summary.suites[0].coverage.left_out == {"dev": 1, "holdout": 0}
    assert not summary.complete


def test_a_missed_gate_and_an_interruption_are_seen() -> None:
    suite = info(2, thresholds={"j": {"min_pass_rate": 0.9}})
    summary = summarise([suite], passing(2, 1), interrupted=True)
    assert [gate.judge for gate in summary.missed] == ["j"]
    assert not summary.complete


def test_totals_keep_what_is_unknown_apart() -> None:
    known = Usage(cost_usd=0.1, input_tokens=100, cache_read_tokens=300, output_tokens=100)
    results = [trial("a", usage=known, duration_s=2.0, judging_s=0.5), trial("b", duration_s=1.0)]
    never = trial("c", execution=None, status="error", kind="infrastructure")
    totals = Totals.of([*results, never])
    assert (totals.trials, totals.cost_usd, totals.unknown_costs) == (2, 0.1, 1)
    assert (totals.input_tokens, totals.num_turns) == (100, None)
    assert (totals.duration_s, totals.judging_s) == (3.0, 0.5)
    assert totals.metrics()["cache_hit_rate"] == 0.75
    assert totals.metrics()["cost_per_mtok_usd"] == pytest.approx(500)
    assert Totals.of([never]).cost_usd is None


def test_attempts_that_were_repeated_cost_money_but_do_not_vote() -> None:
    last = trial("a", Verdict("j", True), usage=Usage(cost_usd=0.2))
    first = trial("a", Verdict("j", False), usage=Usage(cost_usd=0.3), status="failed")
    (suite,) = summarise([info(1)], [last], superseded=[first]).suites
    assert suite.totals.cost_usd == pytest.approx(0.5)
    assert suite.statuses == {"passed": 1}
    assert suite.aggregates[0].value == 1.0


def test_a_suite_survives_json() -> None:
    suite = info(
        3,
        thresholds={"j": {"min_mean": 3.5, "split": "dev"}},
        judges=(JudgeInfo("j", "llm", (1, 5), True),),
        without_group=2,
        variant="a",
    )
    assert SuiteInfo.from_dict(json.loads(json.dumps({**suite.to_dict(), "new": 1}))) == suite


@pytest.mark.parametrize(
    ("statuses", "rule", "status"),
    [
        (["passed"], "all", "passed"),
        (["error"], "any", "error"),
        (["passed", "failed"], "all", "failed"),
        (["passed", "failed"], "any", "passed"),
        (["tolerated", "failed"], "any", "tolerated"),
        (["passed", "failed"], "majority", "failed"),
        (["passed", "passed", "failed"], "majority", "passed"),
        (["passed", "tolerated", "failed"], "majority", "tolerated"),
        (["passed", "passed", "failed"], "rate:0.6", "passed"),
        (["passed", "failed", "failed"], "rate:0.34", "failed"),
        (["passed", "tolerated"], "all", "tolerated"),
        (["passed", "error"], "all", "error"),
        (["failed", "error"], "all", "failed"),
        (["passed", "error"], "any", "passed"),
        (["skipped", "error"], "all", "error"),
        (["skipped", "skipped"], "all", "skipped"),
        (["skipped", "passed"], "all", "passed"),
    ],
)
def test_trials_make_a_case(statuses: list[Status], rule: str, status: Status) -> None:
    assert combine_statuses(statuses, rule) == status


@pytest.mark.parametrize(
    ("statuses", "rule", "status"),
    [
        (["passed", "left"], "all", "skipped"),
        (["failed", "left"], "all", "failed"),
        (["passed", "left"], "any", "passed"),
        (["failed", "left"], "any", "skipped"),
        (["tolerated", "left"], "any", "tolerated"),
        (["passed", "passed", "left"], "majority", "passed"),
        (["passed", "failed", "left"], "majority", "skipped"),
        (["failed", "left", "left", "left"], "rate:0.5", "skipped"),
        (["passed", "left", "left", "left"], "rate:0.25", "passed"),
        (["error", "left"], "all", "error"),
        (["left", "left"], "any", "skipped"),
    ],
)
def test_a_case_is_undecided_while_trials_that_were_left_out_could_change_it(
    statuses: list[Any], rule: str, status: Status
) -> None:
    trials = [
        trial(
            "a",
            trial=n,
            **({"status": "skipped", "kind": "budget"} if s == "left" else {"status": s}),
        )
        for n, s in enumerate(statuses, 1)
    ]
    (case,) = case_outcomes(trials, rule)
    assert (case.status, case.left_out) == (status, statuses.count("left"))
    assert not summarise([info(1, pass_rule=rule)], trials).complete


def test_a_rule_that_is_none() -> None:
    with pytest.raises(ValueError, match="none of all, any, majority"):
        combine_statuses(["passed", "failed"], "most")


def test_trials_come_in_their_order_and_cases_in_that_of_the_results() -> None:
    results = [trial("b", trial=2), trial("a"), trial("b", trial=1)]
    first, second = case_outcomes(results, "all")
    assert (first.label, [t.trial for t in first.trials]) == ("b", [1, 2])
    assert second.label == "a"
