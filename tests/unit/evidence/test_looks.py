from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.looks import Looks, count_looks, look_at
from pytest_agent_eval.evidence.outcomes import case_outcomes
from pytest_agent_eval.evidence.summary import SuiteInfo
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.ledger import Look

INFO = SuiteInfo(
    "evals/eval.yaml", "s", file="evals/eval.yaml", digest="v1", ledger="evals/cases.holdout.yaml"
)


def result(case: str, split: str = "holdout", **more: Any) -> TrialResult:
    return TrialResult(
        "evals/eval.yaml", case, split, **{"status": "passed", "case_digest": f"of {case}", **more}
    )


def look(*results: TrialResult, info: SuiteInfo = INFO, **more: Any) -> Look | None:
    more = {"date": "2026-01-03T10:00:00Z", "run": "r1", **more}
    return look_at(info, case_outcomes(results, "all"), **more)


def test_an_entry() -> None:
    found = look(
        result("a"),
        result("b", status="failed"),
        result("c", "dev"),
        git={"commit": "c0ffee", "dirty": True},
    )
    assert found is not None
    assert (found.suite, found.version, found.cases) == ("eval.yaml", "v1", 2)
    assert found.counts == {"failed": 1, "passed": 1}
    assert (found.commit, found.dirty, found.revealed) == ("c0ffee", True, ())
    assert Look.from_dict(found.to_dict()) == found


def test_what_is_no_look() -> None:
    assert look(result("a", "dev")) is None
    assert look(result("a", status="error", kind="infrastructure")) is None
    assert look(result("a", status="skipped")) is None
    assert look() is None
    assert look(result("a"), info=replace(INFO, ledger="")) is None, "ledger: false"


def test_the_fingerprint_depends_on_names_and_contents_alone() -> None:
    one = look(result("a"), result("b"))
    assert one is not None
    same = look(result("b", status="failed"), result("a", trial=2), result("x", "dev"), run="r2")
    others = (
        look(result("a"), result("b", case_digest="edited")),
        look(result("a")),
        look(result("a"), result("c", case_digest="of b")),
    )
    assert same is not None
    assert same.dataset == one.dataset
    assert all(other is not None and other.dataset != one.dataset for other in others)


def test_a_case_in_two_variants_is_one_case_with_two_outcomes() -> None:
    found = look(result("a", variant="x"), result("a", variant="y", status="failed"))
    assert found is not None
    assert (found.cases, found.counts) == (1, {"failed": 1, "passed": 1})


def test_revealed_cases_are_named() -> None:
    found = look(result("b"), result("a"), result("d", "dev"), info=replace(INFO, revealed=True))
    assert found is not None
    assert found.revealed == ("a", "b")


entries = st.lists(
    st.builds(
        Look,
        date=st.dates().map(lambda day: f"{day}T00:00:00Z"),
        run=st.sampled_from(["r1", "r2", "r3", "r4"]),
        suite=st.sampled_from(["eval.yaml", "other.eval.yaml"]),
        version=st.sampled_from(["v1", "v2"]),
        dataset=st.just("d"),
        cases=st.just(1),
    ),
    max_size=12,
)


@given(entries)
def test_runs_are_counted_and_not_entries(before: list[Look]) -> None:
    this = look(result("a"), run="now")
    assert this is not None
    found = count_looks(before, this, "l")
    own = [entry for entry in before if entry.suite == "eval.yaml"]
    assert found.total == len({entry.run for entry in own}) + 1
    assert found.version == len({entry.run for entry in own if entry.version == "v1"}) + 1
    assert 1 <= found.version <= found.total
    assert found.last == max((entry.date for entry in own), default="")[:10]
    assert count_looks([*before, this], this, "l") == found, "whether it was there or not"
    assert found.to_dict()["looks"] == found.total


def test_the_count_of_a_first_look() -> None:
    this = look(result("a"))
    assert this is not None
    assert count_looks([], this, "l") == Looks(1, 1, "", "l")
