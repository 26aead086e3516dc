from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners import Execution
from pytest_agent_eval.runners.agent_tool import read_lines
from pytest_agent_eval.runners.codex import toml_value
from pytest_agent_eval.runners.codex_story import CodexStory
from tests.unit.runners.conftest import MakeRunner, MakeTask
from tests.unit.runners.fake_tools import FIXTURES, FakeTool, install

Run = Callable[..., tuple[Execution, FakeTool]]


@pytest.fixture
def run(make_runner: MakeRunner, make_task: MakeTask, tmp_path: Path) -> Run:
    """Run a task with a codex that prints a fixture: (execution, codex)."""

    def call(
        printed: str = "codex_write",
        runner: dict[str, Any] | None = None,
        tool: dict[str, Any] | None = None,
        **task: Any,
    ) -> tuple[Execution, FakeTool]:
        codex = install(tmp_path / "bin", "codex", printed, **(tool or {}))
        made = make_runner(type="codex", env={"PATH": codex.path}, **(runner or {}))
        if "skill" not in task:
            task.setdefault("prompt", "Write hello.")
        return made.run(make_task(**task)), codex

    return call


def test_what_it_did(run: Run) -> None:
    execution, _ = run()
    assert (execution.failure, execution.exit_code, execution.error) == (None, 0, "")
    assert execution.output == "Done."
    events = [event for event in execution.events if event["type"] != "other"]
    assert [event["type"] for event in events] == [
        *("error", "message", "tool_call", "tool_result", "tool_call", "tool_result"),
        *("message", "result"),
    ]
    shell, wrote, patch = events[2], events[3], events[4]
    assert shell["name"] == "command_execution"
    assert shell["input"] == {"command": "/bin/bash -lc 'echo hello > output/a.txt'"}
    assert (wrote["id"], wrote["is_error"]) == (shell["id"], False)
    assert patch["name"] == "file_change"
    assert patch["input"] == {"changes": [{"path": "/workspace/output/b.txt", "kind": "add"}]}


def test_what_it_used(run: Run) -> None:
    usage = run(model="openai/gpt-5.1-codex")[0].usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (180, 120, 30)
    assert (usage.model, usage.models_used) == ("gpt-5.1-codex", ("gpt-5.1-codex",))
    assert usage.per_model_usage["gpt-5.1-codex"]["input"] == 180
    # Codex tells neither.
    assert (usage.cost_usd, usage.num_turns) == (None, None)


def test_what_it_is_told(run: Run, tmp_path: Path) -> None:
    _, codex = run(
        prompt="-x and\nmore",
        runner={"settings": {"features": {"web search": True}, "x-note": 1, "project_files": []}},
        model="gpt-5.1-codex",
        effort="high",
        system_prompt='Be "brief".\n',
    )
    assert codex.argv == [
        *("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--model", "gpt-5.1-codex"),
        *("--config", 'sandbox_mode="workspace-write"'),
        *("--config", 'features={"web search" = true}'),
        *("--config", 'model_reasoning_effort="high"'),
        *("--config", 'developer_instructions="Be \\"brief\\".\\n"'),
        *("--", "-x and\nmore"),
    ]
    assert codex.cwd == f"{tmp_path}/0123456789abcdef"


def test_the_sandbox_is_the_suites_choice(run: Run) -> None:
    _, codex = run(runner={"settings": {"sandbox_mode": "danger-full-access"}})
    assert codex.options("--config") == ['sandbox_mode="danger-full-access"']


def test_a_skill_is_mentioned(run: Run) -> None:
    assert run(skill="triage", arguments="all of it")[1].argv[-1] == "$triage all of it"


def test_a_command_that_failed(run: Run) -> None:
    execution, _ = run("codex_failing")
    (result,) = [event for event in execution.events if event["type"] == "tool_result"]
    assert (result["text"], result["is_error"]) == ("bad\n", True)
    assert execution.failure is None


@pytest.mark.parametrize(
    ("printed", "kind", "says"),
    [
        ("codex_429", "infrastructure", "429 Too Many Requests"),
        ("codex_401", "infrastructure", "401 Unauthorized"),
        ("codex_500", "infrastructure", "high demand"),
        ("codex_503", "infrastructure", "503 Service Unavailable"),
        ("codex_400", "agent", "this is too long"),
    ],
)
def test_whose_fault_it_is(run: Run, printed: str, kind: str, says: str) -> None:
    execution, _ = run(printed, tool={"status": 1})
    assert execution.failure == kind
    assert says in execution.error
    assert execution.usage.input_tokens is None


def test_an_error_that_was_overcome_is_no_failure(run: Run) -> None:
    execution, _ = run(
        '{"type": "turn.started"}\n'
        '{"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"}\n'
        '{"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "Hi."}}\n'
        '{"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 1}}\n'
    )
    assert (execution.failure, execution.output) == (None, "Hi.")
    assert (execution.usage.input_tokens, execution.usage.cache_read_tokens) == (5, None)


def test_a_provider_that_does_not_answer() -> None:
    story = CodexStory(list(read_lines(str(FIXTURES / "codex_unreachable.jsonl"))))
    assert story.stalled.startswith("Reconnecting... waiting for network")
    assert story.failure[0] == "infrastructure"
    whole = CodexStory(list(read_lines(str(FIXTURES / "codex_write.jsonl"))))
    assert whole.stalled == ""


def test_items_of_all_kinds(run: Run) -> None:
    execution, _ = run(
        '{"type": "item.completed", "item": {"id": "0", "type": "reasoning", "text": "hm"}}\n'
        '{"type": "item.started", "item": {"id": "1", "type": "mcp_tool_call", "server": "files", '
        '"tool": "read_file", "arguments": {"path": "a"}, "status": "in_progress"}}\n'
        '{"type": "item.completed", "item": {"id": "1", "type": "mcp_tool_call", "server": "files",'
        ' "tool": "read_file", "arguments": {"path": "a"}, "status": "completed", '
        '"result": {"content": [{"type": "text", "text": "found"}]}}}\n'
        '{"type": "item.completed", "item": {"id": "2", "type": "mcp_tool_call", "server": "s", '
        '"tool": "t", "arguments": null, "status": "failed", "error": {"message": "no"}}}\n'
        '{"type": "item.completed", "item": {"id": "3", "type": "web_search", "query": "q"}}\n'
        '{"type": "item.completed", "item": {"id": "4", "type": "collab_tool_call", '
        '"tool": "spawn_agent", "prompt": "look", "status": "completed"}}\n'
        '{"type": "item.updated", "item": {"id": "5", "type": "todo_list", "items": []}}\n'
        '{"type": "item.completed", "item": {"id": "6", "type": "hologram"}}\n'
        '{"type": "item.completed", "item": 7}\n'
        '{"type": "turn.completed", "usage": null}\n'
    )
    calls = [(e["name"], e["input"]) for e in execution.events if e["type"] == "tool_call"]
    assert calls == [
        ("mcp__files__read_file", {"path": "a"}),
        ("mcp__s__t", None),
        ("web_search", {"query": "q"}),
        ("spawn_agent", {"prompt": "look", "receiver_thread_ids": None}),
    ]
    results = [(e["text"], e["is_error"]) for e in execution.events if e["type"] == "tool_result"]
    assert results == [("found", False), ("no", True), ("", False), ("completed", False)]
    assert [event["type"] for event in execution.events].count("other") == 3


def test_not_installed(make_runner: MakeRunner, make_task: MakeTask, tmp_path: Path) -> None:
    runner = make_runner(type="codex", env={"PATH": str(tmp_path)})
    with pytest.raises(RunnerError, match="npm install -g @openai/codex") as caught:
        runner.run(make_task(prompt="x"))
    assert caught.value.lasting


def test_a_configuration_that_it_refuses(run: Run) -> None:
    said = "Reading additional input from stdin...\nError loading config.toml: unknown variant\n"
    with pytest.raises(
        RunnerError, match=r"status 1\): Error loading config.toml: unknown variant"
    ):
        run("\n", tool={"status": 1, "stderr": said})


def test_asked_nothing(run: Run) -> None:
    with pytest.raises(RunnerError, match="asked nothing"):
        run(prompt="")


@pytest.mark.parametrize(
    "value",
    ['a"b\\c\n\t\x7f\x01é😀', True, False, 3, 1.5, [1, "a"], {"a b": {"c": [True]}}, {}, []],
)
def test_values_are_toml(value: Any) -> None:
    tomllib = pytest.importorskip("tomllib", reason="it is new in Python 3.11")
    assert tomllib.loads(f"x = {toml_value(value)}") == {"x": value}


def test_a_value_toml_does_not_have() -> None:
    with pytest.raises(RunnerError, match="None has no form in TOML"):
        toml_value({"a": None})
