from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.suite import Known, unsupported
from pytest_agent_eval.suite.known import BUILTIN_RUNNER_TYPES

CLI = "runner: {type: cli, command: x}\n"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("runner: {type: python, function: a:b, sandbox: auto}", "runner.sandbox"),
        (
            CLI + "judges: [{name: a, agent: {runner: {sandbox: auto}}, prompt: x}]",
            "judges[0].agent.runner.sandbox",
        ),
        (CLI + "dataset: {path: cases.jsonl}", "dataset.path"),
        (CLI + "dataset: {path: cases.YAML}", "dataset.path"),
    ],
)
def test_what_cannot_run_yet(load: Any, text: str, path: str) -> None:
    suite = load(text)
    (problem,) = unsupported(suite)
    assert problem.path == path
    assert problem.message.endswith("not supported yet")
    assert problem.line == suite.line(path)
    assert problem.file == "eval.yaml"


def test_several_at_once(load: Any) -> None:
    text = """
        runner: {type: claude-code, sandbox: auto}
        judges:
          - {name: a, check: return 1}
        reward: {judge: a}
        mlflow: {experiment: x}
        """
    found = [problem.path for problem in unsupported(load(text))]
    assert sorted(found) == [
        "runner.sandbox",
    ]


def test_what_runs(load: Any, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").mkdir()
    text = """
        dataset: {path: cases.yaml, leak: warn}
        title: t
        runner: {type: cli, command: x}
        models: {skill: a, judge: b}
        permissions: {allow: [Skill]}
        traces: {events: false}
        execution: {steps: [{id: a, prompt: x}, {id: b, prompt: y, runner: {effort: low}}]}
        judges:
          - {name: a, check: return 1, samples: 3, step: a}
          - {name: b, builtin: cost_budget}
          - {name: c, module: m, function: f}
          - {name: d, oracle: 1}
        generation: {strategy: from-traces}
        """
    assert unsupported(load(text, Known(judge_kinds=frozenset({"oracle"})))) == ()
    known = Known(runner_types=BUILTIN_RUNNER_TYPES | {"rocket"})
    assert unsupported(load("runner: {type: rocket}", known)) == ()
    for kind in ("litellm", "responses-api"):
        text = f"runner: {{type: {kind}, sandbox: auto}}\nexecution: {{skill: s}}"
        assert unsupported(load(text)) == ()
    assert unsupported(load("runner: {type: python, function: 'a:b'}")) == ()
