"""thresholds, reward, permissions, inputs, outputs, generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

JUDGES = """
execution: {skill: s}
judges:
  - {name: yes_no, check: return True, feedback_type: bool}
  - {name: open, check: return True}
  - {name: scale, check: return 3, score_range: [1, 5]}
  - {name: count, check: return 3, feedback_type: int}
  - {name: rubric, llm_rubric: x, score_range: [1, 5]}
  - {name: pairwise, prompt: x}
"""


@pytest.mark.parametrize(
    ("threshold", "path", "words"),
    [
        ("{opn: {min_mean: 1}}", "thresholds.opn", ["did you mean open?", "yes_no"]),
        ("{open: {min_pass: 1}}", "thresholds.open.min_pass", ["min_pass_rate"]),
        ("{open: {min_pass_rate: 2}}", "thresholds.open.min_pass_rate", ["at most 1"]),
        ("{open: {min_pass_rate: true}}", "thresholds.open.min_pass_rate", ["number"]),
        ("{open: {min_cases: 0}}", "thresholds.open.min_cases", ["at least 1"]),
        ("{open: {min_cases: 1.5}}", "thresholds.open.min_cases", ["whole"]),
        ("{open: {min_mean: 1, confidence: 1}}", "thresholds.open.confidence", ["less than 1"]),
        ("{open: {min_mean: 1, split: all}}", "thresholds.open.split", ["dev, holdout"]),
        ("{open: {min_mean: .nan}}", "thresholds.open.min_mean", ["finite"]),
        ("{scale: {min_pass_rate: 1}}", "thresholds.scale.min_pass_rate", ["min_mean"]),
        ("{count: {min_pass_rate: 1}}", "thresholds.count.min_pass_rate", ["min_mean"]),
        ("{open: {min_win_rate: 1}}", "thresholds.open.min_win_rate", ["pairwise"]),
        ("{pairwise: {min_mean: 1}}", "thresholds.pairwise.min_mean", ["min_win_rate"]),
        ("{pairwise: {min_pass_rate: 1}}", "thresholds.pairwise.min_pass_rate", ["min_win_rate"]),
        ("{open: 3}", "thresholds.open", ["mapping"]),
    ],
)
def test_wrong_thresholds(problems: Any, threshold: str, path: str, words: list[str]) -> None:
    found = problems(f"{JUDGES}thresholds: {threshold}")
    assert list(found) == [path]
    for word in words:
        assert word in found[path]


def test_thresholds_without_judges(problems: Any) -> None:
    assert "there are no judges" in problems("thresholds: {a: {min_mean: 1}}")["thresholds.a"]


def test_sound_thresholds(load: Any) -> None:
    suite = load(
        f"""{JUDGES}
thresholds:
  yes_no: {{min_pass_rate: 1, min_mean: 0.9, max_error_rate: 0, split: holdout, confidence: 0.95}}
  open: {{min_pass_rate: 0.5, min_cases: 3}}
  scale: {{min_mean: 3.5}}
  pairwise: {{min_win_rate: 0.5}}
"""
    )
    assert suite.warnings == ()
    assert suite.config.thresholds["open"].min_cases == 3


def test_thresholds_that_say_little(warnings_of: Any) -> None:
    found = warnings_of(f"{JUDGES}thresholds: {{open: {{}}, scale: {{min_mean: 6}}}}")
    assert "no bound" in found["thresholds.open"]
    assert "end at 5" in found["thresholds.scale.min_mean"]
    assert "end at 1" in str(warnings_of(f"{JUDGES}thresholds: {{yes_no: {{min_mean: 2}}}}"))
    undeclared = "execution: {skill: s}\njudges: [{name: q, llm_rubric: x}]\n"
    found = warnings_of(f"{undeclared}thresholds: {{q: {{min_pass_rate: 1}}}}")
    assert "feedback_type: bool" in found["thresholds.q.min_pass_rate"]


@pytest.mark.parametrize(
    ("reward", "path", "words"),
    [
        ("{judge: opn}", "reward.judge", ["did you mean open?"]),
        ("{judge: open, formula: open}", "reward", ["formula"]),
        ("{judge: open, weights: {open: 1}}", "reward", ["weights"]),
        ("{judge: open, raw: [open]}", "reward", ["raw"]),
        ("{weights: {opn: 1}}", "reward.weights.opn", ["open"]),
        ("{weights: {open: -1}}", "reward.weights.open", ["at least 0"]),
        ("{raw: [zz]}", "reward.raw[0]", ["judges: yes_no"]),
        ("{formula: 'open +'}", "reward.formula", ["expression"]),
        ("{formula: 'opn + 1'}", "reward.formula", ["open"]),
        ("{formula: '__import__'}", "reward.formula", ["__import__"]),
        ("{formula: 'open ** 2'}", "reward.formula", ["Pow"]),
        ("{formula: \"open * 'a'\"}", "reward.formula", ["numbers"]),
        ("{formula: 'open * 10000000'}", "reward.formula", ["too large"]),
        ("{formula: 'open.x'}", "reward.formula", ["Attribute"]),
        ("{formula: 'print(open)'}", "reward.formula", ["print"]),
        ("{formula: 'open.x()'}", "reward.formula", ["call"]),
        ("{formula: 'x = open'}", "reward.formula", ["end in an expression"]),
        (f"{{formula: '{'open + ' * 200}open'}}", "reward.formula", ["parts"]),
        (f"{{formula: '{'(' * 300}'}}", "reward.formula", ["expression"]),
        ("{gate: 1}", "reward.gate", ["true or false"]),
        ("{weights: {open: 0, scale: 0}}", "reward.weights", ["all weights are 0"]),
        ("{judge: pairwise}", "reward.judge", ["compares two runs"]),
        ("{weights: {pairwise: 1}}", "reward.weights.pairwise", ["compares two runs"]),
        ("{formula: pairwise}", "reward.formula", ["unknown name pairwise"]),
        ('{formula: "x = y\\ny = x\\nx"}', "reward.formula", ["unknown name y"]),
        ('{formula: "open\\nopen"}', "reward.formula", ["only its last"]),
        ('{formula: "_x = open\\n_x"}', "reward.formula", ["must not begin with _"]),
        ("{formula: 'mean + 1'}", "reward.formula", ["mean is a function; call it"]),
        ("{formula: 'max(open, key=abs)'}", "reward.formula", ["call"]),
    ],
)
def test_wrong_rewards(load: Any, reward: str, path: str, words: list[str]) -> None:
    from pytest_agent_eval.errors import SuiteError

    with pytest.raises(SuiteError) as caught:
        load(f"{JUDGES}reward: {reward}")
    assert {problem.path for problem in caught.value.problems} == {path}
    for word in words:
        assert word in str(caught.value)


def test_sound_rewards(load: Any, warnings_of: Any) -> None:
    formula = "total = 2 * open + min(scale, 3)\ntotal / 3 if yes_no else 0"
    text = f"{JUDGES}reward:\n  formula: |\n    " + formula.replace("\n", "\n    ")
    assert load(text).config.reward.formula.strip() == formula
    assert load(f"{JUDGES}reward: {{judge: open, normalize: true}}").config.reward.judge == "open"
    assert (
        load(f"{JUDGES}reward: {{weights: {{open: 2}}, raw: [scale]}}").config.reward.gate is None
    )
    found = warnings_of(f"{JUDGES}reward: {{judge: open, score_range: [1, 5]}}")
    assert list(found) == ["reward.score_range"]
    found = warnings_of(f"{JUDGES}reward: {{formula: open, weights: {{open: 1}}, normalize: true}}")
    assert sorted(found) == ["reward.normalize", "reward.weights"]
    assert "every judge counts the same" in warnings_of(f"{JUDGES}reward: {{}}")["reward"]


@pytest.mark.parametrize(
    ("permissions", "path", "word"),
    [
        ("{allow: Skill}", "permissions.allow", "list"),
        ("{allow: [3]}", "permissions.allow[0]", "pattern"),
        ("{allow: ['']}", "permissions.allow[0]", "pattern"),
        ("{allow: [{path: a}]}", "permissions.allow[0].tools", "missing"),
        ("{allow: [{path: a, tools: []}]}", "permissions.allow[0].tools", "at least one"),
        ("{allow: [{path: ../a, tools: [Read]}]}", "permissions.allow[0].path", ".."),
        ("{allow: [{path: a, tools: [Bash]}]}", "permissions.allow[0].tools[0]", "Bash"),
        ("{deny: [{path: a, tools: [Reed]}]}", "permissions.deny[0].tools[0]", "Read"),
        ("{deny: [{path: a, tools: [WebFetch]}]}", "permissions.deny[0].tools[0]", "Grep"),
        ("{deny: [{path: a, tool: [Read], tools: [Read]}]}", "permissions.deny[0].tool", "tools"),
    ],
)
def test_wrong_permissions(problems: Any, permissions: str, path: str, word: str) -> None:
    found = problems(f"permissions: {permissions}")
    assert list(found) == [path]
    assert word in found[path]


def test_sound_permissions(load: Any) -> None:
    permissions = load(
        """
        permissions:
          allow: [Skill, 'Write(/tmp/**)', {path: docs/, tools: [Read]}]
          deny: [{path: eval/, tools: [Read, Bash], reason: answers}]
        """
    ).config.permissions
    assert permissions.allow[0] == "Skill"
    assert permissions.allow[2].tools == ("Read",)
    assert permissions.deny[0].reason == "answers"


def test_tools(problems: Any, load: Any) -> None:
    found = problems("inputs: {tools: [{match: ask, prompt: b, prompt_file: c}, {prompt: d}]}")
    assert set(found) == {
        *("inputs.tools[0]", "inputs.tools[0].prompt_file", "inputs.tools[1].match")
    }
    assert load("inputs: {tools: [{match: ask, prompt: b}]}").config.inputs.tools[0].match


def test_outputs(load: Any) -> None:
    outputs = load(
        "outputs: [{path: a/b, types: {'*.csv': metrics}, schema: x}, {tool: create}]"
    ).config.outputs
    assert outputs[0].schema_ == "x"
    assert outputs[1].tool == "create"


@pytest.mark.parametrize(
    ("generation", "path", "word"),
    [
        ("{strategy: synthetic, seeds: []}", "generation.seeds", "at least one"),
        ("{strategy: from-traces, seeds: [{category: a, count: 1, prompt: x}]}", "generation.seeds",
         "from-traces"),
        ("{strategy: synthetic, seeds: [3]}", "generation.seeds[0]", "mapping"),
        ("{strategy: synthetic, seeds: [{count: 1, prompt: x}]}", "generation.seeds[0].category",
         "missing"),
        ("{strategy: synthetic, seeds: [{category: a, count: 1, prompt_file: n.md}]}",
         "generation.seeds[0].prompt_file", "no file n.md"),
        ("{strategy: synthetic, seeds: [{category: a, count: 1, prompt_file: /n.md}]}",
         "generation.seeds[0].prompt_file", "relative"),
        ("{strategy: synthetic, seeds: [{category: a, count: 1, builtin: zzz}]}",
         "generation.seeds[0].builtin", "docs/authoring"),
        ("{context: [a]}", "generation.context", "mapping"),
        ("{temperature: -1}", "generation.temperature", "at least 0"),
    ],
)  # fmt: skip
def test_wrong_generation(load: Any, generation: str, path: str, word: str) -> None:
    from pytest_agent_eval.errors import SuiteError

    with pytest.raises(SuiteError) as caught:
        load(f"generation: {generation}")
    assert [problem.path for problem in caught.value.problems] == [path]
    assert word in str(caught.value)


def test_prompt_files_must_exist_below_the_suite(load: Any, problems: Any, tmp_path: Path) -> None:
    seed = (
        "generation: {{strategy: synthetic, seeds: [{{category: a, count: 1, prompt_file: {}}}]}}"
    )
    (tmp_path / "here.md").write_text("x")
    assert load(seed.format("here.md")).config.generation.seeds[0].prompt_file == "here.md"
    (tmp_path / "out").symlink_to("/")
    found = problems(seed.format("out/etc/hostname"))
    assert "leads out" in found["generation.seeds[0].prompt_file"]


def test_context_is_for_synthetic_only(warnings_of: Any) -> None:
    found = warnings_of("execution: {skill: s}\ngeneration: {context: about}")
    assert list(found) == ["generation.context"]


def test_bare_builtin_prompts(load: Any) -> None:
    seed = "{category: a, count: 1, builtin: navigation, dimensions: {x: [1, 2]}, twin: true}"
    suite = load(f"generation: {{strategy: synthetic, context: {{a: 1}}, seeds: [{seed}]}}")
    assert suite.config.generation.seeds[0].dimensions == {"x": (1, 2)}
