from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.changes import changes
from pytest_agent_eval.evidence.comparison import Comparison, compare
from pytest_agent_eval.evidence.summary import Against, SuiteInfo, SuiteSummary, Summary, summarise
from pytest_agent_eval.reports.comparison import comparison_lines, comparison_text
from pytest_agent_eval.results import TrialResult, Usage, Verdict

JUDGES = (JudgeInfo("j"), JudgeInfo("k", score_range=(1, 5)))


def run(*values: Any, judge: str = "j", **more: Any) -> list[TrialResult]:
    """Cases c00, c01, ... with one verdict each; a list gives a case several trials."""
    found = []
    for index, value in enumerate(values):
        for number, one in enumerate(value if isinstance(value, list) else [value], start=1):
            verdict = Verdict(judge, error="raised") if one == "error" else Verdict(judge, one)
            fields = {"split": "dev", "trial": number, **more}
            if "groups" in fields:
                fields["group"] = f"g{index // fields.pop('groups')}"
            found.append(
                TrialResult("s", f"c{index:02}", status="passed", verdicts=(verdict,), **fields)
            )
    return found


def compared(new: list[TrialResult], old: list[TrialResult], judge: str = "j") -> Comparison:
    [found] = [c for c in compare(new, old, JUDGES) if (c.judge, c.split) == (judge, "all")]
    return found


def test_a_run_compared_with_itself_shows_no_difference() -> None:
    for values in ([True] * 20, [True, False] * 10, [False] * 3):
        found = compared(run(*values), run(*values))
        assert (found.outcome, found.difference, found.p) == ("no difference shown", 0.0, 1.0)
        assert found.interval is not None
        assert found.interval.low < 0.0 < found.interval.high
    numbers = run(1, 5, 3, 4, judge="k")
    assert compared(numbers, numbers, "k").outcome == "no difference shown"


def test_one_case_of_twenty_shows_nothing_and_says_what_would() -> None:
    found = compared(run(*[False] + [True] * 19), run(*[True] * 20))
    assert found.outcome == "no difference shown"
    assert found.p == 1.0
    assert found.smallest == pytest.approx(0.3)
    assert found.regressed == ("c00",)
    assert comparison_text(found) == (
        "no difference shown: 1.00 -> 0.95, difference -0.05 [-0.24, +0.12] over 20 cases, p 1; "
        "the smallest that could have been shown is 0.3; regressed: c00"
    )


def test_eight_of_twenty_the_same_way_are_worse() -> None:
    found = compared(run(*[False] * 8 + [True] * 12), run(*[True] * 20))
    assert (found.outcome, found.p) == ("worse", 0.0078125)
    assert found.difference == pytest.approx(-0.4)
    assert len(found.regressed) == 8
    assert comparison_text(found).startswith("worse: 1.00 -> 0.60, difference -0.40 [")
    back = compared(run(*[True] * 20), run(*[False] * 8 + [True] * 12))
    assert (back.outcome, back.p, len(back.improved)) == ("better", 0.0078125, 8)


def test_several_judges_are_adjusted_together() -> None:
    def both(first: list[Any], second: list[Any]) -> list[TrialResult]:
        return [
            TrialResult(
                "s", f"c{n}", "dev", "passed", verdicts=(Verdict("j", one), Verdict("k", two))
            )
            for n, (one, two) in enumerate(zip(first, second, strict=True))
        ]

    new = both([False] * 6 + [True] * 4, [3] * 10)
    old = both([True] * 10, [3] * 10)
    [alone] = [c for c in compare(new, old, JUDGES[:1]) if c.split == "all"]
    assert (alone.outcome, alone.p, alone.p_adjusted) == ("worse", 0.03125, 0.03125)
    found = compared(new, old)
    assert (found.outcome, found.p, found.p_adjusted) == ("no difference shown", 0.03125, 0.0625)
    assert "p 0.031 (p 0.062 for all judges together)" in comparison_text(found)


def test_twins_that_fall_together_are_one_observation() -> None:
    falls = [False] * 8 + [True] * 12
    alone = compared(run(*falls), run(*[True] * 20))
    twins = compared(run(*falls, groups=2), run(*[True] * 20, groups=2))
    assert alone.p == 0.0078125
    assert twins.p == 0.125
    assert twins.outcome == "no difference shown"
    assert twins.interval is not None
    assert "clusters" in twins.interval.method


def test_trials_are_averaged_first() -> None:
    new = run(*[[True, False, False]] * 9)
    old = run(*[[True, True, False]] * 9)
    found = compared(new, old)
    assert found.pairs == 9
    assert found.difference == pytest.approx(-1 / 3)
    assert found.p == 2 / 2**9
    assert found.smallest == pytest.approx(6 / 3 / 9)


def test_numbers_are_compared_by_their_means() -> None:
    old, new = [3, 4, 2, 5, 3, 4, 1, 3], [4, 5, 3, 5, 4, 5, 2, 4]
    found = compared(run(*new, judge="k"), run(*old, judge="k"), "k")
    assert (found.kind, found.outcome, found.difference) == ("mean", "better", 0.875)
    assert found.p == 2 / 2**7
    assert found.smallest is not None


def test_what_only_one_run_has_is_listed_and_not_counted() -> None:
    found = compared(run(True, True, "error"), run("error", True, True, True))
    assert found.pairs == 1
    assert found.only_new == ("c00",)
    assert found.only_old == ("c02", "c03")


@pytest.mark.parametrize(
    ("new", "old", "why"),
    [
        ([True], ["error"], "no case has a value in both runs"),
        ([True, 3], [True, 4], "booleans and numbers are mixed"),
        ([1e200], [3], "a value is too large to average"),
    ],
)
def test_what_cannot_be_compared_says_why(new: list[Any], old: list[Any], why: str) -> None:
    found = compared(run(*new), run(*old))
    assert (found.outcome, found.no_interval) == ("not compared", why)
    assert comparison_text(found) == f"not compared: {why}"


@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25), st.integers(1, 3)
)
def test_comparing_is_symmetric(pairs: list[tuple[bool, bool]], groups: int) -> None:
    new, old = (run(*side, groups=groups) for side in zip(*pairs, strict=True))
    there, back = compared(new, old), compared(old, new)
    assert there.p == back.p
    assert there.difference == -(back.difference or 0.0)
    assert (there.improved, there.regressed) == (back.regressed, back.improved)
    assert {there.outcome, back.outcome} in ({"better", "worse"}, {"no difference shown"})


# -- in the summary -------------------------------------------------------------------------------


def summary(
    new: list[TrialResult], old: list[TrialResult], thresholds: dict[str, Any], **header: Any
) -> Summary:
    counts = {half: sum(r.split == half for r in new) for half in ("dev", "holdout")}
    info = SuiteInfo(
        "s",
        "s",
        judges=JUDGES,
        thresholds=thresholds,
        total=counts,
        selected=counts,
        baseline="old",
    )
    return summarise([info], new, against=Against("old", old, header.get("old", {}), header))


def of(new: list[TrialResult], old: list[TrialResult], **keys: Any) -> SuiteSummary:
    [suite] = summary(new, old, {"j": keys} if keys else {}).suites
    return suite


@pytest.mark.parametrize(
    ("keys", "outcome", "reason"),
    [
        ({"max_drop": 0.1}, "passed", ""),
        ({"max_drop": 0.09}, "missed", ""),
        ({"max_drop": 0.2, "confidence": 0.95}, "missed", "upper end"),
        ({"max_drop": 0.5, "confidence": 0.95}, "passed", ""),
    ],
)
def test_gate_on_a_drop(keys: dict[str, Any], outcome: str, reason: str) -> None:
    [gate] = of(run(*[False] * 2 + [True] * 18), run(*[True] * 20), **keys).gates
    assert gate.outcome == outcome
    assert reason in gate.reason
    assert gate.value == pytest.approx(0.1)
    assert gate.cases == 20


def test_a_rise_is_no_drop() -> None:
    [gate] = of(run(True, True), run(False, True), max_drop=0).gates
    assert (gate.outcome, gate.value) == ("passed", -0.5)


def test_gates_by_category_and_by_tag() -> None:
    new = [
        *run(True, True, False, category="billing", tags={"length": "short"}),
        *run(*[True] * 3),
    ]
    new = [TrialResult(**{**_fields(r), "case": f"{r.case}-{n}"}) for n, r in enumerate(new)]
    by_category = of(new, [], min_pass_rate=0.9, by="category").gates
    assert [(g.name, g.outcome, g.cases) for g in by_category] == [
        ("j[category=billing]", "missed", 3),
        ("j[no category]", "passed", 3),
    ]
    by_tag = of(new, [], min_cases=3, by="length").gates
    assert [(g.name, g.outcome) for g in by_tag] == [
        ("j[length=short]", "passed"),
        ("j[no length]", "passed"),
    ]
    [without] = of(run("error"), [], max_drop=0.1, by="category").gates
    assert (without.outcome, without.reason) == ("missed", "no case has a value in both runs")


def _fields(result: TrialResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in TrialResult.__dataclass_fields__}


def test_without_a_baseline_a_drop_is_not_decided() -> None:
    new = run(True)
    info = SuiteInfo("s", "s", judges=JUDGES, thresholds={"j": {"max_drop": 0.1}})
    [suite] = summarise([info], new).suites
    [gate] = suite.gates
    assert (gate.outcome, gate.reason) == ("not decided", "no --agent-eval-baseline RUN")
    assert suite.comparisons == ()


def test_lines_say_regressions_first() -> None:
    new = [
        TrialResult(
            "s",
            f"c{n:02}",
            "dev",
            "passed",
            verdicts=(Verdict("k", 4), Verdict("j", n >= 9)),
            usage=Usage(model="b"),
        )
        for n in range(20)
    ]
    old = [
        TrialResult(
            "s",
            f"c{n:02}",
            "dev",
            "passed",
            verdicts=(Verdict("k", 4), Verdict("j", True)),
            usage=Usage(model="a"),
        )
        for n in range(1, 21)
    ]
    lines = [line.text for line in comparison_lines(of(new, old), 200)]
    assert lines[:2] == ["  against old:", "    model: a -> b"]
    assert lines[2].startswith("    j  worse: 1.00 -> 0.58, difference -0.42 [")
    assert lines[2].endswith("regressed: c01, c02, c03, c04, c05 and 3 more")
    assert lines[3].startswith("    k  no difference shown: 4.00 -> 4.00, difference 0.00 [")
    assert lines[4:] == [
        "    only in this run, 1 case: c00",
        "    only in the baseline, 1 case: c20",
    ]
    data = summary(new, old, {}).to_yaml_dict("r")["comparison"]
    assert data["baseline"] == "old"
    assert data["judges"]["j"]["outcome"] == "worse"
    assert data["judges"]["j"]["only_old"] == ["c20"]
    assert [*data["splits"]] == ["dev"]


def test_what_has_changed() -> None:
    def one(case: str, agent: str, digest: str, judge: str, model: str) -> TrialResult:
        verdict = Verdict(judge, True, digest=digest)
        return TrialResult(
            "s",
            case,
            "dev",
            "passed",
            verdicts=(verdict,),
            usage=Usage(model=model),
            case_digest=digest,
            execution_digest=agent,
        )

    def header(commit: str, digest: str, version: str) -> dict[str, Any]:
        return {
            "git": {"commit": commit * 20, "dirty": commit == "b"},
            "suites": [{"key": "s", "digest": digest * 10}],
            "versions": {"python": version},
        }

    new = [one("x", "e2", "d2", "j", "m2"), one("y", "e2", "d1", "new", "m2")]
    old = [one("x", "e1", "d1", "j", "m1"), one("y", "e1", "d1", "gone", "m1")]
    assert changes(new, old, header("b", "2", "3.12"), header("a", "1", "3.11"), suite="s") == (
        "commit: aaaaaaaaaaaa -> bbbbbbbbbbbb with changes",
        "suite: 11111111 -> 22222222",
        "model: m1 -> m2",
        "agent: what is run, or how, has changed (runner, execution, models or their files)",
        "1 judge changed: j",
        "1 judge only in this run: new",
        "1 judge only in the baseline: gone",
        "1 case changed: x",
        "python: 3.11 -> 3.12",
    )
    assert changes(new, new, header("a", "1", "3"), header("a", "1", "3"), suite="s") == ()
    assert changes([], [], {}, {}) == ()
