from __future__ import annotations

from typing import Any

import pytest

CLI = 'runner: {type: cli, command: "true"}\noutputs: [{path: reports/}]\n'
PLACE = "judges[0].agent"


def entry(agent: str, more: str = "llm_rubric: x, feedback_type: bool") -> str:
    return f"{CLI}judges: [{{name: a, {more + ', ' if more else ''}agent: {agent}}}]"


def test_defaults_and_a_runner_that_is_a_type(load: Any) -> None:
    agent = load(entry("{}")).config.judges[0].agent
    assert agent.runner.type == "claude-code"
    assert agent.allowed_tools == ("Read", "Grep", "Glob")
    assert (agent.timeout, agent.max_budget_usd, agent.inputs, agent.context) == (600, 2, (), ())
    agent = load(entry("{runner: codex}")).config.judges[0].agent
    assert agent.runner.type == "codex"
    assert "type" in agent.runner.model_fields_set


@pytest.mark.parametrize(
    ("agent", "path", "said"),
    [
        ("{runner: clade-code}", "runner.type", "did you mean claude-code?"),
        ("{runner: {type: nonsense}}", "runner.type", "unknown runner type 'nonsense'"),
        ("{runner: cli}", "runner.command", "missing"),
        ("{runner: 3}", "runner", "3"),
        ("{runner: {type: python, function: 'fixture:x'}}", "runner.function", "a fixture belongs"),
        ("{runner: {workspace_mode: repo}}", "runner.workspace_mode", "staged copy"),
        ("{runner: {type: litellm, settings: {tool: []}}}", "runner.settings.tool", "tools"),
        ("{inputs: [../x]}", "inputs[0]", "must not hold .."),
        ("{timeout: 0}", "timeout", "greater than 0"),
    ],
)
def test_mistakes(problems: Any, agent: str, path: str, said: str) -> None:
    found = problems(entry(agent))
    assert list(found) == [f"{PLACE}.{path}"]
    assert said in found[f"{PLACE}.{path}"]


@pytest.mark.parametrize("runner", ["claude-code", "codex", "litellm", "{effort: low}"])
def test_an_agent_that_is_asked_nothing(problems: Any, runner: str) -> None:
    found = problems(entry(f"{{runner: {runner}}}", "feedback_type: bool"))
    assert "is asked nothing" in found[PLACE]


def test_a_program_may_know_its_question(load: Any) -> None:
    suite = load(entry("{runner: {type: cli, command: x}}", "feedback_type: bool"))
    assert suite.config.judges[0].kind == "agent"


@pytest.mark.parametrize(
    ("agent", "path", "said"),
    [
        ("{inputs: [report]}", "inputs[0]", "shows nothing: report"),
        ("{inputs: [elsewhere]}", "inputs[0]", "there are reports, output, _modified"),
        ("{runner: codex, max_budget_usd: 1}", "max_budget_usd", "use timeout"),
        ("{runner: codex, allowed_tools: [Read]}", "allowed_tools", "sandbox_mode"),
        ("{runner: {settings: {project_files: [a]}}}", "runner.settings.project_files", "ignored"),
    ],
)
def test_what_is_without_effect(warnings_of: Any, agent: str, path: str, said: str) -> None:
    found = warnings_of(entry(agent))
    assert list(found) == [f"{PLACE}.{path}"]
    assert said in found[f"{PLACE}.{path}"]


@pytest.mark.parametrize("inputs", ["reports", "reports/a.md", "output", "_modified/src", "."])
def test_inputs_that_can_show_something(warnings_of: Any, inputs: str) -> None:
    assert warnings_of(entry(f"{{inputs: [{inputs}]}}")) == {}


def test_a_temperature_is_for_models(warnings_of: Any) -> None:
    more = "llm_rubric: x, feedback_type: bool, temperature: 0"
    assert list(warnings_of(entry("{}", more))) == ["judges[0].temperature"]
    assert warnings_of(entry("{runner: litellm}", more)) == {}
