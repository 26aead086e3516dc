from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.intervals import Interval
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.reports.printable import display_width
from pytest_agent_eval.reports.terminal import Line, gate_text, summary_lines
from pytest_agent_eval.results import Status, TrialResult, Usage, Verdict

WORKED = Verdict("execution", True, passed=True)


def trial(case: str, *verdicts: Verdict, status: Status = "passed", **more: Any) -> TrialResult:
    more = {"split": "dev", "execution": WORKED, **more}
    return TrialResult("s", case, verdicts=verdicts, status=status, **more)


def suite(*judges: str, cases: int = 0, **more: Any) -> SuiteInfo:
    infos = tuple(JudgeInfo(name) for name in judges)
    return SuiteInfo(
        "s", "answers", judges=infos, total={"dev": cases}, selected={"dev": cases}, **more
    )


def texts(info: SuiteInfo, results: list[TrialResult], **more: Any) -> list[str]:
    return [line.text for line in summary_lines(summarise([info], results), **more)]


def gate(**more: Any) -> Gate:
    values: dict[str, Any] = {
        "suite": "s",
        "judge": "answer_quality",
        "key": "min_mean",
        "bound": 3.5,
        "value": 3.72,
        "interval": Interval(3.41, 4.02, 0.95, "t"),
        "cases": 40,
        "outcome": "passed",
        **more,
    }
    return Gate(**values)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "min_mean >= 3.5: 3.72 [3.41, 4.02] over 40 cases -> passed"),
        ({"value": 3.0, "interval": None, "outcome": "missed", "cases": 1},
         "min_mean >= 3.5: 3.00 over 1 case -> missed"),
        ({"value": None, "outcome": "missed", "reason": "no case was scored (2 skipped)"},
         "min_mean >= 3.5: no case was scored (2 skipped) -> missed"),
        ({"value": None, "outcome": "not decided", "reason": "12 of 40 cases selected"},
         "min_mean >= 3.5: not decided (12 of 40 cases selected)"),
        ({"key": "max_error_rate", "bound": 0.1, "value": 0.05, "interval": None},
         "max_error_rate <= 0.1: 0.05 over 40 cases -> passed"),
        ({"unvalidated": True},
         "min_mean >= 3.5: 3.72 [3.41, 4.02] over 40 cases, unvalidated -> passed"),
        ({"unvalidated": True, "key": "min_cases", "bound": 5, "value": 40.0},
         "min_cases >= 5: 40 cases, unvalidated -> passed"),
        ({"key": "min_cases", "bound": 50, "value": 40.0, "outcome": "missed"},
         "min_cases >= 50: 40 cases -> missed"),
        ({"split": "holdout", "confidence": 0.9, "outcome": "missed", "reason": "why"},
         "min_mean >= 3.5 (holdout, at 90 %): 3.72 [3.41, 4.02] over 40 cases -> missed (why)"),
        ({"bound": 0.9, "value": 0.8996, "interval": Interval(0.85, 0.93, 0.95, "wilson"),
          "outcome": "missed"},
         "min_mean >= 0.9: 0.8996 [0.85, 0.93] over 40 cases -> missed"),
    ],
)  # fmt: skip
def test_gates(more: dict[str, Any], text: str) -> None:
    assert gate_text(gate(**more)) == f"GATE answer_quality {text}"


def test_a_whole_suite() -> None:
    info = SuiteInfo(
        "s",
        "answers",
        judges=(JudgeInfo("schema"), JudgeInfo("quality", gated=True)),
        thresholds={"quality": {"min_mean": 3, "min_cases": 5}},
        total={"dev": 3, "holdout": 3},
        selected={"dev": 3, "holdout": 3},
        without_group=1,
    )
    usage = Usage(cost_usd=0.25, input_tokens=1500, output_tokens=20)
    results = [
        trial("c0", Verdict("schema", True), Verdict("quality", 4), usage=usage, duration_s=61),
        trial("c1", Verdict("schema", False), Verdict("quality", 2), status="failed", usage=usage),
        trial("c2", Verdict("schema", True), Verdict("quality", error="x"), status="tolerated"),
        trial("c3", Verdict("schema", True), Verdict("quality", 5), split="holdout"),
        trial("c4", Verdict("schema", True), Verdict("quality", 3), split="holdout"),
        trial("c5", Verdict("schema", True), Verdict("quality", skipped=True), split="holdout"),
    ]
    lines = summary_lines(summarise([info], results), stored_in=".agent-eval/runs/r")
    assert lines == [
        Line("answers: 1 failed, 4 passed, 1 tolerated", "bold"),
        Line("  schema   dev      pass rate 0.67 [0.21, 0.94] over 3 cases"),
        Line("           holdout  pass rate 1.00 [0.44, 1.00] over 3 cases"),
        Line(
            "  quality  dev      mean 3.00 [-9.71, 15.71] over 2 cases, 2 of 3 scored, 1", "yellow"
        ),
        Line("                      judge error", "yellow"),
        Line("           holdout  mean 4.00 [-8.71, 16.71] over 2 cases, 1 skipped"),
        Line("  tolerated: c2", "yellow"),
        Line("  judge error: quality: x (c2)", "red"),
        Line("  $0.50 and 4 trials of unknown cost, 3.0k tokens in, 40 out, 1 min 01 s of"),
        Line("      agent time, 0.0 s judging"),
        Line("  1 case without a group: split by name"),
        Line("  quality: 4 cases cannot tell on which side of 3 the mean is: 1.45 to 5.55 at"),
        Line("      95 %"),
        Line("GATE quality min_mean >= 3: 3.50 [1.45, 5.55] over 4 cases -> passed", "green"),
        Line("GATE quality min_cases >= 5: 4 cases -> missed", "red"),
        Line("stored in .agent-eval/runs/r"),
    ]


def test_a_partial_run_is_yellow_and_says_how_much_ran() -> None:
    info = SuiteInfo(
        "s",
        "answers",
        judges=(JudgeInfo("j"),),
        thresholds={"j": {"min_mean": 0.5}},
        total={"dev": 40},
        selected={"dev": 1},
    )
    lines = summary_lines(summarise([info], [trial("a", Verdict("j", True))]))
    assert Line("GATE j min_mean >= 0.5: not decided (1 of 40 cases selected)", "yellow") in lines


def test_why_there_is_no_interval_is_said() -> None:
    results = [trial("a", Verdict("j", 4)), trial("b", Verdict("j", 4))]
    assert "  j  dev  mean 4.00 over 2 cases, no interval: all 2 values are 4" in texts(
        suite("j", cases=2), results
    )


def test_mixed_values_are_said_so_even_if_each_half_is_of_one_kind() -> None:
    results = [
        trial("a", Verdict("j", True)),
        trial("b", Verdict("j", 4), split="holdout"),
    ]
    found = texts(suite("j", cases=2), results)
    assert "     all      booleans and numbers are mixed" in found


def test_several_trials() -> None:
    results = [
        trial(f"c{i}", Verdict("j", (i + t) % 2 == 0), trial=t) for i in range(6) for t in (1, 2)
    ]
    found = " ".join(" ".join(texts(suite("j", cases=6), results)).split())
    assert "pass@2 1.00, pass^2 0.00, 6 flaky" in found


def test_quiet_keeps_the_gates_and_verbose_tells_more() -> None:
    info = suite("j", cases=9, thresholds={"j": {"min_mean": 0.5}})
    results = [trial(f"case-{i}", Verdict("j", True), status="tolerated") for i in range(9)]
    quiet = texts(info, results, verbosity=-1, stored_in="x")
    assert quiet == [
        "GATE j min_mean >= 0.5: 1.00 [0.70, 1.00] over 9 cases -> passed",
        "stored in x",
    ]
    plain = texts(info, results)
    assert "  tolerated: case-0, case-1, case-2, case-3, case-4 and 4 more" in plain
    verbose = texts(info, results, verbosity=1)
    assert "  j  dev  pass rate 1.00 [0.70, 1.00] over 9 cases, wilson" in verbose
    assert any("case-8" in line for line in verbose)


def test_notes_and_an_interruption() -> None:
    summary = summarise([suite("j")], [], interrupted=True)
    lines = summary_lines(summary, notes=["a line was torn"])
    assert lines[0] == Line("answers: no case ran", "bold")
    assert Line("note: a line was torn", "yellow") in lines
    assert lines[-1] == Line("incomplete: the run ended before its last case", "yellow")


def test_suites_are_set_apart() -> None:
    infos = [suite("j"), SuiteInfo("t", "other")]
    assert "" in [line.text for line in summary_lines(summarise(infos, []))]


def test_a_long_reason_goes_to_a_second_line_and_a_gate_stays_in_one_piece() -> None:
    info = suite(
        "answer_quality",
        cases=9,
        thresholds={"answer_quality": {"min_pass_rate": 0.95, "confidence": 0.95}},
    )
    found = texts(info, [trial(f"c{i}", Verdict("answer_quality", True)) for i in range(9)])
    assert found[-2:] == [
        "GATE answer_quality min_pass_rate >= 0.95 (at 95 %): "
        "1.00 [0.70, 1.00] over 9 cases -> missed",
        "    (the lower end at 95 % does not clear it)",
    ]


names = st.text(st.characters(max_codepoint=0x3FF), min_size=1, max_size=40)


@settings(max_examples=50)
@given(names, names, st.integers(60, 120))
def test_lines_fit_and_cannot_control_the_terminal(judge: str, case: str, width: int) -> None:
    info = SuiteInfo("s", judge, judges=(JudgeInfo(judge),), total={"dev": 2}, selected={"dev": 2})
    results = [
        trial(case, Verdict(judge, True), status="tolerated"),
        trial(case + "2", Verdict(judge, error="x")),
    ]
    for line in summary_lines(summarise([info], results), width=width):
        assert display_width(line.text) <= width
        assert "\n" not in line.text
        assert "\x1b" not in line.text
