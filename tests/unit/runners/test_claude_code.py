from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.runners import Execution
from pytest_agent_eval.runners.agent_tool import ended_execution
from pytest_agent_eval.runners.claude_story import ClaudeStory
from pytest_agent_eval.runners.path_rules import claude_rules
from pytest_agent_eval.runners.process import ProcessOutcome
from pytest_agent_eval.suite.models.agent import PermissionsConfig
from tests.unit.runners.conftest import MakeRunner, MakeTask
from tests.unit.runners.fake_tools import FIXTURES, FakeTool, install

Run = Callable[..., tuple[Execution, FakeTool]]


@pytest.fixture
def run(make_runner: MakeRunner, make_task: MakeTask, tmp_path: Path) -> Run:
    """Run a task with a claude that prints a fixture: (execution, claude)."""

    def call(
        printed: str = "claude_write",
        runner: dict[str, Any] | None = None,
        tool: dict[str, Any] | None = None,
        **task: Any,
    ) -> tuple[Execution, FakeTool]:
        claude = install(tmp_path / "bin", "claude", printed, **(tool or {}))
        block = {"type": "claude-code", **(runner or {})}
        block["env"] = {"PATH": claude.path, **block.get("env", {})}
        made = make_runner(**block)
        if "skill" not in task:
            task.setdefault("prompt", "Write hello.")
        return made.run(make_task(**task)), claude

    return call


def test_what_it_did(run: Run, tmp_path: Path) -> None:
    execution, _ = run()
    assert (execution.failure, execution.exit_code, execution.error) == (None, 0, "")
    assert execution.output == "Done."
    assert execution.notes == ()
    assert [event for event in execution.events if event["type"] != "other"] == [
        {"type": "message", "text": "I write.", "agent": "root"},
        {
            "type": "tool_call",
            "name": "Write",
            "input": {"file_path": "/workspace/output/a.txt", "content": "hello"},
            "id": "toolu_1",
            "agent": "root",
        },
        {
            "type": "tool_result",
            "id": "toolu_1",
            "text": "File created successfully at: /workspace/output/a.txt (file state is current "
            "in your context — no need to Read it back)",
            "is_error": False,
            "agent": "root",
            "timestamp": next(e["timestamp"] for e in execution.events if "timestamp" in e),
        },
        {"type": "message", "text": "Done.", "agent": "root"},
        {"type": "result", "text": "Done.", "is_error": False, "agent": "root"},
    ]
    (init,) = [event for event in execution.events if event["type"] == "other"]
    assert init["raw"]["subtype"] == "init"
    printed = (tmp_path / "logs" / "stdout.log").read_text()
    assert printed == (FIXTURES / "claude_write.jsonl").read_text()


def test_what_it_cost(run: Run) -> None:
    usage = run()[0].usage
    assert usage.cost_usd == pytest.approx(0.0009)
    assert (usage.input_tokens, usage.output_tokens, usage.num_turns) == (200, 20, 2)
    assert (usage.cache_read_tokens, usage.cache_create_tokens) == (0, 0)
    assert (usage.model, usage.models_used) == ("claude-sonnet-4-5", ("claude-sonnet-4-5",))
    assert usage.per_model_turns == {"claude-sonnet-4-5": 2}


def test_subagents_are_kept_apart_and_their_tokens_count(run: Run) -> None:
    execution, _ = run("claude_subagent")
    by_agent: dict[str, list[str]] = {}
    for event in execution.events:
        if event["type"] != "other":
            by_agent.setdefault(event["agent"], []).append(event["type"])
    assert by_agent == {
        "root": ["message", "tool_call", "tool_result", "message", "result"],
        "toolu_1": ["tool_call", "tool_result"],
    }
    usage = execution.usage
    assert (usage.input_tokens, usage.output_tokens) == (400, 40)
    assert usage.models_used == ("claude-sonnet-4-5", "claude-haiku-4-5")
    assert usage.per_model_usage["claude-haiku-4-5"]["input"] == 200
    assert usage.per_model_turns["claude-sonnet-4-5"] == 2


def test_what_it_is_told(run: Run, tmp_path: Path) -> None:
    plugin = tmp_path / "project" / "evals" / "plugin"
    plugin.mkdir(parents=True)
    _, claude = run(
        prompt="-x and\nmore",
        runner={
            "permission_mode": "acceptEdits",
            "plugin_dirs": ["plugin"],
            "settings": {"includeCoAuthoredBy": False, "project_files": [], "x-note": "ours"},
        },
        model="anthropic/claude-sonnet-4-5",
        subagent_model="claude-haiku-4-5",
        effort="max",
        system_prompt="Be brief.",
        max_budget_usd=2.5,
    )
    assert claude.argv == [
        *("--print", "--output-format", "stream-json", "--verbose", "--no-session-persistence"),
        *("--max-budget-usd", "2.500000", "--model", "claude-sonnet-4-5", "--effort", "max"),
        *("--append-system-prompt", "Be brief.", "--permission-mode", "acceptEdits"),
        *("--plugin-dir", str(plugin), "--settings", '{"includeCoAuthoredBy": false}'),
        *("--", "-x and\nmore"),
    ]
    assert claude.env["CLAUDE_CODE_SUBAGENT_MODEL"] == "claude-haiku-4-5"
    assert claude.cwd == f"{tmp_path}/0123456789abcdef"


def test_a_skill_is_a_slash_command(run: Run) -> None:
    _, claude = run(skill="triage", arguments="--all now")
    assert claude.argv[-1] == "/triage --all now"
    _, claude = run(skill="docs:triage")
    assert claude.argv[-1] == "/docs:triage"


def test_a_budget_of_nothing_is_as_small_as_can_be(run: Run) -> None:
    _, claude = run(max_budget_usd=0.0)
    assert claude.option("--max-budget-usd") == "0.000001"


def test_the_environment_is_clean(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SETTING", "hidden")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://gateway")
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "of the caller")
    monkeypatch.setenv("DISABLE_AUTOUPDATER", "hidden")
    env = run(env={"TASK": "1"})[1].env
    assert "SOME_SETTING" not in env
    assert (env["ANTHROPIC_BASE_URL"], env["TASK"]) == ("http://gateway", "1")
    assert not {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID"} & set(env)
    assert (env["DISABLE_AUTOUPDATER"], env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"]) == ("1", "1")
    inherited = run(runner={"env_policy": "inherit", "env": {"DISABLE_AUTOUPDATER": "0"}})[1].env
    assert (inherited["SOME_SETTING"], inherited["DISABLE_AUTOUPDATER"]) == ("hidden", "0")
    assert "CLAUDECODE" not in inherited


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"allow": ["Skill", "Bash(git *)"]}, {"allow": ["Skill", "Bash(git *)"]}),
        ({"deny": [{"path": "a/", "tools": ["Read"]}]}, {"deny": ["Read(./a/**)"]}),
        ({"deny": [{"path": "./a.txt", "tools": ["Edit"]}]}, {"deny": ["Edit(./a.txt)"]}),
        ({"deny": [{"path": "/etc/", "tools": ["Write"]}]}, {"deny": ["Edit(//etc/**)"]}),
        ({"deny": [{"path": "~/x", "tools": ["Grep", "Glob"]}]}, {"deny": ["Read(~/x)"]}),
        ({"deny": [{"path": "a/", "tools": ["Bash"]}]}, {"deny": ["Read(./a/**)", "Edit(./a/**)"]}),
        ({"allow": [{"path": "a/", "tools": ["Read"]}]}, {"allow": ["Read(./a/**)"]}),
        ({"allow": [{"path": "a", "tools": ["Write", "Edit"]}]}, {"allow": ["Edit(./a)"]}),
        ({"allow": [{"path": "a", "tools": ["Grep"]}]}, {}),
        ({}, {}),
    ],
)
def test_permissions(rules: dict[str, Any], expected: dict[str, Any]) -> None:
    assert claude_rules(PermissionsConfig.model_validate(rules)) == expected


def test_permissions_are_settings(run: Run, make_task: MakeTask, tmp_path: Path) -> None:
    from pytest_agent_eval.runners import BUILTIN, RunnerContext
    from pytest_agent_eval.suite import load_suite

    claude = install(tmp_path / "bin", "claude", "claude_write")
    (tmp_path / "cases").mkdir()
    config = {
        "dataset": {"path": "cases"},
        "execution": {"prompt": "x"},
        "runner": {
            "env": {"PATH": claude.path},
            "settings": {"permissions": {"deny": ["WebFetch"], "defaultMode": "plan"}},
        },
        "permissions": {"allow": ["Skill"], "deny": [{"path": "answers/", "tools": ["Read"]}]},
    }
    path = tmp_path / "eval.yaml"
    path.write_text(json.dumps(config))
    suite = load_suite(path, rootdir=tmp_path)
    runner = BUILTIN["claude-code"](RunnerContext(suite=suite, rootdir=tmp_path))
    runner.run(make_task(prompt="x"))
    assert json.loads(claude.option("--settings")) == {
        "permissions": {
            "deny": ["WebFetch", "Read(./answers/**)"],
            "defaultMode": "plan",
            "allow": ["Skill"],
        }
    }


@pytest.mark.parametrize(
    ("printed", "kind", "says"),
    [
        ("claude_budget", "budget", "Reached maximum budget"),
        ("claude_429", "infrastructure", "429"),
        ("claude_529", "infrastructure", "529"),
        ("claude_500", "infrastructure", "500"),
        ("claude_401", "infrastructure", "Failed to authenticate"),
        ("claude_404", "infrastructure", "issue with the selected model"),
        ("claude_unreachable", "infrastructure", "Unable to connect"),
        ("claude_400", "agent", "API Error: 400"),
        (
            '{"type": "result", "subtype": "error_max_turns", "is_error": true, "num_turns": 3}\n',
            "agent",
            "maximum number of turns",
        ),
    ],
)
def test_whose_fault_it_is(run: Run, printed: str, kind: str, says: str) -> None:
    execution, _ = run(printed, tool={"status": 1})
    assert execution.failure == kind
    assert says in execution.error
    assert execution.exit_code == 1


def test_an_error_of_the_provider_is_no_message_of_the_agent(run: Run) -> None:
    execution, _ = run("claude_429", tool={"status": 1})
    types = [event["type"] for event in execution.events if event["type"] != "other"]
    assert types == ["error", "result"]
    assert execution.usage.models_used == ()


def test_refused_tool_calls_are_noted(run: Run) -> None:
    assert run("claude_unpermitted")[0].notes == ("tool calls without permission: Write 1",)
    (result,) = [e for e in run("claude_denied")[0].events if e["type"] == "tool_result"]
    assert result["is_error"]
    assert "denied by your permission settings" in result["text"]


UNKNOWN_SKILL = (
    '{"type": "system", "subtype": "init", "model": "m", "slash_commands": ["review"]}\n'
    '{"type": "assistant", "message": {"id": "1", "model": "<synthetic>", "content": [{"type": '
    '"text", "text": "Unknown command: /nosuch"}]}, "parent_tool_use_id": null}\n'
    '{"type": "result", "subtype": "success", "is_error": false, "num_turns": 0, "result": '
    '"Unknown command: /nosuch", "total_cost_usd": 0, "modelUsage": {}}\n'
)


def test_a_skill_that_is_not_there(run: Run) -> None:
    with pytest.raises(RunnerError, match="knows no skill nosuch") as caught:
        run(UNKNOWN_SKILL, skill="nosuch")
    assert caught.value.lasting
    with pytest.raises(RunnerError, match=r"execution\.prompt: .*knows no skill nosuch"):
        run(UNKNOWN_SKILL, prompt="/nosuch please")


def test_asked_nothing(run: Run) -> None:
    with pytest.raises(RunnerError, match="asked nothing") as caught:
        run(prompt="")
    assert caught.value.lasting


def test_not_installed(make_runner: MakeRunner, make_task: MakeTask, tmp_path: Path) -> None:
    runner = make_runner(type="claude-code", env={"PATH": str(tmp_path)})
    with pytest.raises(RunnerError, match="npm install -g @anthropic-ai/claude-code") as caught:
        runner.run(make_task(prompt="x"))
    assert caught.value.lasting
    assert "default" not in str(caught.value)


def test_arguments_that_it_refuses(run: Run) -> None:
    said = "some warning\nerror: unknown option '--effort'\n"
    with pytest.raises(RunnerError) as caught:
        run("\n", tool={"status": 1, "stderr": said})
    first = str(caught.value).splitlines()[0]
    assert first.endswith("did no work (exit status 1): error: unknown option '--effort'")
    assert caught.value.lasting


def test_a_plugin_that_is_not_there(run: Run) -> None:
    with pytest.raises(RunnerError, match=r"runner\.plugin_dirs: there is no .*/evals/nosuch"):
        run(runner={"plugin_dirs": ["nosuch"]})


def test_its_time_runs_out(run: Run) -> None:
    execution, _ = run(tool={"seconds": 600.0}, timeout=1.0)
    assert (execution.failure, execution.timed_out, execution.exit_code) == ("timeout", True, None)
    assert execution.error == "timed out after 1 s"


def test_its_time_runs_out_while_the_provider_does_not_answer(make_task: MakeTask) -> None:
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "model": "m"},
        {"type": "system", "subtype": "api_retry", "error_status": 529, "error": "overloaded"},
    ]
    outcome = ProcessOutcome(None, timed_out=True, duration_s=5.0, stdout_bytes=100)
    task = make_task(prompt="x", timeout=5.0)
    ended = ended_execution(task, outcome, ClaudeStory(lines))
    assert (ended.failure, ended.timed_out) == ("infrastructure", True)
    assert ended.error == (
        "timed out after 5 s, waiting for the provider: overloaded (HTTP status 529)"
    )
    assert (ended.usage.cost_usd, ended.usage.model) == (None, "m")
    working = ended_execution(task, outcome, ClaudeStory(lines[:1]))
    assert (working.failure, working.error) == ("timeout", "timed out after 5 s")


def test_a_cancelled_task(run: Run) -> None:
    cancelled = threading.Event()
    cancelled.set()
    execution, _ = run(cancelled=cancelled)
    assert (execution.failure, execution.exit_code) == ("infrastructure", None)


def test_lines_that_are_no_events_and_events_of_later_versions(run: Run) -> None:
    lines = (
        "a warning\n{cut off\n[1]\n"
        '{"type": "novelty", "value": 1}\n'
        '{"type": "assistant", "message": {"id": "1", "model": "m", "content": ['
        '{"type": "thinking", "thinking": "hm"}, {"type": "hologram"}, 7, '
        '{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}, '
        '{"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "image"}]}]}}\n'
        '{"type": "assistant", "message": {"id": "2", "model": "m", "content": "plain"}}\n'
        '{"type": "result", "subtype": "success", "is_error": false, "result": null}\n'
    )
    execution, _ = run(lines)
    assert [event["type"] for event in execution.events] == [
        *("other", "thinking", "other", "other", "tool_call", "tool_result", "message", "result")
    ]
    assert execution.events[0]["raw"] == {"type": "novelty", "value": 1}
    assert execution.events[5]["text"] == "[image]"
    assert execution.output == "plain"
    assert execution.usage.cost_usd is None


def test_secrets_are_in_no_log_and_no_event(run: Run, tmp_path: Path) -> None:
    text = (FIXTURES / "claude_write.jsonl").read_text().replace("I write.", "I use sEcReT-key-1.")
    secrets = Secrets.of({"ANTHROPIC_API_KEY": "sEcReT-key-1"})
    execution, _ = run(text, secrets=secrets)
    assert "sEcReT" not in (tmp_path / "logs" / "stdout.log").read_text()
    assert "sEcReT" not in str(execution.events)
    assert execution.output == "Done."


def test_more_output_than_is_kept(make_task: MakeTask, tmp_path: Path) -> None:
    from pytest_agent_eval.runners import BUILTIN, RunnerContext
    from pytest_agent_eval.suite import load_suite

    lines = (FIXTURES / "claude_write.jsonl").read_text().splitlines(keepends=True)
    padding = '{"type": "assistant", "message": {"id": "p", "model": "m", "content": []}}\n'
    text = "".join([*lines[:1], *([padding] * 2000), *lines[1:]])
    claude = install(tmp_path / "bin", "claude", text)
    (tmp_path / "cases").mkdir()
    path = tmp_path / "eval.yaml"
    path.write_text(
        json.dumps({"dataset": {"path": "cases"}, "runner": {"env": {"PATH": claude.path}}})
    )
    suite = load_suite(path, rootdir=tmp_path)
    context = RunnerContext(suite=suite, rootdir=tmp_path, max_output_bytes=16384)
    execution = BUILTIN["claude-code"](context).run(make_task(prompt="x"))
    assert execution.output == "Done."
    assert execution.usage.num_turns == 2
    assert len(execution.events) < 2000
    (note,) = execution.notes
    assert "more than is kept: events are missing" in note
