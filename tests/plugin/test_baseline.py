"""A session against an earlier run: what the terminal, JUnit and summary.yaml say, and its gates."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tests.plugin.conftest import Project

SUITE = """\
name: words
dataset: {path: cases}
runner: {type: cli, command: [cat, input.yaml]}
judges:
  - name: says_yes
    check: "return 'yes' in outputs['stdout'], 'looked for yes'"
  - name: length
    check: "return len(outputs['stdout'])"
thresholds:
  says_yes: {max_drop: 0.2, min_pass_rate: 0.5}
  length: {min_mean: 1, by: topic}
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_session_against_an_earlier_run(project: Project, workers: tuple[str, ...]) -> None:
    project.suite(SUITE)
    for number in range(10):
        tags = {"tags": {"topic": "a" if number % 2 else "b"}}
        project.case(f"c{number}", {"message": "yes"}, tags)
    first = project.run("--agent-eval", "-q", "--junitxml=first.xml")
    assert first.ret == 0
    first.stdout.fnmatch_lines(
        ["GATE says_yes max_drop <= 0.2: not decided (no --agent-eval-baseline RUN)"]
    )
    gates = {case.get("name"): case for case in _gates(project, "first.xml")}
    assert [child.tag for child in gates["max_drop"]] == ["skipped"]
    assert [child.tag for child in gates["min_pass_rate"]] == []
    baseline = project.latest.name

    for number in range(8):
        project.case(f"c{number}", {"message": "nay"}, {"tags": {"topic": "a"}})
    project.case("extra", {"message": "yes"}, {"tags": {"topic": "c"}})
    result = project.run(
        "--agent-eval", "--junitxml=second.xml", f"--agent-eval-baseline={baseline}", *workers
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    shown = " ".join(result.stdout.str().split())
    assert f"against {baseline}: 8 cases changed: " in shown
    assert "says_yes worse: 1.00 -> 0.20, difference -0.80 [" in shown
    assert "p 0.0078 (p 0.016 for all judges together)" in shown
    assert "only in this run, 1 case: extra" in shown
    assert "GATE says_yes max_drop <= 0.2: 0.80 [" in shown
    assert "over 10 cases -> missed" in shown
    assert "GATE length[topic=c] min_mean >= 1:" in shown
    counts = project.summary()["comparison"]["judges"]["says_yes"]
    assert (counts["outcome"], counts["pairs"], counts["only_new"]) == ("worse", 10, ["extra"])
    assert len(counts["regressed"]) == 8

    cases = {
        (case.get("classname"), case.get("name")): case for case in _gates(project, "second.xml")
    }
    [failure] = cases["eval.yaml.gate.says_yes", "max_drop"]
    assert failure.tag == "failure"
    assert "max_drop <= 0.2: 0.80" in (failure.text or "")
    assert [*cases["eval.yaml.gate.length(topic=c)", "min_mean"]] == []
    assert len(cases) == 5
    root = ET.parse(project.path / "second.xml").getroot()
    named = {p.get("name"): p.get("value") or "" for p in root.iter("property")}
    assert named["agent_eval.comparison.words.says_yes"].startswith("worse: 1.00 -> 0.20")
    result.assert_outcomes(failed=0, passed=3)  # a gate is no test; gated judges tolerate
    assert "8 tolerated" in shown


def _gates(project: Project, name: str) -> list[ET.Element]:
    root = ET.parse(project.path / name).getroot()
    return [case for case in root.iter("testcase") if ".gate." in (case.get("classname") or "")]
