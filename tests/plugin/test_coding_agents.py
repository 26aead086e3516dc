from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.unit.runners.fake_tools import install

SUITE = """\
dataset: {{path: cases}}
execution: {{prompt: "{{message}}"}}
runner: {{type: {kind}, env: {{PATH: "{path}"}}}}
models: {{skill: {model}}}
judges:
  - name: wrote
    check: |
      names = [call["name"] for call in outputs["tool_calls"]]
      return "{call}" in names and outputs["conversation"].endswith("Done."), str(names)
  - name: cheap
    builtin: token_budget
    arguments: {{max_tokens: 1000}}
"""


@pytest.mark.parametrize(
    ("kind", "program", "printed", "model", "call"),
    [
        ("claude-code", "claude", "claude_write", "claude-sonnet-4-5", "Write"),
        ("codex", "codex", "codex_write", "gpt-5.1-codex", "file_change"),
    ],
)
def test_cases_are_worked_on_and_judged(
    project: Project, kind: str, program: str, printed: str, model: str, call: str
) -> None:
    tool = install(project.path / "bin", program, printed)
    project.suite(SUITE.format(kind=kind, path=tool.path, model=model, call=call))
    project.cases(2)
    result = project.run("--agent-eval")
    result.assert_outcomes(passed=2)
    stored = project.results()["case-001"]
    assert stored.usage.model == model
    assert stored.usage.output_tokens
    assert (stored.usage.cost_usd is None) is (kind == "codex")
    record = project.latest / stored.record
    events = [json.loads(line) for line in (record / "events.jsonl").read_text().splitlines()]
    assert {"message", "tool_call", "tool_result", "result"} <= {e["type"] for e in events}


def test_a_provider_that_refuses_is_an_error_and_no_verdict(project: Project) -> None:
    tool = install(project.path / "bin", "claude", "claude_429", status=1)
    project.suite(SUITE.format(kind="claude-code", path=tool.path, model="m", call="Write"))
    project.cases(1)
    result = project.run("--agent-eval")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*Request rejected (429)*"])
    stored: Any = project.results()["case-001"]
    assert (stored.status, stored.kind, stored.verdicts) == ("error", "infrastructure", ())


def test_a_spent_budget_fails_the_case(project: Project) -> None:
    tool = install(project.path / "bin", "claude", "claude_budget", status=1)
    project.suite(SUITE.format(kind="claude-code", path=tool.path, model="m", call="Write"))
    project.cases(1)
    project.run("--agent-eval").assert_outcomes(failed=1)
    assert project.results()["case-001"].kind == "budget"
