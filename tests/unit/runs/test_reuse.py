from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.results import TrialResult, Verdict
from pytest_agent_eval.runs.reuse import Reuse, combined_verdicts, decide_reuse
from tests.unit.runs.made import trial

WORKED = Verdict("execution", True, passed=True)


def stored(*verdicts: Verdict, **more: Any) -> TrialResult:
    return trial(
        **{
            "execution": WORKED,
            "verdicts": verdicts,
            "case_digest": "c",
            "execution_digest": "e",
            **more,
        }
    )


def reuse(result: TrialResult | None, judges: dict[str, str], **more: Any) -> Reuse:
    return decide_reuse(
        result, **{"case_digest": "c", "execution_digest": "e", "judges": judges, **more}
    )


A, B = Verdict("a", True, passed=True, digest="1"), Verdict("b", 3, digest="2")


def test_what_nothing_changed_is_kept() -> None:
    assert reuse(stored(A, B), {"a": "1", "b": "2"}) == Reuse("keep")
    assert reuse(stored(), {}) == Reuse("keep")


@pytest.mark.parametrize(
    ("result", "more", "reason"),
    [
        (None, {}, "no result is stored"),
        (
            stored(status="error", kind="infrastructure", reason="no network"),
            {},
            "it could not be carried out: no network",
        ),
        (
            stored(status="error", kind="case", execution=None),
            {},
            "it could not be carried out: case",
        ),
        (
            stored(status="skipped", kind="budget", reason="not run: budget", execution=None),
            {},
            "it was not started: not run: budget",
        ),
        (stored(), {"case_digest": "other"}, "the case changed"),
        (stored(case_digest=""), {"case_digest": ""}, "the case changed"),
        (
            stored(),
            {"execution_digest": "other"},
            "the configuration of its execution changed",
        ),
        (
            stored(execution_digest=""),
            {"execution_digest": ""},
            "it is not stored with what configuration it was carried out",
        ),
    ],
)
def test_what_is_carried_out_again(
    result: TrialResult | None, more: dict[str, str], reason: str
) -> None:
    assert reuse(result, {}, **more) == Reuse("run", reason)


def test_an_agent_over_its_own_budget_or_out_of_time_has_a_result() -> None:
    for kind in ("budget", "timeout", "agent"):
        assert reuse(stored(A, status="failed", kind=kind), {"a": "1"}).action == "keep"


def test_a_case_that_no_judge_judged_has_a_result() -> None:
    skipped = Verdict("a", rationale="not judged", skipped=True, digest="1")
    assert reuse(stored(skipped, status="skipped"), {"a": "1"}).action == "keep"


def test_a_changed_judge_is_asked_and_the_others_stand() -> None:
    found = reuse(stored(A, B), {"b": "2", "a": "9"})
    assert found == Reuse("judge", "a: its definition changed", ("a",), (B,))


def test_a_judge_error_is_asked_again() -> None:
    error = Verdict("a", error="raised", digest="1")
    found = reuse(stored(error, B), {"a": "1", "b": "2"})
    assert (found.action, found.reason, found.ask) == ("judge", "a: it gave an error", ("a",))


def test_a_new_judge_is_asked_and_a_removed_one_disappears() -> None:
    found = reuse(stored(A, B), {"c": "3", "a": "1"})
    assert found == Reuse("judge", "c: a new judge; b: no longer a judge", ("c",), (A,))
    assert reuse(stored(A, B), {"b": "2"}) == Reuse("judge", "a: no longer a judge", (), (B,))
    assert reuse(stored(A, B), {"b": "2", "a": "1"}) == Reuse(
        "judge", "the judges' order changed", (), (B, A)
    )


def test_without_a_record_the_judges_need_a_new_execution() -> None:
    found = reuse(stored(A), {"a": "9"}, recorded=False)
    assert found.action == "run"
    assert "no longer there (a: its definition changed)" in found.reason
    assert reuse(stored(A), {"a": "1"}, recorded=False).action == "keep"
    assert reuse(stored(A, B), {"a": "1"}, recorded=False).action == "judge"


def test_a_rescore_asks_every_judge() -> None:
    found = reuse(stored(A, B), {"a": "1", "b": "2"}, rescore=True)
    assert (found.action, found.ask, found.kept) == ("judge", ("a", "b"), ())
    assert reuse(stored(), {}, rescore=True, case_digest="x").action == "run"


names = st.sampled_from("abcdef")
definitions = st.dictionaries(names, st.sampled_from(["", "1", "2"]), max_size=6)
verdicts = st.lists(
    st.builds(
        Verdict,
        judge=names,
        value=st.just(1),
        error=st.sampled_from(["", "", "raised"]),
        digest=st.sampled_from(["", "1", "2"]),
    ),
    max_size=6,
    unique_by=lambda verdict: verdict.judge,
).map(tuple)


@given(verdicts, definitions, st.booleans())
def test_asking_what_it_says_makes_a_result_that_is_kept(
    given_: tuple[Verdict, ...], judges: dict[str, str], rescore: bool
) -> None:
    result = stored(*given_)
    found = reuse(result, judges, rescore=rescore)
    assert [verdict.judge for verdict in found.kept] == [
        name for name in judges if name in {verdict.judge for verdict in found.kept}
    ]
    if found.action == "keep":
        assert [verdict.judge for verdict in given_] == list(judges)
        assert not any(verdict.error for verdict in given_)
        return
    assert {*found.ask}.isdisjoint(verdict.judge for verdict in found.kept)
    assert {*found.ask, *(verdict.judge for verdict in found.kept)} == {*judges}
    answers = [Verdict(name, 2, digest=judges[name]) for name in found.ask]
    complete = combined_verdicts(found.kept, answers, list(judges))
    assert [verdict.judge for verdict in complete] == list(judges)
    unknown = [name for name, digest in judges.items() if not digest]
    again = reuse(replace(result, verdicts=complete), judges)
    assert (again.action, again.ask) == ("judge" if unknown else "keep", tuple(unknown))


@given(
    st.sampled_from(["passed", "failed", "tolerated", "skipped", "error"]),
    st.booleans(),
    st.sampled_from(["", "c"]),
    st.sampled_from(["", "e", "f"]),
)
def test_nothing_is_kept_that_was_not_carried_out_as_it_would_be_now(
    status: Any, started: bool, case: str, execution: str
) -> None:
    result = stored(
        status=status,
        execution=WORKED if started else None,
        case_digest=case,
        execution_digest=execution,
    )
    found = reuse(result, {})
    stands = status != "error" and started and case == "c" and execution == "e"
    assert (found.action == "keep") is stands
    assert bool(found.reason) is not stands
