"""``reward``: from eval.yaml to the stored line and every report."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.plugin.conftest import Project

SUITE = """\
name: graded
dataset: {path: cases}
runner: {type: cli, command: "cp input.yaml {output_dir}/copy.yaml"}
judges:
  - {name: copied, check: "return 'copy.yaml' in outputs['files']", feedback_type: bool}
  - {name: size, check: "return outputs['annotations']['size']", score_range: [0, 10]}
  - {name: rare, check: "return 1", score_range: [0, 2], if: "annotations.get('rare')"}
reward: {weights: {size: 3, rare: 1}}
"""


def test_a_reward_is_stored_reported_and_made_anew(project: Project) -> None:
    project.suite(SUITE)
    project.case("large", annotations={"size": 10})
    project.case("rare", annotations={"size": 4, "rare": True})
    project.case("wrong", annotations={"size": 11})
    result = project.run("--agent-eval", "--junitxml=junit.xml", "--agent-eval-split=all")
    result.assert_outcomes(passed=2, failed=1)
    stored = project.results()
    rewards = {name: one.reward for name, one in stored.items()}
    assert rewards == {"large": 1.0, "rare": pytest.approx((3 * 0.4 + 0.5) / 4), "wrong": None}
    assert stored["wrong"].reward_reason == "judge size is in error"
    assert stored["rare"].reward_reason == ""
    result.stdout.fnmatch_lines(["  reward  dev      mean 0.71 *", "*holdout  1 case without a *"])
    overall = project.summary()["reward"]["all"]
    assert (overall["mean"], overall["cases"], overall["without"]) == (pytest.approx(0.7125), 2, 1)
    found = {
        case.get("name"): value.get("value")
        for case in ElementTree.parse(project.path / "junit.xml").iter("testcase")
        for value in case.iter("property")
        if value.get("name") == "agent_eval.reward"
    }
    assert found == {"large": "1", "rare": "0.425"}

    # The verdicts stand; what they come to is worked out anew.
    project.suite(SUITE.replace("{weights: {size: 3, rare: 1}}", "{formula: 1 - size}"))
    project.run("--agent-eval", "--agent-eval-resume=latest", "--agent-eval-split=all")
    rewards = {name: one.reward for name, one in project.results().items()}
    assert rewards == {"large": 0.0, "rare": pytest.approx(0.6), "wrong": None}
    assert project.summary()["reward"]["all"]["mean"] == pytest.approx(0.3)
