from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_agent_eval.suite.runner_models import asks_models, unasked

CLI = "runner: {type: cli, command: x}\n"


def found(load: Any, text: str, model: str = "") -> dict[str, str]:
    return {problem.path: problem.message for problem in unasked(load(text), model)}


@pytest.mark.parametrize("kind", ["litellm", "responses-api"])
def test_a_model_and_words_are_needed(load: Any, kind: str) -> None:
    runner = f"runner: {{type: {kind}}}\n"
    said = found(load, runner)
    assert "set models.skill, or --agent-eval-model" in said["runner.type"]
    assert f"{kind} needs execution.prompt or execution.skill" in said["execution"]
    asked = runner + "execution: {prompt: a}\n"
    assert list(found(load, asked)) == ["runner.type"]
    assert found(load, asked, "openai/x") == {}
    assert found(load, asked + "models: {skill: x}") == {}
    for words in ("skill: s", "arguments: s"):
        assert found(load, runner + f"execution: {{{words}}}\n", "x") == {}
    assert found(load, runner + "skill: s\n", "x") == {}


def test_a_step_needs_a_model_at_its_own_place(load: Any) -> None:
    text = "execution: {steps: [{id: a, prompt: x}, {id: b, prompt: y, runner: {type: litellm}}]}\n"
    assert list(found(load, CLI + text)) == ["execution.steps[1].runner.type"]
    assert asks_models(load(CLI + text).config)
    whole = "runner: {type: litellm}\n" + text.replace(
        "runner: {type: litellm}", "runner: {effort: low}"
    )
    assert list(found(load, whole)) == ["runner.type"]


def test_default_model_is_of_one_type_only(load: Any) -> None:
    text = "runner: {type: %s, settings: {default_model: m}}\nexecution: {prompt: a}\n"
    assert found(load, text % "responses-api") == {}


def test_agents_that_choose_their_model_need_words(load: Any) -> None:
    assert list(found(load, "runner: {type: claude-code}")) == ["execution"]
    assert list(found(load, "runner: {type: codex}")) == ["execution"]
    assert found(load, CLI) == {}
    assert not asks_models(load(CLI).config)


def test_a_variant_may_bring_the_model(load: Any) -> None:
    suite = load(
        "runner: {type: litellm}\nexecution: {prompt: a}\nvariants: {a: {models: {skill: x}}, b: {}}"
    )
    said = {name: unasked(replace(suite, config=one), "") for name, one in suite.variants.items()}
    assert {name: len(problems) for name, problems in said.items()} == {"a": 0, "b": 1}
