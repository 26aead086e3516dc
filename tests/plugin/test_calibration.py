"""Judges with human labels: one that is validated, one that is not, and labels that are wrong."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from .conftest import Project

SUITE = """\
name: tone
dataset: {path: cases}
runner: {type: cli, command: [cat, input.yaml]}
judges:
  - name: apologises
    labels: human/apologises.yaml
    check: return 'sorry' in outputs['final_message'], 'looked for sorry'
  - name: friendly
    labels: human/friendly.yaml
    check: return '!' in outputs['final_message'], 'looked for an exclamation mark'
  - name: warmth
    score_range: [1, 5]
    labels: human/warmth.yaml
    check: return 1 + outputs['final_message'].count('thank'), 'counted thanks'
thresholds:
  apologises: {min_pass_rate: 0.3}
  friendly: {min_pass_rate: 0.3}
"""
CASES = 16


@pytest.fixture
def labelled(project: Project) -> Project:
    project.suite(SUITE)
    labels: dict[str, list[str]] = {"apologises": [], "friendly": [], "warmth": []}
    for number in range(CASES):
        name = f"case-{number:02d}"
        sorry, loud, thanks = number % 2 == 0, number % 4 < 2, number % 5
        text = f"{'sorry' if sorry else 'no'}{'!' if loud else '.'} {'thank you ' * thanks}"
        project.case(name, {"message": text})
        labels["apologises"].append(f"{name}: {str(sorry).lower()}")
        labels["friendly"].append(f"{name}: {str(number % 3 == 0).lower()}")
        labels["warmth"].append(f"{name}: {min(5, thanks + 2)}")
    for judge, lines in labels.items():
        project.write(f"human/{judge}.yaml", "\n".join(lines))
    return project


def _properties(project: Project) -> dict[str, str]:
    (suite,) = ET.parse(project.path / "report.xml").getroot()
    return {one.attrib["name"]: one.attrib["value"] for one in suite.findall("properties/property")}


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_validated_and_an_unvalidated_judge(labelled: Project, workers: tuple[str, ...]) -> None:
    run = labelled.subprocess if workers else labelled.run
    result = run("--agent-eval", "--junitxml=report.xml", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*judge apologises: validated: agreement 1.00 [[]0.81, 1.00] over 16 labels,*",
            "*judge friendly: unvalidated: agreement 0.50 *",
            "*judge warmth: validated: agreement 0.19 *",
            "GATE apologises min_pass_rate >= 0.3: 0.50 [[]*[]] over 16 cases -> passed",
            "GATE friendly min_pass_rate >= 0.3: 0.50 [[]*[]] over 16 cases, unvalidated -> passed",
        ]
    )
    summary: dict[str, Any] = labelled.summary()
    calibration = summary["calibration"]
    assert {name: found["validated"] for name, found in calibration.items()} == {
        "apologises": True,
        "friendly": False,
        "warmth": True,
    }
    assert calibration["friendly"]["reason"] == "the interval includes chance"
    marked = [name for name, judge in summary["judges"].items() if "unvalidated" in judge]
    assert marked == ["friendly"]
    assert [gate.get("unvalidated") for gate in summary["gates"]] == [None, True]
    assert summary["per_case"]["case-00"]["friendly"]["unvalidated"] is True

    properties = _properties(labelled)
    assert properties["agent_eval.calibration.tone.friendly"].startswith(
        "judge friendly: unvalidated: agreement 0.50 ["
    )
    assert ": validated: " in properties["agent_eval.calibration.tone.apologises"]


def test_the_confusion_table_is_shown_when_more_is_asked_for(labelled: Project) -> None:
    quiet, more = labelled.run("--agent-eval"), labelled.run("--agent-eval", "-v")
    assert "human  judge:" not in quiet.stdout.str()
    more.stdout.fnmatch_lines(
        [
            "*judge friendly: unvalidated*",
            "    human  judge: false  true",
            "    false         5      5",
            "    true          3      3",
            "    differ: case-01, *",
        ]
    )


def test_a_gate_that_is_missed_says_that_its_judge_is_unvalidated(labelled: Project) -> None:
    labelled.suite(SUITE.replace("friendly: {min_pass_rate: 0.3}", "friendly: {min_mean: 0.9}"))
    result = labelled.run("--agent-eval")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["GATE friendly min_mean >= 0.9: *, unvalidated -> missed"])


def test_few_cases_validate_nothing(labelled: Project) -> None:
    result = labelled.run("--agent-eval", "-k", "case-00 or case-01 or case-02")
    result.stdout.fnmatch_lines(
        ["*judge apologises: unvalidated: agreement 1.00 over 3 labels, kappa 1.00; left*"]
    )
    assert "13 not run" in result.stdout.str()
    reason = labelled.summary()["calibration"]["apologises"]["reason"]
    assert reason == "fewer than 8 independent labels (3) exclude nothing"


def test_a_label_of_a_case_that_does_not_exist(labelled: Project) -> None:
    file = labelled.path / "human" / "friendly.yaml"
    file.write_text(file.read_text() + "\ncase-90: true\n")
    result = labelled.run("--agent-eval")
    assert result.ret != 0
    message = "human/friendly.yaml:17: case-90: the dataset has no case of this name; did you mean"
    result.stdout.fnmatch_lines([f"*{message} case-??[?]"])
    assert not labelled.runs


def test_labels_of_cases_that_the_suite_leaves_out_are_no_mistake(labelled: Project) -> None:
    labelled.suite(SUITE.replace("{path: cases}", "{path: cases, cases: [{exclude: case-15}]}"))
    result = labelled.run("--agent-eval")
    assert result.ret == 0
    found = labelled.summary()["calibration"]["apologises"]
    assert (found["compared_cases"], found["not_run_cases"]) == (15, 1)


def test_other_labels_ask_no_judge_again(labelled: Project) -> None:
    labelled.run("--agent-eval")
    first = labelled.results()
    labelled.write(
        "human/friendly.yaml",
        "\n".join(f"case-{n:02d}: {str(n % 4 < 2).lower()}" for n in range(CASES)),
    )
    result = labelled.run("--agent-eval", "--agent-eval-resume")
    result.stdout.fnmatch_lines(["*judge friendly: validated: agreement 1.00*"])
    assert labelled.results() == first


def test_a_stored_run_says_the_same(
    labelled: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_agent_eval.cli import main

    labelled.run("--agent-eval")
    capsys.readouterr()
    monkeypatch.chdir(labelled.path)
    assert main(["show"]) == 0
    run = capsys.readouterr().out
    assert "judge friendly: unvalidated: agreement 0.50 " in run
    assert "over 16 cases, unvalidated -> passed" in run
    assert main(["show", "latest", "case-00"]) == 0
    case = capsys.readouterr().out
    assert "judge friendly: unvalidated" in case
    assert "judge apologises" not in case
