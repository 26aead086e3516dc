"""What Claude Code's hook is told: the command it runs is run here as it would run it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.claude_interception import Interception, with_hook
from pytest_agent_eval.runners.claude_story import ClaudeStory
from pytest_agent_eval.runners.interaction import Decision, Question
from tests.unit.runners.conftest import MakeRunner, MakeTask


class Answers:
    """Answers with the last option; allows Write where TARGET is staging, denies Bash."""

    answers_questions = True
    patterns = ("AskUserQuestion", "Bash", "Write", "mcp__x__*")

    def __init__(self, error: RunnerError | None = None) -> None:
        self.error = error
        self.calls: list[str] = []

    def ask(self, question: Question, *, call: str = "", input: Any = None) -> str:
        if self.error is not None:
            raise self.error
        self.calls.append(call)
        return ", ".join(question.options) if question.multi else question.options[-1]

    def check_tool(
        self, name: str, input: Any, *, environment: Any = None, **about: Any
    ) -> Decision:
        if name == "Write":
            return Decision(environment["TARGET"] == "staging", "not staging", handled=True)
        if name == "Bash":
            return Decision(False, "no commands", handled=True)
        return Decision(True)


Hook = Callable[..., tuple[int, Any]]


@pytest.fixture
def hook() -> Hook:
    def run(interception: Interception, **call: Any) -> tuple[int, Any]:
        """Exit status, and what was printed."""
        asked = {"hook_event_name": "PreToolUse", "tool_use_id": "t1", **call}
        done = subprocess.run(
            ["sh", "-c", interception.command],
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=60,
        )
        return done.returncode, json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}

    return run


def questions(*texts: str) -> dict[str, Any]:
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue"}]
    asked = [{"question": one, "options": options, "multiSelect": one == "Which?"} for one in texts]
    return {"questions": asked}


def test_questions_are_answered_one_by_one(make_task: MakeTask, hook: Hook) -> None:
    answers = Answers()
    input = questions("Colour?", "Which?")
    with Interception(make_task(interaction=answers), {}) as interception:
        status, said = hook(interception, tool_name="AskUserQuestion", tool_input=input)
    assert status == 0
    assert said["permissionDecision"] == "allow"
    assert said["updatedInput"] == {
        **input,
        "answers": {"Colour?": "Blue", "Which?": "Red, Blue"},
    }
    assert answers.calls == ["t1", "t1"]


def test_calls_are_allowed_denied_or_let_through(make_task: MakeTask, hook: Hook) -> None:
    with Interception(make_task(interaction=Answers()), {"TARGET": "staging"}) as interception:
        status, said = hook(interception, tool_name="Bash", tool_input={}, tool_use_id="t2")
        assert (status, said["permissionDecision"]) == (0, "deny")
        assert said["permissionDecisionReason"] == "no commands"
        status, said = hook(interception, tool_name="Write", tool_input={})
        assert (status, said["permissionDecision"]) == (0, "allow")
        assert "updatedInput" not in said
        assert hook(interception, tool_name="mcp__x__y", tool_input={}) == (0, {})
        assert interception.denied == {"t2"}


def test_many_calls_at_once(make_task: MakeTask, hook: Hook) -> None:
    answers = Answers()
    with (
        Interception(make_task(interaction=answers), {}) as interception,
        ThreadPoolExecutor(8) as pool,
    ):
        calls = [
            pool.submit(
                hook,
                interception,
                tool_name="AskUserQuestion",
                tool_input=questions("Colour?"),
                tool_use_id=f"t{number}",
            )
            for number in range(16)
        ]
        assert {call.result()[0] for call in calls} == {0}
    assert sorted(answers.calls) == sorted(f"t{number}" for number in range(16))


@pytest.mark.parametrize(
    "call",
    [
        {"tool_name": "AskUserQuestion", "tool_input": {}},
        {"tool_name": "AskUserQuestion", "tool_input": {"questions": [{"text": "a"}]}},
        {"tool_name": "AskUserQuestion", "tool_input": "a"},
        {"tool_input": {}},
    ],
)
def test_what_is_not_understood_is_denied(
    make_task: MakeTask, hook: Hook, call: dict[str, Any]
) -> None:
    with Interception(make_task(interaction=Answers()), {}) as interception:
        assert hook(interception, **call) == (2, {})


def test_no_json_is_denied(make_task: MakeTask) -> None:
    with Interception(make_task(interaction=Answers()), {}) as interception:
        done = subprocess.run(
            ["sh", "-c", interception.command], input=b"[[[", capture_output=True, timeout=60
        )
    assert (done.returncode, done.stdout) == (2, b"")


def test_after_the_task_calls_are_denied(make_task: MakeTask, hook: Hook) -> None:
    with Interception(make_task(interaction=Answers()), {}) as interception:
        pass
    assert hook(interception, tool_name="mcp__x__y", tool_input={}) == (2, {})


def test_a_stranger_is_told_nothing(make_task: MakeTask) -> None:
    answers = Answers()
    with Interception(make_task(interaction=answers), {}) as interception:
        path = re.search(r"(\S+/s) ", interception.command)
        assert path is not None
        directory = os.path.dirname(path[1])
        assert os.stat(directory).st_mode & 0o777 == 0o700
        asked = {"tool_name": "AskUserQuestion", "tool_input": questions("Colour?")}
        for token in (b"", b"0" * 32, "ä".encode()):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
                stranger.connect(path[1])
                stranger.sendall(token + b"\n" + json.dumps(asked).encode())
                stranger.shutdown(socket.SHUT_WR)
                assert stranger.recv(100) == b""
    assert answers.calls == []
    assert not os.path.exists(directory)


def test_a_question_that_cannot_be_answered_ends_the_task(make_task: MakeTask, hook: Hook) -> None:
    error = RunnerError("not recorded", lasting=True)
    cancelled = threading.Event()
    task = make_task(interaction=Answers(error), cancelled=cancelled)
    with Interception(task, {}) as interception:
        assert not interception.ends.is_set()
        status, said = hook(
            interception, tool_name="AskUserQuestion", tool_input=questions("Colour?")
        )
        assert (status, said["permissionDecision"]) == (0, "deny")
        assert interception.error is error
        assert interception.ends.is_set()
    assert not cancelled.is_set()


def test_the_session_ends_the_task(make_task: MakeTask) -> None:
    cancelled = threading.Event()
    with Interception(make_task(interaction=Answers(), cancelled=cancelled), {}) as interception:
        cancelled.set()
        assert interception.ends.is_set()


def test_a_long_path_for_temporary_files(
    make_task: MakeTask, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("d" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with Interception(make_task(interaction=Answers()), {}) as interception:
        assert hook(interception, tool_name="mcp__x__y", tool_input={}) == (0, {})
    assert list(long.iterdir()) == []


def test_settings_keep_what_is_there(make_task: MakeTask) -> None:
    before = {"hooks": {"PreToolUse": [{"matcher": "a"}], "Stop": []}, "model": "m"}
    task = make_task(interaction=Answers(), timeout=30.5)
    settings = with_hook(before, "the command", task)
    first, ours = settings["hooks"]["PreToolUse"]
    assert first == {"matcher": "a"}
    assert ours["hooks"] == [{"type": "command", "command": "the command", "timeout": 91}]
    assert (settings["hooks"]["Stop"], settings["model"]) == ([], "m")
    assert settings["disableAllHooks"] is False
    for tool in ("AskUserQuestion", "Bash", "mcp__x__y"):
        assert re.search(ours["matcher"], tool)
    for tool in ("BashOutput", "mcp__xx", "TodoWrite", "Read"):
        assert not re.search(ours["matcher"], tool)


def test_hooks_that_are_switched_off(make_runner: MakeRunner, make_task: MakeTask) -> None:
    runner = make_runner(type="claude-code", settings={"disableAllHooks": True})
    with pytest.raises(RunnerError, match="disableAllHooks") as caught:
        runner.run(make_task(prompt="x", interaction=Answers()))
    assert caught.value.lasting


def test_calls_that_a_handler_denied_are_not_noted() -> None:
    denials = [
        {"tool_name": "Bash", "tool_use_id": "t1"},
        {"tool_name": "Write", "tool_use_id": "t2"},
    ]
    lines = [{"type": "result", "permission_denials": denials}]
    assert ClaudeStory(lines, {"t1"}).notes == ("tool calls without permission: Write 1",)
    assert ClaudeStory(lines, {"t1", "t2"}).notes == ()
