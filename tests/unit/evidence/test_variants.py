from __future__ import annotations

import json

import pytest

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.summary import SuiteInfo, Totals, summarise
from pytest_agent_eval.results import TrialResult, Usage, Verdict

WORKED = Verdict("execution", True, passed=True)
JUDGES = (JudgeInfo("j", "check"),)


def info(variant: str | None, *, cases: int = 3, key: str = "s") -> SuiteInfo:
    return SuiteInfo(
        key,
        "answers",
        variant,
        judges=JUDGES,
        thresholds={"j": {"min_cases": 6, "min_pass_rate": 0.5}},
        total={"dev": cases},
        selected={"dev": cases},
    )


def results(variant: str | None, passed: int, key: str = "s") -> list[TrialResult]:
    return [
        TrialResult(
            key,
            f"c{number}",
            "dev",
            variant=variant,
            status="passed" if number < passed else "tolerated",
            execution=WORKED,
            verdicts=(Verdict("j", number < passed),),
            usage=Usage(cost_usd=0.5, num_turns=2),
            duration_s=1.0,
        )
        for number in range(3)
    ]


def test_a_case_in_two_variants_is_not_two_cases() -> None:
    found = [*results("a", 3), *results("b", 0)]
    summary = summarise([info("a"), info("b")], found)
    assert [(g.name, g.key, g.value, g.outcome) for g in summary.gates] == [
        ("j [a]", "min_pass_rate", 1.0, "passed"),
        ("j [a]", "min_cases", 3, "missed"),
        ("j [b]", "min_pass_rate", 0.0, "missed"),
        ("j [b]", "min_cases", 3, "missed"),
    ]
    assert [suite.info.label for suite in summary.suites] == ["answers [a]", "answers [b]"]
    assert [suite.aggregates[0].value for suite in summary.suites] == [1.0, 0.0]


def test_a_variant_alone_is_as_the_suite_without_variants() -> None:
    plain = summarise([info(None)], results(None, 2)).to_yaml_dict()
    varied = summarise([info("a"), info("b")], [*results("a", 2), *results("b", 1)]).to_yaml_dict()
    for name in ("judges", "splits", "status", "coverage", "notes", "usage", "run_metrics"):
        assert varied["variants"]["a"][name] == plain[name], name
    gates = [gate for gate in varied["gates"] if gate.pop("variant") == "a"]
    assert gates == plain["gates"]
    assert "variants" not in plain
    assert not any("variant" in gate for gate in plain["gates"])
    assert list(varied["cases"]) == [f"c{n}[{v}]" for v in "ab" for n in range(3)]
    assert varied["status"] == {"passed": 3, "tolerated": 3}
    assert (varied["usage"]["cost_usd"], varied["usage"]["duration_s"]) == (3.0, 6.0)
    assert varied["run_metrics"]["cost_per_turn_usd"] == pytest.approx(0.25)
    json.dumps(varied, allow_nan=False)


def test_one_variant_that_is_incomplete_leaves_the_others_decided() -> None:
    summary = summarise([info("a"), info("b")], [*results("a", 3), *results("b", 3)[:1]])
    decided = [(gate.variant, gate.outcome) for gate in summary.gates[::2]]
    assert decided == [("a", "passed"), ("b", "not decided")]
    data = summary.to_yaml_dict()
    assert data["complete"] is False
    assert [part["complete"] for part in data["variants"].values()] == [True, False]


def test_suites_with_and_without_variants_are_written_side_by_side() -> None:
    infos = [info("a"), info("b"), info(None, key="t")]
    found = [*results("a", 3), *results("b", 3), *results(None, 1, "t")]
    data = summarise(infos, found).to_yaml_dict()
    assert list(data["suites"]) == ["s", "t"]
    assert list(data["suites"]["s"]["variants"]) == ["a", "b"]
    assert data["suites"]["t"]["judges"]["j"]["pass_rate"] == pytest.approx(1 / 3)


def test_sums_keep_what_is_unknown_apart() -> None:
    known, unknown = Totals(2, 0.5, 1, 10, None, num_turns=3), Totals(1, None, 1)
    assert Totals.sum([known, unknown]) == Totals(3, 0.5, 2, 10, None, num_turns=3)
    assert Totals.sum([unknown]).cost_usd is None
