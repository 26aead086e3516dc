from __future__ import annotations

from typing import Any

import pytest

from pytest_agent_eval.suite import Known
from pytest_agent_eval.suite.known import BUILTIN_RUNNER_TYPES


@pytest.mark.parametrize(
    ("runner", "path", "words"),
    [
        ("{type: claude}", "runner.type", ["claude-code", "cli", "python"]),
        ("{type: zzz}", "runner.type", ["zzz", "claude-code, cli, codex"]),
        ("{type: cli}", "runner.command", ["missing", "cli"]),
        ("{type: cli, command: ''}", "runner.command", ["empty"]),
        ("{type: cli, command: []}", "runner.command", ["program"]),
        ("{type: cli, command: 3}", "runner.command", ["string or a list"]),
        ("{type: cli, command: [a, 3]}", "runner.command", ["word 2", "quote"]),
        ("{type: cli, command: 'a \"b'}", "runner.command", ["split", "quotation"]),
        ("{command: a}", "runner.command", ["cli", "claude-code"]),
        ("{type: python}", "runner.function", ["missing", "module:callable", "fixture:NAME"]),
        ("{type: python, function: app.run}", "runner.function", ["app.run", "fixture:NAME"]),
        ("{type: python, function: 'a:b c'}", "runner.function", ["a:b c"]),
        ("{type: cli, command: a, function: 'a:b'}", "runner.function", ["python"]),
        (
            "{type: claude-code, effort: minimal}",
            "runner.effort",
            ["low, medium, high, xhigh, max"],
        ),
        ("{type: codex, effort: max}", "runner.effort", ["minimal, low, medium, high, xhigh"]),
        ("{type: codex, workspace_mode: repo}", "runner.workspace_mode", ["codex"]),
        ("{workspace_mode: copy}", "runner.workspace_mode", ["repo"]),
        ("{permission_mode: ask}", "runner.permission_mode", ["dontAsk", "bypassPermissions"]),
        ("{env_policy: dirty}", "runner.env_policy", ["inherit, clean"]),
        ("{sandbox: docker}", "runner.sandbox", ["none, bubblewrap, auto"]),
        ("{plugin_dirs: [a/../b]}", "runner.plugin_dirs[0]", [".."]),
        ("{settings: []}", "runner.settings", ["mapping"]),
        ("{settings: {project_files: a}}", "runner.settings.project_files", ["list"]),
        ("{settings: {project_files: [../a]}}", "runner.settings.project_files[0]", [".."]),
        ("{settings: {project_files: [/a]}}", "runner.settings.project_files[0]", ["relative"]),
        ("{env: {'': x}}", "runner.env.", ["variable"]),
    ],
)
def test_wrong_runners(problems: Any, runner: str, path: str, words: list[str]) -> None:
    found = problems(f"runner: {runner}")
    assert list(found) == [path]
    for word in words:
        assert word in found[path]


def test_codex_cannot_intercept(problems: Any) -> None:
    found = problems("runner: {type: codex}\ninputs: {tools: [{match: questions}]}")
    assert list(found) == ["inputs.tools"]


@pytest.mark.parametrize(
    "runner",
    [
        "{type: cli, command: 'tool --say \"{prompt}\"'}",
        "{type: cli, command: [tool, '{prompt}'], env: {A: b}, env_policy: clean}",
        "{type: python, function: 'package.module:Class.method'}",
        "{type: python, function: 'fixture:agent'}",
        "{type: claude-code, effort: max, permission_mode: plan, workspace_mode: repo}",
        "{type: codex, effort: minimal}",
        "{type: litellm, effort: whatever}",
        "{type: cli, command: x, settings: {project_files: [policies], network: true}}",
    ],
)
def test_sound_runners(load: Any, runner: str) -> None:
    assert load(f"runner: {runner}").config.runner.type


def test_commands_keep_their_form(load: Any) -> None:
    assert load("runner: {type: cli, command: a b}").config.runner.command == "a b"
    assert load("runner: {type: cli, command: [a, b]}").config.runner.command == ("a", "b")


def test_a_plugin_s_type(load: Any, problems: Any) -> None:
    known = Known(runner_types=BUILTIN_RUNNER_TYPES | {"rocket"})
    text = "runner: {type: rocket, command: fly, function: up}"
    assert load(text, known).config.runner.command == "fly"
    assert "rocket" in problems("runner: {type: rocke}", known)["runner.type"]


REPO = "runner: {type: cli, command: x, workspace_mode: repo}\n"


@pytest.mark.parametrize(
    ("execution", "path", "word"),
    [
        ("{steps: [{id: a}]}", "runner.workspace_mode", "steps"),
        ("{mode: batch}", "runner.workspace_mode", "batch"),
        (
            "{steps: [{id: a, runner: {type: cli, command: x, workspace_mode: repo}}]}",
            "execution.steps[0].runner.workspace_mode",
            "share",
        ),
    ],
)
def test_what_cannot_run_in_the_checkout(
    problems: Any, execution: str, path: str, word: str
) -> None:
    assert word in problems(f"{REPO}execution: {execution}\n")[path]


def test_the_answers_are_in_reach_in_the_checkout(load: Any) -> None:
    said = [str(warning) for warning in load(f"{REPO}dataset: {{path: cases}}\n").warnings]
    assert any("can read the answers" in text for text in said)
    said = [str(warning) for warning in load(f"{REPO}dataset: {{path: /data/cases}}\n").warnings]
    assert not any("can read the answers" in text for text in said)


def test_companion_files_are_ignored_in_the_checkout(load: Any) -> None:
    text = f"{REPO}dataset: {{path: cases, workspace: {{files: [a.md]}}}}\n"
    said = [str(warning) for warning in load(text).warnings]
    assert any("only the input file is copied" in text for text in said)


@pytest.mark.parametrize("paths", ["x", "[/tmp]", "[..]", "['']", "[3]"])
def test_wrong_unprotected_paths(problems: Any, paths: str) -> None:
    runner = f"{{type: cli, command: x, settings: {{unprotected: {paths}}}}}"
    found = problems(f"runner: {runner}\n")
    (path,) = found
    assert path.startswith("runner.settings.unprotected")
    assert "relative to the checkout" in found[path]
