from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.sealing import anonymous, is_open, sealed, sealed_header
from pytest_agent_eval.evidence.summary import SuiteInfo, SuiteSummary, Summary, summarise
from pytest_agent_eval.results import TrialResult, Usage, Verdict

LABELS = {"open": True, "quince": True, "quince-that-did-not-run": False}
INFO = SuiteInfo(
    "s",
    "secretive",
    judges=(JudgeInfo("j", labels=LABELS, taught=frozenset({"quince-2"})),),
    thresholds={"j": {"min_pass_rate": 0.5}},
    total={"dev": 1, "holdout": 2},
    selected={"dev": 1, "holdout": 2},
    sealed=True,
    pairs=("quince-pair",),
)


def trial(case: str, split: str, value: bool, **more: Any) -> TrialResult:
    return TrialResult(
        "s",
        case,
        split,
        "passed" if value else "failed",
        verdicts=(Verdict("j", value, f"about {case}"),),
        **more,
    )


RESULTS = [
    trial("open", "dev", False),
    trial("quince", "holdout", False, group="quince-pair"),
    trial("quince-2", "holdout", True, group="quince-pair"),
    TrialResult("s", "quince-broken", "", "error", kind="case", reason="quince"),
]


def whole(info: SuiteInfo = INFO) -> Summary:
    return summarise([info], RESULTS)


def test_cases_and_their_names_go_and_numbers_stay() -> None:
    before, after = whole().suites[0], sealed(whole()).suites[0]
    assert [case.label for case in after.cases] == ["open"]
    assert "quince" not in repr(after)
    assert "quince" in repr(before)
    for name in ("aggregates", "gates", "statuses", "totals", "coverage", "claims"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.calibrations[0].compared == before.calibrations[0].compared == 2
    assert before.calibrations[0].disagreeing == ("open", "quince")
    assert after.calibrations[0].disagreeing == ("open",)
    data = sealed(whole()).to_yaml_dict()
    assert "quince" not in repr(data)
    assert data["holdout"] == {"sealed": True}
    assert data["splits"]["holdout"]["j"]["scored_cases"] == 2


def test_what_is_not_sealed_stays_as_it_is() -> None:
    summary = whole(replace(INFO, sealed=False))
    assert sealed(summary) == summary


def test_a_header_without_names() -> None:
    header = {"run_id": "r", "suites": [INFO.to_dict(), replace(INFO, sealed=False).to_dict(), 3]}
    shown = sealed_header(header)
    hidden, seen, odd = shown["suites"]
    assert "quince" not in repr(hidden)
    assert (hidden["name"], hidden["judges"][0]["name"]) == ("secretive", "j")
    assert (seen, odd, shown["run_id"]) == (header["suites"][1], 3, "r")
    assert sealed_header({"suites": None}) == {"suites": None}


def test_what_travels_of_a_sealed_trial() -> None:
    result = trial(
        "quince", "holdout", False, usage=Usage(cost_usd=0.5, model="m"), record="quince/1"
    )
    shown = anonymous(result)
    assert "quince" not in repr(shown)
    assert (shown.status, shown.split, shown.usage.spent_usd) == ("failed", "holdout", 0.5)


def test_a_case_of_unknown_half_may_be_sealed() -> None:
    assert [is_open(split, True) for split in ("dev", "holdout", "")] == [True, False, False]
    assert is_open("holdout", False)


@dataclass(frozen=True, slots=True)
class Moved:
    """What a comparison with a baseline lists of cases."""

    judge: str
    improved: tuple[str, ...] = ()
    regressed: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()
    only_old: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared(SuiteSummary):
    """A suite that was compared with a baseline."""

    comparisons: tuple[Any, ...] = ()
    changes: tuple[str, ...] = ()


def test_a_comparison_lists_no_sealed_case() -> None:
    suite = whole().suites[0]
    parts = {field.name: getattr(suite, field.name) for field in fields(suite)}
    parts["comparisons"] = (
        Moved("j", ("quince", "open"), ("quince-2",), ("open",), ("quince-0",)),
    )
    parts["changes"] = ("model: a -> b", "2 cases changed: open, quince-2")
    (after,) = sealed(Summary((Compared(**parts),))).suites
    assert isinstance(after, Compared)
    assert after.comparisons == (Moved("j", ("open",), (), ("open",), ()),)
    assert after.changes == ("model: a -> b", "2 cases changed")
