from __future__ import annotations

import json
from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.results import FAILURE_KINDS, TrialResult, Usage, Verdict

text = st.text(max_size=20)
numbers = st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False)
counts = st.none() | st.integers(0, 10**9)
seconds = st.floats(0, 1e6)

verdicts = st.builds(
    Verdict,
    judge=text,
    value=st.none() | st.booleans() | numbers,
    rationale=text,
    passed=st.none() | st.booleans(),
    skipped=st.booleans(),
    error=text,
    detail=text,
    duration_s=seconds,
    digest=text,
)
usages = st.builds(
    Usage,
    cost_usd=st.none() | seconds,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    cache_create_tokens=counts,
    num_turns=counts,
    model=st.none() | text,
    models_used=st.lists(text, max_size=3).map(tuple),
    per_model_usage=st.dictionaries(text, st.dictionaries(text, counts, max_size=2), max_size=2),
    per_model_turns=st.dictionaries(text, st.integers(0, 99), max_size=2),
)
results = st.builds(
    TrialResult,
    suite=text,
    case=text,
    split=st.sampled_from(["dev", "holdout"]),
    status=st.sampled_from(["passed", "failed", "tolerated", "skipped", "error"]),
    kind=st.sampled_from(FAILURE_KINDS),
    reason=text,
    group=st.none() | text,
    tags=st.dictionaries(text, text, max_size=2),
    category=st.none() | text,
    trial=st.integers(1, 9),
    variant=st.none() | text,
    execution=st.none() | verdicts,
    verdicts=st.lists(verdicts, max_size=3).map(tuple),
    exit_code=st.none() | st.integers(-64, 255),
    timed_out=st.booleans(),
    duration_s=seconds,
    usage=usages,
    judging_s=seconds,
    started=text,
    workspace=text,
    record=text,
    notes=st.lists(text, max_size=2).map(tuple),
    case_digest=text,
    execution_digest=text,
    rescored=st.booleans(),
    reward=st.none() | st.floats(0, 1),
    reward_reason=text,
)


@given(results)
def test_a_result_survives_its_mapping_and_json(result: TrialResult) -> None:
    data = result.to_dict()
    assert TrialResult.from_dict(data) == result
    assert TrialResult.from_dict(json.loads(json.dumps(data))) == result


def test_the_mapping_holds_every_field() -> None:
    result = TrialResult("s", "c", "dev", "passed", verdicts=(Verdict("j"),))
    data = result.to_dict()
    assert list(data) == [field.name for field in fields(TrialResult)]
    assert list(data["verdicts"][0]) == [field.name for field in fields(Verdict)]
    assert list(data["usage"]) == [field.name for field in fields(Usage)]


def test_what_a_newer_version_added_is_left_out() -> None:
    result = TrialResult("s", "c", "dev", "passed", verdicts=(Verdict("j", True),))
    data = result.to_dict()
    data["colour"] = "blue"
    data["verdicts"][0]["mood"] = "good"
    assert TrialResult.from_dict(data) == result


def test_a_line_from_before_there_were_digests_reads() -> None:
    result = TrialResult("s", "c", "dev", "passed", verdicts=(Verdict("j", True),))
    data = result.to_dict()
    del data["execution_digest"], data["rescored"], data["verdicts"][0]["digest"]
    assert TrialResult.from_dict(data) == result
    assert (result.execution_digest, result.rescored, result.verdicts[0].digest) == ("", False, "")
