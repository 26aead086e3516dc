"""What is told of a judge with human labels."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.calibration import Calibration, Label, calibrate
from pytest_agent_eval.evidence.summary import SuiteInfo, summarise
from pytest_agent_eval.reports.calibration import calibration_lines, calibration_text
from pytest_agent_eval.reports.junit import calibration_property
from pytest_agent_eval.reports.printable import display_width
from pytest_agent_eval.reports.terminal import Line, summary_lines
from pytest_agent_eval.results import TrialResult, Verdict


def results(pairs: list[tuple[Label, Label]], **more: Any) -> list[TrialResult]:
    return [
        TrialResult("s", f"c{i:02d}", "dev", "passed", verdicts=(Verdict("tone", said),), **more)
        for i, (_, said) in enumerate(pairs)
    ]


def labels(pairs: list[tuple[Label, Label]]) -> dict[str, Label]:
    return {f"c{i:02d}": label for i, (label, _) in enumerate(pairs)}


def compared(pairs: list[tuple[Label, Label]], **more: Any) -> Calibration:
    return calibrate("tone", labels(pairs), results(pairs, **more))


GUESSING: list[tuple[Label, Label]] = [
    (True, True),
    (True, False),
    (False, False),
    (False, True),
    (True, True),
] * 2


def test_the_line_of_an_unvalidated_judge() -> None:
    assert calibration_text(compared(GUESSING)) == (
        "judge tone: unvalidated: agreement 0.60 [0.31, 0.83] over 10 labels, "
        "kappa 0.17 [-0.45, 0.78] (the interval includes chance)"
    )


def test_the_line_of_a_validated_judge() -> None:
    pairs: list[tuple[Label, Label]] = [(True, True), (False, False)] * 10
    assert calibration_text(compared(pairs)) == (
        "judge tone: validated: agreement 1.00 [0.84, 1.00] over 20 labels, kappa 1.00 [0.68, 1.00]"
    )


def test_the_line_of_scores() -> None:
    pairs: list[tuple[Label, Label]] = [(i % 5, min(4, i % 5 + (i % 3 == 0))) for i in range(30)]
    text = calibration_text(compared(pairs), 1)
    assert text.startswith("judge tone: validated: agreement 0.73 [")
    assert ", weighted kappa 0." in text
    assert ", Spearman 0." in text
    assert text.endswith("expected by chance")


@pytest.mark.parametrize(
    ("pairs", "more", "end"),
    [
        (
            [(True, True)] * 9,
            {},
            "agreement 1.00 [0.70, 1.00] over 9 labels (the human labels are all alike)",
        ),
        (
            [(True, True), (False, False)] * 3,
            {},
            "agreement 1.00 over 6 labels, kappa 1.00 (fewer than 8 independent labels (6) "
            "exclude nothing)",
        ),
        (
            [(True, True), (False, False)] * 5,
            {"group": "twins"},
            "over 10 labels (1 independent), kappa 1.00 (fewer than 8 independent labels (1) "
            "exclude nothing)",
        ),
        ([(True, 4)] * 9, {}, "no label of 9 has a verdict; left out: 9 of another type than the "
         "verdict"),
    ],
)  # fmt: skip
def test_what_is_said_where_nothing_can_be(
    pairs: list[tuple[Label, Label]], more: dict[str, Any], end: str
) -> None:
    text = calibration_text(compared(pairs, **more))
    assert text.startswith("judge tone: unvalidated: ")
    assert text.endswith(end)


def test_the_confusion_table() -> None:
    lines = calibration_lines(compared(GUESSING), 78, 1)
    assert lines[-4:] == [
        "  human  judge: false  true",
        "  false         2      2",
        "  true          2      4",
        "  differ: c01, c03, c06, c08",
    ]
    assert len(calibration_lines(compared(GUESSING), 200, 0)) == 1


def test_many_different_scores_make_no_table() -> None:
    pairs: list[tuple[Label, Label]] = [(i / 7, i / 9) for i in range(12)]
    lines = calibration_lines(compared(pairs), 78, 1)
    assert "  more than 10 different values: no table; all pairs are stored" in lines
    assert "and 1 more" in lines[-1]
    assert "more" not in calibration_lines(compared(pairs), 78, 2)[-1]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_fit(width: int) -> None:
    for line in calibration_lines(compared(GUESSING), width, 1):
        assert display_width(line) <= width


def test_the_section_of_a_suite_marks_its_numbers() -> None:
    judges = (JudgeInfo("tone", labels=labels(GUESSING)),)
    info = SuiteInfo("s", "answers", judges=judges, total={"dev": 10}, selected={"dev": 10})
    lines = summary_lines(summarise([info], results(GUESSING)), width=120)
    assert (
        Line("  tone  dev  pass rate 0.60 [0.31, 0.83] over 10 cases, unvalidated", "yellow")
        in lines
    )
    assert any(line.text.startswith("  judge tone: unvalidated: ") for line in lines)


def test_a_property_of_the_whole_report() -> None:
    name, value = calibration_property("answers [x]", compared(GUESSING))
    assert name == "agent_eval.calibration.answers [x].tone"
    assert value.startswith("judge tone: unvalidated: agreement 0.60 [0.31, 0.83]")


def test_what_was_shown_as_examples_is_said() -> None:
    pairs: list[tuple[Label, Label]] = [(True, True), (False, False)] * 10
    found = calibrate("tone", labels(pairs), results(pairs), taught=["c01", "c02"])
    assert "over 18 labels" in calibration_text(found)
    assert "; left out: 2 shown as examples" in calibration_text(found)
