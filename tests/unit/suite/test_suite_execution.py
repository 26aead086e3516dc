from __future__ import annotations

from typing import Any

import pytest


def test_skill_and_prompt_exclude_each_other(problems: Any) -> None:
    assert "skill and prompt" in problems("execution: {skill: a, prompt: b}")["execution"]


def test_top_level_skill_is_moved_and_warned_about(load: Any) -> None:
    suite = load("skill: a")
    assert suite.config.execution.skill == "a"
    (warning,) = suite.warnings
    assert warning.path == "skill"
    assert "execution.skill" in warning.message


@pytest.mark.parametrize("other", ["skill", "prompt"])
def test_top_level_skill_besides_another(problems: Any, other: str) -> None:
    assert problems(f"skill: a\nexecution: {{{other}: b}}") == {
        "skill": f"excludes execution.{other}; keep only that one"
    }


def test_an_agent_that_is_asked_nothing(warnings_of: Any) -> None:
    assert "asked nothing" in warnings_of("runner: {type: claude-code}")["execution"]
    assert warnings_of("runner: {type: cli, command: x}") == {}
    assert warnings_of("execution: {arguments: '{prompt}'}") == {}


STEPS = """
execution:
  steps:
    - {id: plan, prompt: "{topic}", timeout: 5}
    - id: write
      skill: writer
      arguments: "{{ steps.plan.output }}"
      env: {A: b}
      runner: {type: cli, command: x}
      on_failure: continue
judges:
  - {name: a, check: return True, step: write}
"""


def test_steps(load: Any) -> None:
    pytest.importorskip("pytest_agent_eval.cases.templates")
    suite = load(STEPS)
    plan, write = suite.config.execution.steps
    assert (plan.id, plan.timeout, write.on_failure) == ("plan", 5.0, "continue")
    assert suite.warnings == ()


@pytest.mark.parametrize(
    ("execution", "path", "word"),
    [
        ("{mode: batch, steps: [{id: a, prompt: x}]}", "execution.steps", "batch"),
        ("{prompt: x, steps: [{id: a, prompt: x}]}", "execution.steps", "replace prompt"),
        ("{steps: [{id: a, prompt: x}, {id: a, skill: x}]}", "execution.steps[1].id", "step 1"),
        ("{steps: [{id: a-b, prompt: x}]}", "execution.steps[0].id", "identifier"),
        ("{steps: [{prompt: x}]}", "execution.steps[0].id", "missing"),
        ("{steps: [{id: a, prompt: x, skill: y}]}", "execution.steps[0]", "exclude"),
        ("{steps: [{id: a}]}", "execution.steps[0]", "needs a skill or a prompt"),
        ("{steps: [{id: a, prompt: x, timeout: true}]}", "execution.steps[0].timeout", "number"),
        (
            "{steps: [{id: a, prompt: x, runner: {type: cli}}]}",
            "execution.steps[0].runner.command",
            "missing",
        ),
        (
            "{steps: [{id: a, prompt: x, runner: {typ: cli}}]}",
            "execution.steps[0].runner.typ",
            "did you mean type?",
        ),
        ("{steps: [{id: a, prompt: x, env: {A: 1}}]}", "execution.steps[0].env.A", "quote"),
    ],
)
def test_wrong_steps(problems: Any, execution: str, path: str, word: str) -> None:
    found = problems(f"execution: {execution}")
    assert list(found) == [path]
    assert word in found[path]


def test_steps_and_the_old_skill(problems: Any) -> None:
    found = problems("skill: x\nexecution: {steps: [{id: a, prompt: x}]}")
    assert "replace skill" in found["execution.steps"]


def test_a_step_of_a_command_needs_no_words(load: Any) -> None:
    assert load("runner: {type: cli, command: x}\nexecution: {steps: [{id: a}]}")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("execution: {prompt: '{{ input.prompt'}", "execution.prompt"),
        ("execution: {arguments: '{% if %}'}", "execution.arguments"),
        ("execution: {steps: [{id: a, prompt: '{{ x'}]}", "execution.steps[0].prompt"),
        ("judges: [{name: a, feedback_type: bool, prompt: '{{ x'}]", "judges[0].prompt"),
    ],
)
def test_broken_templates(problems: Any, text: str, path: str) -> None:
    pytest.importorskip("pytest_agent_eval.cases.templates")
    assert list(problems(text)) == [path]


def test_batch_mode_warns_of_what_it_ignores(warnings_of: Any) -> None:
    found = warnings_of(
        """
        dataset: {path: c, workspace: {files: [a]}}
        execution: {mode: batch, skill: x}
        hooks: {before_each: [{command: x}], before_all: [{command: y}]}
        outputs: [{path: a, batch_pattern: 'T-{n:03d}'}]
        """
    )
    assert set(found) == {"dataset.workspace.files", "hooks.before_each"}


@pytest.mark.parametrize("pattern", ["{m}", "T-{n}{n}", "T-*", "T", "{n:x}"])
def test_wrong_batch_patterns(problems: Any, pattern: str) -> None:
    found = problems(
        f"execution: {{mode: batch}}\noutputs: [{{path: a, batch_pattern: '{pattern}'}}]"
    )
    assert list(found) == ["outputs[0].batch_pattern"]


def test_batch_pattern_in_case_mode(warnings_of: Any) -> None:
    found = warnings_of("execution: {skill: x}\noutputs: [{path: a, batch_pattern: '*'}]")
    assert list(found) == ["outputs[0].batch_pattern"]
