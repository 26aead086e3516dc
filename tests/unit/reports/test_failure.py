from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agent_eval.reports.failure import failure_block, headline, input_lines, verdict_state
from pytest_agent_eval.results import FAILURE_KINDS, TrialResult, Verdict

WORKED = Verdict("execution", True, passed=True)
SCHEMA = Verdict("schema", False, "the key 'total' is missing", False)


def trial(*verdicts: Verdict, **more: Any) -> TrialResult:
    more = {"status": "failed", "kind": "verdict", "execution": WORKED, **more}
    return TrialResult("s", "case-002", "dev", verdicts=verdicts, **more)


def test_the_whole_block() -> None:
    result = trial(
        Verdict("quality", 4, "clear and polite", True),
        Verdict(
            "schema", False, "the key 'total' is missing", False, detail="total: expected 42, none"
        ),
        Verdict(
            "tone",
            error="KeyError: 'tier'",
            detail="Traceback:\n  eval.yaml:41, in tone\nKeyError: 'tier'",
        ),
        Verdict("length", 312, "words"),
        Verdict("cited", skipped=True, rationale="if: annotations['cited'] is false"),
        exit_code=0,
        duration_s=3.2,
        workspace="/tmp/w-9f2c0",
        record="cases/case-002/1",
        notes=("metrics.json is malformed",),
    )
    block = failure_block(
        result,
        input={"question": "How?", "order": {"id": 12}},
        output_tail="one\ntwo\n",
        stored_in=".agent-eval/runs/r",
    )
    assert (
        block
        == """\
case-002: 1 of 4 judges failed: schema (the key 'total' is missing); 1 judge
    error: tone (KeyError: 'tier')

  failed    schema        the key 'total' is missing
  error     tone          KeyError: 'tier'
  passed    quality    4  clear and polite
  recorded  length   312  words
  skipped   cited         if: annotations['cited'] is false

asked:
  question: How?
  order: {"id": 12}

schema:
  total: expected 42, none

tone:
  Traceback:
    eval.yaml:41, in tone
  KeyError: 'tier'

output:
  one
  two

notes:
  metrics.json is malformed

agent      3.2 s, exit status 0
workspace  /tmp/w-9f2c0
record     .agent-eval/runs/r/cases/case-002/1"""
    )


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (trial(SCHEMA), "case-002: 1 of 1 judge failed: schema (the key 'total' is missing)"),
        (
            trial(SCHEMA, Verdict("b", False, passed=False), Verdict("c", True, passed=True)),
            "case-002: 2 of 3 judges failed: schema (the key 'total' is missing), b",
        ),
        (
            trial(Verdict("tone", error="it raised"), kind="judge"),
            "case-002: 1 judge error: tone (it raised)",
        ),
        (
            trial(SCHEMA, kind="timeout", reason="timed out after 60 s"),
            "case-002: the agent ran out of time: timed out after 60 s; "
            "1 of 1 judge failed: schema (the key 'total' is missing)",
        ),
        (
            trial(kind="agent", execution=Verdict("execution", False, "exit status 3", False)),
            "case-002: the agent failed: exit status 3",
        ),
        (
            trial(
                kind="infrastructure",
                execution=None,
                status="error",
                reason="no such command",
                duration_s=0.0,
            ),
            "case-002: the agent could not be run (infrastructure): no such command",
        ),
        (
            trial(kind="infrastructure", status="error", reason="hooks.before_scoring[0]: status 3"),
            "case-002: a hook failed (infrastructure): hooks.before_scoring[0]: status 3",
        ),
        (
            trial(kind="infrastructure", status="error", reason="no place on the disk"),
            "case-002: the trial could not be judged (infrastructure): no place on the disk",
        ),
        (
            trial(
                kind="infrastructure",
                status="error",
                reason="the provider is down",
                execution=Verdict("execution", error="the provider is down"),
                duration_s=1.5,
            ),
            "case-002: the infrastructure failed: the provider is down",
        ),
        (
            trial(
                kind="infrastructure",
                status="error",
                reason="the trial cannot be stored: no place",
                execution=None,
                duration_s=0.0,
            ),
            "case-002: the infrastructure failed: the trial cannot be stored: no place",
        ),
        (trial(kind="case", execution=None), "case-002: the case cannot be used"),
        (trial(SCHEMA, variant="new", trial=2),
         "case-002[new], trial 2: 1 of 1 judge failed: schema (the key 'total' is missing)"),
        (trial(reason="something else"), "case-002: something else"),
        (trial(), "case-002: failed"),
    ],
)  # fmt: skip
def test_headlines(result: TrialResult, line: str) -> None:
    assert headline(result) == line


def test_a_headline_is_cut_to_the_width() -> None:
    assert headline(trial(SCHEMA), 30) == "case-002: 1 of 1 judge fail..."


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (SCHEMA, "failed"),
        (Verdict("j", 4, passed=True), "passed"),
        (Verdict("j", 4), "recorded"),
        (Verdict("j", skipped=True), "skipped"),
        (Verdict("j", error="x"), "error"),
    ],
)
def test_states(verdict: Verdict, state: str) -> None:
    assert verdict_state(verdict) == state


def test_an_execution_that_failed_is_in_the_table_one_that_worked_is_not() -> None:
    failed = Verdict("execution", False, "exit status 3", False)
    assert "  failed  execution  exit status 3" in failure_block(trial(SCHEMA, execution=failed))
    assert "execution" not in failure_block(trial(SCHEMA))


def test_long_things_are_cut_unless_verbose() -> None:
    result = trial(Verdict("j", False, "word " * 200, False, detail="\n".join("d" * 50)))
    more: dict[str, Any] = {
        "input": {"text": "\n".join(f"in-{i}" for i in range(50))},
        "output_tail": "\n".join(f"out-{i}" for i in range(50)),
    }
    cut = failure_block(result, **more)
    assert "in-5" in cut
    assert "in-30" not in cut
    assert "... 44 more lines (-v shows all)" in cut
    assert "output, last 12 of 50 lines:" in cut
    assert "out-49" in cut
    assert "out-30" not in cut
    assert cut.count("word") < 120
    whole = failure_block(result, **more, verbosity=1)
    assert "in-49" in whole
    assert "out-0" in whole
    assert "more lines" not in whole
    assert whole.count("word") >= 200


def test_details_of_what_passed_are_not_shown() -> None:
    result = trial(SCHEMA, Verdict("j", True, passed=True, detail="all was well"))
    assert "all was well" not in failure_block(result)


def test_escape_sequences_are_shown_not_sent() -> None:
    evil = "\x1b[2Jgone\0\ud800\u202e"
    result = trial(Verdict("j\x1b", False, evil, False, detail=evil), workspace=evil, notes=(evil,))
    block = failure_block(result, input={evil: evil}, output_tail=evil)
    for character in ("\x1b", "\0", "\ud800", "\u202e"):
        assert character not in block
    assert "\\x1b[2Jgone\\x00\\ud800\\u202e" in block


def test_inputs() -> None:
    assert input_lines("one\ntwo\n", 80) == ["one", "two"]
    assert input_lines({"a": "x", "b": "1\n2", "c": "", "d": None, "e": [1]}, 80) == [
        "a: x",
        "b:",
        "  1",
        "  2",
        'c: ""',
        "d: null",
        "e: [1]",
    ]
    assert input_lines({"a": "word " * 10}, 30) == [
        "a: word word word word word",
        "  word " + "word word word word",
    ]


anything = st.text(st.characters(), max_size=60)
verdicts = st.builds(
    Verdict,
    judge=anything,
    value=st.none() | st.booleans() | st.integers() | st.floats(),
    rationale=anything,
    passed=st.none() | st.booleans(),
    skipped=st.booleans(),
    error=anything,
    detail=anything,
)


@pytest.mark.parametrize("reason", ["", "\n", " \t "])
def test_a_reason_of_blanks_is_none(reason: str) -> None:
    assert headline(trial(reason=reason, kind="")) == "case-002: failed"


@settings(max_examples=60)
@given(
    st.lists(verdicts, max_size=4),
    st.none() | verdicts,
    st.sampled_from(FAILURE_KINDS),
    st.dictionaries(anything, anything | st.integers() | st.none(), max_size=3),
    anything,
    st.integers(40, 120),
    st.integers(-1, 2),
)
def test_any_trial_gives_a_block(
    judged: list[Verdict],
    execution: Verdict | None,
    kind: Any,
    asked: dict[str, Any],
    tail: str,
    width: int,
    verbosity: int,
) -> None:
    result = trial(*judged, execution=execution, kind=kind, reason=tail)
    block = failure_block(
        result, input=asked, output_tail=tail, width=width, verbosity=verbosity, stored_in=tail
    )
    block.encode("utf-8")
    assert block.startswith("case-002: ")
    assert "\x1b" not in block


def test_a_line_as_long_as_a_book_is_cut_unless_all_is_asked_for() -> None:
    result = trial(Verdict("a", False, "no", False, detail="y" * 5_000))
    block = failure_block(result, output_tail="x" * 5_000)
    assert "x" * 400 + " ... 4,600 more characters (-v)" in block
    assert "y" * 400 + " ... 4,600 more characters (-v)" in block
    assert len(block) < 1_500
    assert "x" * 5_000 in failure_block(result, output_tail="x" * 5_000, verbosity=1)
