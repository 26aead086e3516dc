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
        "{type: litellm, settings: {tools: [read, bash], stop: END, seed: -1, x-mine: 1}}",
        "{type: litellm, settings: {temperature: 0, top_p: 1, max_turns: 3, stop: [a, b]}}",
        "{type: litellm, sandbox: auto, settings: {network: true, project_files: [docs]}}",
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


CLI = "type: cli, command: x"


@pytest.mark.parametrize(
    ("runner", "found"),
    [
        (
            f"{{{CLI}, sandbox: bubblewrap, settings: {{hiden: [a.py], netwrok: true}}}}",
            {
                "hiden": "unknown key; did you mean hidden?",
                "netwrok": "unknown key; did you mean network?",
            },
        ),
        (
            f"{{{CLI}, settings: {{Project-Files: [a]}}}}",
            {"Project-Files": "did you mean project_"},
        ),
        (f"{{{CLI}, settings: {{hide: [a]}}}}", {"hide": "did you mean hidden?"}),
        (
            "{type: python, function: 'a:b', settings: {unprotect: [a]}}",
            {"unprotect": "unprotecte"},
        ),
        (f"{{{CLI}, sandbox: auto, settings: {{model: x}}}}", {"model": "keys here: hidden, net"}),
        (f"{{{CLI}, sandbox: auto, settings: {{network: 'no'}}}}", {"network": "true or false"}),
        (f"{{{CLI}, sandbox: auto, settings: {{readable: a}}}}", {"readable": "list of paths"}),
        (f"{{{CLI}, sandbox: auto, settings: {{hidden: [3]}}}}", {"hidden[0]": "a path, not 3"}),
    ],
)
def test_misspelt_settings(problems: Any, runner: str, found: dict[str, str]) -> None:
    said = problems(f"runner: {runner}\n")
    assert list(said) == [f"runner.settings.{key}" for key in found]
    for key, words in found.items():
        assert words in said[f"runner.settings.{key}"]


def test_a_setting_of_another_tool_is_a_warning(load: Any, warnings_of: Any) -> None:
    runner = f"runner: {{{CLI}, settings: {{network_policy: open, x-mine: 1}}}}\n"
    assert load(runner).config.runner.settings["network_policy"] == "open"
    said = warnings_of(runner)
    assert list(said) == ["runner.settings.network_policy"]
    assert "ignored: type cli has no such setting" in said["runner.settings.network_policy"]


@pytest.mark.parametrize(
    ("settings", "key", "words"),
    [
        ("{temprature: 1}", "temprature", "did you mean temperature? keys here: hidden, max_tok"),
        ("{zzz: 1}", "zzz", "unknown key; keys here: hidden, max_tokens"),
        ("{effort: low}", "effort", "effort is a key of runner itself"),
        ("{temperature: -1}", "temperature", "a number of at least 0, not -1"),
        ("{temperature: hot}", "temperature", "a number of at least 0"),
        ("{temperature: true}", "temperature", "a number of at least 0"),
        ("{top_p: 1.5}", "top_p", "a number from 0 to 1"),
        ("{max_tokens: 0}", "max_tokens", "a whole number of at least 1, not 0"),
        ("{max_turns: 1.5}", "max_turns", "a whole number of at least 1"),
        ("{seed: true}", "seed", "an integer"),
        ("{stop: []}", "stop", "a text or a list of texts"),
        ("{stop: [3]}", "stop", "a text or a list of texts"),
        ("{tools: read}", "tools", "a list of read, write, list, bash"),
        ("{tools: [reed]}", "tools[0]", "did you mean read? there are read, write, list, bash"),
        ("{tools: [7]}", "tools[0]", "there are read, write, list, bash"),
        ("{tools: [bash, bash]}", "tools[1]", "bash is listed twice"),
    ],
)
def test_settings_of_a_model(problems: Any, settings: str, key: str, words: str) -> None:
    text = f"execution: {{prompt: a}}\nrunner: {{type: litellm, settings: {settings}}}\n"
    ((path, said),) = problems(text).items()
    assert path == f"runner.settings.{key}"
    assert words in said


@pytest.mark.parametrize(
    ("settings", "key", "words"),
    [
        ("{max_tokens: 9}", "max_tokens", "did you mean max_output_tokens?"),
        ("{stop: [a]}", "stop", "unknown key"),
        ("{include: a}", "include", "a list of texts"),
        ("{reasoning: high}", "reasoning", "a mapping"),
        ("{truncation: no}", "truncation", "auto or disabled"),
        ("{tools: [web_search]}", "tools[0]", "mappings such as {type: web_search}"),
        ("{tools: [{name: a}]}", "tools[0]", "needs a type"),
        ("{tools: [{type: function, name: a}]}", "tools[0]", "carried out by whoever asks"),
        ("{tools: [{type: shell, environment: {type: local}}]}", "tools[0]", "carried out by"),
    ],
)
def test_settings_of_the_responses_api(problems: Any, settings: str, key: str, words: str) -> None:
    text = f"execution: {{prompt: a}}\nrunner: {{type: responses-api, settings: {settings}}}\n"
    ((path, said),) = problems(text).items()
    assert path == f"runner.settings.{key}"
    assert words in said


def test_settings_that_are_of_the_provider_or_of_the_older_format(warnings_of: Any) -> None:
    text = """
        execution: {prompt: a}
        runner:
          type: responses-api
          settings:
            tools: [read, {type: web_search}, {type: shell, environment: {type: container_auto}}]
            base_url: http://127.0.0.1:1/v1
            default_model: some-model
            api_key: abc
            network_policy: {type: disabled}
            memory_limit_mb: 512
            text: {verbosity: low}
        """
    said = warnings_of(text)
    assert [key.rpartition(".")[2] for key in said] == [
        "api_key",
        "network_policy",
        "memory_limit_mb",
    ]
    assert "OPENAI_API_KEY" in said["runner.settings.api_key"]


@pytest.mark.parametrize("kind", ["claude-code", "codex", "rocket"])
def test_settings_of_other_types_are_free(warnings_of: Any, kind: str) -> None:
    known = Known(runner_types=BUILTIN_RUNNER_TYPES | {"rocket"})
    text = f"execution: {{prompt: a}}\nrunner: {{type: {kind}, settings: {{hiden: 1, model: x}}}}\n"
    assert warnings_of(text, known) == {}


def test_misspelt_settings_of_a_step_and_of_a_variant(problems: Any) -> None:
    found = problems(
        f"""
        runner: {{{CLI}, sandbox: bubblewrap}}
        execution:
          steps:
            - {{id: a, prompt: x, runner: {{settings: {{secret: [a]}}}}}}
            - {{id: b, prompt: x, runner: {{type: claude-code, settings: {{secret: [a]}}}}}}
        variants: {{v: {{runner: {{settings: {{hiden: [a]}}}}}}}}
        """
    )
    assert list(found) == [
        "execution.steps[0].runner.settings.secret",
        "variants.v.runner.settings.hiden",
    ]


def test_hiding_what_is_not_there(problems: Any, warnings_of: Any, tmp_path: Any) -> None:
    (tmp_path / "agent.py").touch()
    runner = f"runner: {{{CLI}, sandbox: bubblewrap, settings: {{hidden: [%s]}}}}\n"
    found = problems(runner % "agent.py, agnet.py")
    assert list(found) == ["runner.settings.hidden[1]"]
    assert "there is no agnet.py" in found["runner.settings.hidden[1]"]
    assert "did you mean agent.py?" in found["runner.settings.hidden[1]"]
    # A place of one machine may be missing on another.
    said = warnings_of(runner % "/no/such/place")
    assert "there is no /no/such/place on this machine" in said["runner.settings.hidden[0]"]


@pytest.mark.parametrize(
    ("text", "path", "says"),
    [
        (f"runner: {{{CLI}, permission_mode: plan}}", "runner.permission_mode", "claude-code"),
        ("runner: {type: codex, plugin_dirs: [a]}", "runner.plugin_dirs", "claude-code"),
        ("runner: {type: codex}\npermissions: {deny: [WebFetch]}", "permissions", "sandbox_mode"),
        (
            "runner: {type: codex}\nexecution: {prompt: x, max_budget_usd: 2}",
            "execution.max_budget_usd",
            "codex neither has a budget nor tells what it cost",
        ),
    ],
)
def test_what_a_coding_agent_does_not_have(
    warnings_of: Any, text: str, path: str, says: str
) -> None:
    assert says in warnings_of(text)[path]


@pytest.mark.parametrize(
    "text",
    [
        "runner: {permission_mode: plan, plugin_dirs: [a]}\npermissions: {deny: [WebFetch]}",
        "execution: {prompt: x, max_budget_usd: 2}",
        "runner: {type: codex}\npermissions: {deny: []}\nexecution: {prompt: x, timeout: 9}",
    ],
)
def test_what_a_coding_agent_has(warnings_of: Any, text: str) -> None:
    said = warnings_of(text)
    assert not {"permissions", "runner.permission_mode", "execution.max_budget_usd"} & set(said)
