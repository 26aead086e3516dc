"""Handlers of questions and tool calls: resolved with the suite, mistakes named by file and line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.suite import unsupported
from pytest_agent_eval.suite.tool_handlers import ToolRule
from pytest_agent_eval.suite.tool_names import TOOLS, tools_in

CLAUDE = "runner: {type: claude-code}\n"
QUESTIONS = CLAUDE + "inputs: {tools: [{match: questions}]}\n"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str) -> None:
        (tmp_path / "tool_handlers.yaml").write_text(text)

    return write


@pytest.mark.parametrize(
    ("prose", "tools"),
    [
        ("questions the agent asks", ("AskUserQuestion",)),
        ("Asking the user", ("AskUserQuestion",)),
        ("questions that the agent asks via AskUserQuestion", ("AskUserQuestion",)),
        ("task management", ()),
        ("read-only access", ()),
        ("Read-only access", ()),
        ("Writes to disk", ()),
        ("Write and Edit calls", ("Write", "Edit")),
        (
            "calls of mcp__tickets__create, or mcp__mail__*",
            ("mcp__tickets__create", "mcp__mail__*"),
        ),
        ("scripts and the api", ()),
        ("block all network", ()),
        ("", ()),
    ],
)
def test_what_prose_names(prose: str, tools: tuple[str, ...]) -> None:
    assert tools_in(prose) == tools


@given(st.text())
def test_nothing_but_tools_is_named(prose: str) -> None:
    for tool in tools_in(prose):
        assert tool in TOOLS or tool.startswith("mcp__")


@given(st.lists(st.sampled_from(sorted(TOOLS)), min_size=1))
def test_named_tools_are_found_in_their_order(names: list[str]) -> None:
    assert tools_in(", ".join(names)) == tuple(dict.fromkeys(names))


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)


@given(words, words)
def test_a_pattern_with_a_star_is_a_prefix(pattern: str, tool: str) -> None:
    assert ToolRule((pattern,)).selects(tool, {}) == (pattern == tool)
    assert ToolRule((f"{pattern}*",)).selects(tool, {}) == tool.startswith(pattern)
    assert ToolRule(("*",)).selects(tool, {})


@given(words, st.dictionaries(words, words, max_size=3))
def test_filters_look_at_a_command_or_at_the_input(word: str, input: dict[str, str]) -> None:
    found = re.escape(word.swapcase())
    bash = ToolRule(("Bash",), filters=("nothing here", found))
    assert bash.selects("Bash", {"command": f"run {word}", **input}) or "command" in input
    other = ToolRule(("Write",), filters=(found,))
    assert other.selects("Write", {**input, "content": word})
    assert not ToolRule(("Write",), filters=("%%",)).selects("Write", input)


@given(st.dictionaries(words, st.lists(words, min_size=1, max_size=3), max_size=3))
def test_a_call_is_allowed_when_all_checks_hold(checks: dict[str, list[str]]) -> None:
    rule = ToolRule(("Bash",), checks={name: tuple(parts) for name, parts in checks.items()})
    environment = {name: "-".join(parts) for name, parts in checks.items()}
    assert rule.allows(environment) == bool(checks)
    for name in environment:
        assert not rule.allows({**environment, name: ""})
        assert not rule.allows({key: value for key, value in environment.items() if key != name})


def test_prose_becomes_handlers(load: Any, tmp_path: Path) -> None:
    (tmp_path / "how.md").write_text("Answer as a manager.\n")
    suite = load(
        CLAUDE + "inputs: {tools: [{match: questions, prompt_file: how.md},"
        " {match: WebFetch calls, prompt: No network.}]}"
    )
    assert unsupported(suite) == ()
    handlers = suite.handlers
    assert handlers.patterns == ("AskUserQuestion", "WebFetch")
    assert handlers.answers_questions
    assert handlers.rule("AskUserQuestion", {}).prompt == "Answer as a manager."
    assert handlers.rule("WebFetch", {"url": "x"}).reason == "No network."
    assert handlers.rule("Read", {}) is None


def test_no_handlers(load: Any) -> None:
    assert not load(CLAUDE).handlers


def test_a_file_of_the_older_harness_is_used_as_it_is(load: Any, write: Any) -> None:
    write(
        """\
        handlers:
          - match: questions
            patterns: [AskUserQuestion]
            prompt: Answer briefly.
            prompt_file: ""
            input_filters: []
            env_checks: {}
          - match: deploy scripts
            patterns: [Bash]
            prompt: Not to production.
            input_filters: ['deploy\\.sh']
            env_checks: {TARGET: {must_contain: [staging]}}
        hook_model: openai/gpt-5-nano
        case_overrides: {Which region?: eu, "How many?": 3, "Sure?": true, "Both?": [a, b]}
        """
    )
    suite = load(
        CLAUDE + "inputs: {tools: [{match: questions}, {match: deploy scripts}, {match: api}]}"
    )
    (warning,) = [one for one in suite.warnings if one.path.startswith("inputs")]
    assert warning.path == "inputs.tools[2]"
    assert "tool_handlers.yaml is used" in warning.message
    handlers = suite.handlers
    assert handlers.hook_model == "openai/gpt-5-nano"
    assert handlers.overrides == {
        "Which region?": ("eu",),
        "How many?": ("3",),
        "Sure?": ("yes",),
        "Both?": ("a", "b"),
    }
    rule = handlers.rule("Bash", {"command": "./DEPLOY.sh now"})
    assert rule.allows({"TARGET": "staging-2"})
    assert not rule.allows({"TARGET": "production"})
    assert handlers.rule("Bash", {"command": "ls"}) is None


def test_a_file_alone_is_enough(load: Any, write: Any) -> None:
    write("handlers: [{match: questions}]")
    assert load(CLAUDE).handlers.answers_questions


def test_a_file_without_handlers_adds_to_the_prose(load: Any, write: Any) -> None:
    write("hook_model: m\ncase_overrides: {a: b}")
    handlers = load(QUESTIONS).handlers
    assert (handlers.hook_model, handlers.overrides) == ("m", {"a": ("b",)})
    assert handlers.answers_questions


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("handlers: [{patterns: [Bash]}]", "handlers[0]", ["input_filters"]),
        ("handlers: [{patterns: [Ba*]}]", "handlers[0]", ["input_filters"]),
        ("handlers: [{match: the api}]", "handlers[0].match", ["names no tool", "patterns"]),
        ("handlers: [{prompt: a}]", "handlers[0].match", ["no tool", "patterns"]),
        ("handlers: [{patterns: ['a*b']}]", "handlers[0].patterns[0]", ["end only"]),
        ("handlers: [{patterns: ['a b']}]", "handlers[0].patterns[0]", ["name of a tool"]),
        (
            "handlers: [{patterns: [A], input_filters: ['(']}]",
            "handlers[0].input_filters[0]",
            ["no regular expression"],
        ),
        (
            "handlers: [{patterns: [A], prompt_file: no.md}]",
            "handlers[0].prompt_file",
            ["no.md cannot be read"],
        ),
        (
            "handlers: [{patterns: [A], env_checks: {X: {must_contain: []}}}]",
            "handlers[0].env_checks.X",
            ["empty"],
        ),
        ("handlers: [{patern: [A]}]", "handlers[0].patern", ["did you mean patterns?"]),
        ("case_overrides: {a: {b: c}}", "case_overrides.a", ["text"]),
        ("case_override: {a: b}", "case_override", ["did you mean case_overrides?"]),
        ("[a]", "", ["a mapping", "a list"]),
        ("handlers: [", "", []),
    ],
)
def test_mistakes_in_the_file(
    problems: Any, write: Any, text: str, path: str, words: list[str]
) -> None:
    write(text)
    found = problems(CLAUDE)
    assert list(found) == [path]
    for word in words:
        assert word in found[path]


def test_mistakes_in_the_file_have_its_name_and_line(load: Any, write: Any) -> None:
    from pytest_agent_eval.errors import SuiteError

    write("handlers:\n  - patterns: [AskUserQuestion]\n  - patterns: [Bash]\n")
    with pytest.raises(SuiteError, match=r"tool_handlers.yaml:3: handlers\[1\]: a handler of Bash"):
        load(CLAUDE)


@pytest.mark.parametrize(
    ("tools", "path", "words"),
    [
        ("[{match: the api}]", "inputs.tools[0].match", ["'the api'", "AskUserQuestion"]),
        (
            "[{match: Bash scripts}]",
            "inputs.tools[0].match",
            ["tool_handlers.yaml", "input_filters"],
        ),
        (
            "[{match: questions, prompt_file: no.md}]",
            "inputs.tools[0].prompt_file",
            ["no.md cannot be read"],
        ),
    ],
)
def test_mistakes_in_prose(problems: Any, tools: str, path: str, words: list[str]) -> None:
    found = problems(f"{CLAUDE}inputs: {{tools: {tools}}}")
    assert list(found) == [path]
    for word in words:
        assert word in found[path]


@pytest.mark.parametrize("kind", ["codex", "responses-api"])
def test_runners_that_cannot_intercept(problems: Any, write: Any, kind: str) -> None:
    found = problems(f"runner: {{type: {kind}}}\ninputs: {{tools: [{{match: questions}}]}}")
    assert found == {
        "inputs.tools": f"{kind} cannot intercept tool calls; claude-code, litellm, python can"
    }
    write("handlers: [{match: questions}]")
    assert list(problems(f"runner: {{type: {kind}}}")) == ["runner"]


def test_steps_with_another_runner(problems: Any) -> None:
    text = "execution: {steps: [{id: a, prompt: x, runner: {type: codex}}, {id: b, prompt: y}]}\n"
    assert list(problems(QUESTIONS + text)) == ["inputs.tools"]


def test_a_command_is_warned_about(warnings_of: Any) -> None:
    found = warnings_of("runner: {type: cli, command: x}\ninputs: {tools: [{match: questions}]}")
    assert "cannot be intercepted" in found["inputs.tools"]


def test_a_variant_with_handlers_of_its_own(load: Any) -> None:
    from dataclasses import replace

    suite = load(QUESTIONS + "variants: {a: {inputs: {tools: [{match: WebFetch}]}}, b: {}}")
    varied = replace(suite, config=suite.variants["a"])
    assert varied.handlers.patterns == ("WebFetch",)
    assert suite.handlers.patterns == ("AskUserQuestion",)
