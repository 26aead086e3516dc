from __future__ import annotations

from typing import Any

import pytest

from pytest_agent_eval.suite import Known, missing_models
from pytest_agent_eval.suite.known import BUILTIN_JUDGES, LLM_BUILTIN_JUDGES, both_forms


@pytest.mark.parametrize(
    ("judge", "kind"),
    [
        ("{name: a, builtin: cost_budget}", "builtin"),
        ("{name: a, builtin: efficiency/cost_budget}", "builtin"),
        ("{name: a, check: return True}", "check"),
        ("{name: a, agent: {}, llm_rubric: x}", "agent"),
        ("{name: a, llm_rubric: x}", "llm"),
        ("{name: a, prompt: x}", "llm"),
        ("{name: a, prompt_file: x.md}", "llm"),
        ("{name: a, module: m.n, function: f}", "function"),
        ("{name: pairwise}", "pairwise"),
        ("{name: pairwise, prompt: x}", "pairwise"),
    ],
)
def test_kinds(load: Any, judge: str, kind: str) -> None:
    assert load(f"judges: [{judge}]").config.judges[0].kind == kind


@pytest.mark.parametrize(
    ("judge", "path", "words"),
    [
        ("{name: a}", "judges[0]", ["no kind", "builtin", "check", "llm_rubric"]),
        ("{name: a, check: ''}", "judges[0].check", ["'a': check is empty"]),
        ("{name: a, llm_rubric: ''}", "judges[0].llm_rubric", ["'a': llm_rubric is empty"]),
        (
            "{name: a, prompt: x, feedback_type: bool, pass_if: value >= 4}",
            "judges[0].pass_if",
            ["value >= 4", "true", "false", "leave pass_if out"],
        ),
        ("{check: return 1}", "judges[0].name", ["missing"]),
        ("{name: '', check: return 1}", "judges[0].name", ["empty"]),
        ("{name: execution, check: return 1}", "judges[0].name", ["reserved"]),
        ("{name: x-a, check: return 1}", "judges[0].name", ["x-"]),
        ("{name: a, builtin: cost_budget, prompt: x}", "judges[0]", ["builtin", "prompt"]),
        ("{name: a, builtin: cost_budget, agent: {}}", "judges[0]", ["builtin", "agent"]),
        (
            "{name: a, builtin: cost_budget, module: m, function: f}",
            "judges[0]",
            ["builtin", "module", "function"],
        ),
        ("{name: pairwise, check: return 1}", "judges[0]", ["pairwise", "check"]),
        ("{name: a, module: m}", "judges[0].function", ["missing"]),
        ("{name: a, function: m}", "judges[0].module", ["missing"]),
        ("{name: a, builtin: nothing_like_it}", "judges[0].builtin", ["efficiency/cost_budget"]),
        ("{name: a, builtin: 3}", "judges[0].builtin", ["string"]),
        ("{name: a, prompt_file: ../x}", "judges[0].prompt_file", [".."]),
        ("{name: a, prompt: x, context: [a, ../b]}", "judges[0].context[1]", [".."]),
        ("{name: a, prompt: x, samples: 0}", "judges[0].samples", ["at least 1"]),
        ("{name: a, prompt: x, step: s}", "judges[0].step", ["no steps"]),
        ("{name: a, check: return 1, timeout: 0}", "judges[0].timeout", ["greater than 0"]),
        ("{name: a, check: return 1, feedback_type: str}", "judges[0].feedback_type", ["float"]),
        ("{name: a, check: return 1, score_range: [1]}", "judges[0].score_range", ["two"]),
        ("{name: a, check: return 1, score_range: [1, true]}", "judges[0].score_range", ["finite"]),
        ("{name: a, check: return 1, score_range: 3}", "judges[0].score_range", ["list"]),
        ("{name: a, check: return 1, score_range: [2, 2]}", "judges[0].score_range", ["increase"]),
        ("{name: a, check: return 1, pass_if: valu}", "judges[0].pass_if", ["value"]),
        ("{name: a, check: return 1, if: true}", "judges[0].if", ["quote"]),
        (
            "{name: a, builtin: safety/no_harmful_content, feedback_type: int}",
            "judges[0]",
            ["boolean", "feedback_type"],
        ),
        (
            "{name: a, prompt: x, agent: {runner: {workspace_mode: repo}}}",
            "judges[0].agent.runner.workspace_mode",
            ["checkout"],
        ),
        (
            "{name: a, prompt: x, agent: {runner: {type: cli}}}",
            "judges[0].agent.runner.command",
            ["missing"],
        ),
        ("{name: a, prompt: x, agent: {tool: x}}", "judges[0].agent.tool", ["unknown key"]),
        ("{name: a, prompt: x, examples: {count: 1}}", "judges[0].examples.source", ["missing"]),
    ],
)
def test_wrong_judges(problems: Any, judge: str, path: str, words: list[str]) -> None:
    found = problems(f"judges: [{judge}]")
    assert list(found) == [path]
    for word in words:
        assert word in found[path]


def test_an_unknown_step_is_listed(problems: Any) -> None:
    steps = "execution: {steps: [{id: plan, prompt: x}]}"
    text = f"{steps}\njudges: [{{name: a, check: return 1, step: pla}}]"
    assert problems(text) == {"judges[0].step": "no step has the id 'pla'; did you mean plan?"}


def test_plugin_kinds(load: Any, problems: Any) -> None:
    known = Known(judge_kinds=frozenset({"oracle"}))
    judge = load(
        "judges: [{name: a, oracle: {deep: 1}, score_range: [0, 1]}]", known
    ).config.judges[0]
    assert (judge.kind, judge.extra) == ("oracle", {"deep": 1})
    assert load("judges: [{name: a, check: return 1}]", known).config.judges[0].extra is None
    assert "oracle" in problems("judges: [{name: a}]", known)["judges[0]"]
    found = problems("judges: [{name: a, oracl: 1, check: return 1}]", known)
    assert found == {"judges[0].oracl": "unknown key; did you mean oracle?"}
    assert (
        "oracle" in problems("judges: [{name: a, builtin: regex, oracle: 1}]", known)["judges[0]"]
    )


def test_a_condition_may_turn_a_boolean_round(load: Any) -> None:
    for source in ("not value", "value == False", "value < 1"):
        entry = f"{{name: a, check: return 1, feedback_type: bool, pass_if: {source}}}"
        assert load(f"judges: [{entry}]").config.judges[0].pass_if == source


def test_of_two_questions_the_first_is_asked(warnings_of: Any) -> None:
    entry = "{name: a, prompt_file: p.md, prompt: x, llm_rubric: y, feedback_type: bool}"
    said = warnings_of(f"judges: [{entry}]")
    assert {path: text for path, text in said.items() if path.startswith("judges")} == {
        "judges[0].prompt": "'a': llm_rubric is the question, prompt is ignored",
        "judges[0].prompt_file": "'a': llm_rubric is the question, prompt_file is ignored",
    }


def test_a_number_without_a_bound_asserts_nothing(warnings_of: Any) -> None:
    said = warnings_of("judges: [{name: a, llm_rubric: x}]")["judges[0]"]
    assert "asserts nothing without pass_if or a threshold" in said
    assert "feedback_type: bool" in said
    said = warnings_of("judges: [{name: a, llm_rubric: x, pass_if: value > 3}]")["judges[0]"]
    assert "asserts nothing" not in said


def test_a_deciding_kind_that_ignores_another(warnings_of: Any) -> None:
    found = warnings_of("execution: {skill: s}\njudges: [{name: a, check: return 1, prompt: x}]")
    assert found == {"judges[0]": "'a': check decides, llm is ignored"}


def test_samples_of_a_check(warnings_of: Any) -> None:
    found = warnings_of("execution: {skill: s}\njudges: [{name: a, check: return 1, samples: 3}]")
    assert list(found) == ["judges[0].samples"]


@pytest.mark.parametrize(
    ("judge", "warned"),
    [
        ("llm_rubric: x", True),
        ("llm_rubric: x, feedback_type: int", True),
        ("llm_rubric: x, feedback_type: bool", False),
        ("llm_rubric: x, score_range: [1, 5]", False),
        ("builtin: output_completeness", False),
        ("check: return 3", False),
    ],
)
def test_a_scale_is_asked_of_models_only(warnings_of: Any, judge: str, warned: bool) -> None:
    found = warnings_of(f"execution: {{skill: s}}\njudges: [{{name: a, {judge}}}]")
    assert ("score_range" in str(found)) is warned


def test_checks_compile_with_their_own_lines(problems: Any, load: Any) -> None:
    text = """
        judges:
          - name: a
            check: |

              import re

              return re.match(
        """
    assert "judges[0].check" in problems(text)
    suite = load("judges:\n  - name: a\n    check: |\n      return 1\n")
    assert suite.line("judges[0].check") == 4
    assert suite.value_line("judges[0].check") == 5


def test_missing_models(load: Any) -> None:
    suite = load(
        """
        execution: {skill: s}
        judges:
          - {name: a, check: return 1}
          - {name: b, llm_rubric: x, feedback_type: bool}
          - {name: c, llm_rubric: x, feedback_type: bool, model: m}
          - {name: d, builtin: output_completeness}
          - {name: pairwise}
        """
    )
    found = missing_models(suite, {})
    assert [problem.path for problem in found] == ["judges[1]", "judges[3]", "judges[4]"]
    assert "b" in found[0].message
    assert found[0].line == 6
    assert missing_models(suite, {"EVAL_JUDGE_MODEL": "m"}) == ()
    assert len(missing_models(suite, {"EVAL_JUDGE_MODEL": " "})) == 3
    with_model = load("models: {judge: m}\njudges: [{name: b, llm_rubric: x}]")
    assert missing_models(with_model, {}) == ()


def test_the_table_of_builtins_is_that_of_the_files() -> None:
    from pytest_agent_eval.judges.builtin_files import builtin_names

    shipped = builtin_names()
    assert set(shipped) <= BUILTIN_JUDGES
    asking = {name for name, file in shipped.items() if file.endswith(".md")}
    assert asking <= LLM_BUILTIN_JUDGES
    assert not set(shipped) - asking & LLM_BUILTIN_JUDGES


def test_a_project_s_own_builtins(load: Any, problems: Any) -> None:
    known = Known(builtins=both_forms(BUILTIN_JUDGES | {"house/tone"}))
    assert load("judges: [{name: a, builtin: tone}]", known).config.judges[0].builtin == "tone"
    assert "house/tone" in problems("judges: [{name: a, builtin: zzz}]", known)["judges[0].builtin"]
