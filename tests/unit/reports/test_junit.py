from __future__ import annotations

from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.evidence.outcomes import case_outcomes
from pytest_agent_eval.reports import junit
from pytest_agent_eval.results import TrialResult, Usage, Verdict


def properties(*trials: TrialResult) -> list[tuple[str, str]]:
    return junit.properties(case_outcomes(trials, "all")[0])


def test_properties() -> None:
    result = TrialResult(
        "s",
        "a",
        "holdout",
        "tolerated",
        "verdict",
        group="g",
        execution=Verdict("execution", True, passed=True),
        verdicts=(
            Verdict("schema", False, "no total"),
            Verdict("quality", 3.5),
            Verdict("tone", error="it raised"),
            Verdict("cited", skipped=True),
        ),
        duration_s=1.5,
        usage=Usage(cost_usd=0.25),
        record="cases/a/1",
    )
    assert properties(result) == [
        ("agent_eval.split", "holdout"),
        ("agent_eval.group", "g"),
        ("agent_eval.trial", "1"),
        ("agent_eval.status", "tolerated"),
        ("agent_eval.kind", "verdict"),
        ("agent_eval.cost_usd", "0.25"),
        ("agent_eval.duration_s", "1.500"),
        ("agent_eval.record", "cases/a/1"),
        ("agent_eval.verdict.execution", "true"),
        ("agent_eval.verdict.schema", "false"),
        ("agent_eval.rationale.schema", "no total"),
        ("agent_eval.verdict.quality", "3.5"),
        ("agent_eval.verdict.tone", "error"),
        ("agent_eval.rationale.tone", "it raised"),
        ("agent_eval.verdict.cited", "skipped"),
    ]


def test_what_was_never_started_has_no_execution() -> None:
    names = [name for name, _ in properties(TrialResult("s", "a", "dev", "error"))]
    assert "agent_eval.verdict.execution" not in names
    assert "agent_eval.cost_usd" not in names


def test_several_trials_are_told_apart_and_summed_up() -> None:
    first = TrialResult(
        "s",
        "a",
        "dev",
        "passed",
        verdicts=(Verdict("schema", True, passed=True),),
        duration_s=1.0,
        usage=Usage(cost_usd=0.5),
        record="cases/a/1",
    )
    second = TrialResult(
        "s",
        "a",
        "dev",
        "failed",
        "verdict",
        trial=2,
        verdicts=(Verdict("schema", False, "no total", passed=False),),
        duration_s=2.0,
        usage=Usage(cost_usd=0.25),
        record="cases/a/2",
    )
    found = dict(properties(first, second))
    assert found["agent_eval.trial"] == "1,2"
    assert found["agent_eval.status"] == "failed"
    assert found["agent_eval.kind"] == "verdict"
    assert found["agent_eval.cost_usd"] == "0.75"
    assert found["agent_eval.duration_s"] == "3.000"
    assert found["agent_eval.record.2"] == "cases/a/2"
    assert found["agent_eval.verdict.schema.1"] == "true"
    assert found["agent_eval.verdict.schema.2"] == "false"


anything = st.text(st.characters(), max_size=600)


@given(anything, anything)
def test_they_can_stand_in_xml(name: str, text: str) -> None:
    result = TrialResult("s", name, "dev", "failed", verdicts=(Verdict(name, False, text),))
    for key, value in properties(result):
        assert len(value) <= 500
        element = ET.fromstring(f"<p name={quoteattr(key)} value={quoteattr(value)}/>")
        assert element.get("value") == value
