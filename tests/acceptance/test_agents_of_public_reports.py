"""Faults of agents that the list of public reports names, for every runner that knows its agent.

The numbers are those of the list; the other rows are in ``test_public_reports.py`` and
``test_models_of_public_reports.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.results import TrialResult
from tests.plugin.conftest import Project
from tests.provider import Answer, Asked, Provider, provider, submit
from tests.unit.runners.fake_tools import FIXTURES

TOOLS = {"claude-code": "claude", "codex": "codex"}
MODELS = ("litellm", "responses-api")
RUNNERS = (*TOOLS, *MODELS)

TOOL = """\
#!{python} -IS
import os, sys
with open("input.yaml") as stream:
    situation = stream.read().split()[1].strip("/")
with open(os.path.join({directory!r}, situation + ".jsonl"), encoding="utf-8") as stream:
    print(stream.read().replace("SECRET", os.environ.get("SERVICE_API_KEY", "")))
"""
"""A tool that prints what it once printed in a situation, and exits with status 0."""


def install(project: Project, kind: str, said: dict[str, str]) -> str:
    """A ``PATH`` with the tool of a runner that says something else in each situation."""
    directory = project.path / "bin"
    directory.mkdir()
    for situation, text in said.items():
        (directory / f"{situation}.jsonl").write_text(text, encoding="utf-8")
    program = directory / TOOLS[kind]
    program.write_text(TOOL.format(python=sys.executable, directory=str(directory)))
    program.chmod(0o755)
    return f"{directory}:/usr/local/bin:/usr/bin:/bin"


def fixture(name: str) -> str:
    return (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8")


def lines(*objects: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    with provider(lambda asked: Answer(content="x")) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        yield server


def said(asked: Asked) -> list[dict[str, Any]]:
    """What a model was told, in either protocol."""
    found: list[dict[str, Any]] = asked.get("messages") or asked["input"]
    return found


# -- 9: exit status 0, and no work ----------------------------------------------------------

INIT = {"type": "system", "subtype": "init", "model": "m", "slash_commands": ["review"]}
RESULT = {"type": "result", "subtype": "success", "is_error": False}
SAID_OF_TOOLS = {
    "claude-code": {
        "limited": fixture("claude_429"),
        "denied": fixture("claude_unpermitted"),
        "nosuch": lines(INIT, {**RESULT, "result": "Unknown command: /nosuch", "num_turns": 0}),
        "silent": lines(INIT, {**RESULT, "result": "", "num_turns": 1}),
    },
    "codex": {
        "limited": fixture("codex_429"),
        "denied": fixture("codex_failing"),
        "nosuch": "error: unrecognized subcommand 'nosuch'\n",
        "silent": lines({"type": "turn.started"}, {"type": "turn.completed", "usage": {}}),
    },
}
SITUATIONS = ("limited", "denied", "unknown", "silent")
REPORTED = """\
dataset: {{path: cases}}
execution: {{prompt: "{{message}}", timeout: 20}}
models: {{skill: {model}}}
runner: {{type: {kind}, {rest}}}
judges:
  - {{name: allowed, builtin: process/tool_call_validation}}
"""


def model_in_trouble(asked: Asked) -> Answer:
    messages = said(asked)
    situation = str(messages[0]["content"])
    if "limited" in situation:
        return Answer(status=429, error="rate limit reached", headers={"retry-after": "50"})
    if "silent" in situation:
        return Answer(content="")
    if len(messages) > 1:
        return Answer(content="I could not.")
    if "denied" in situation:
        return Answer(tool="read", arguments='{"path": "/etc/passwd"}')
    return Answer(tool="nosuch", arguments="{}")


@pytest.mark.parametrize("kind", RUNNERS)
def test_9_an_agent_that_exits_0_without_work_is_classified_by_evidence(
    project: Project, server: Provider, kind: str
) -> None:
    if kind in TOOLS:
        rest = f'env: {{PATH: "{install(project, kind, SAID_OF_TOOLS[kind])}"}}'
    else:
        server.reply = model_in_trouble
        rest = "settings: {tools: [read]}"
    model = "openai/some-model" if kind in MODELS else "m"
    project.suite(REPORTED.format(kind=kind, model=model, rest=rest))
    for situation in SITUATIONS:
        project.case(situation, {"message": "/nosuch" if situation == "unknown" else situation})
    result = project.run("--agent-eval")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = project.results()
    assert {one.status for one in found.values()} <= {"failed", "error"}, "nothing is green"

    limited = found["limited"]
    assert (limited.status, limited.kind) == ("error", "infrastructure")
    assert "429" in limited.reason or "rate limit" in limited.reason.lower()
    assert limited.verdicts == (), "no judge speaks about what is no work of an agent"

    denied = found["denied"]
    assert (denied.status, denied.kind) == ("failed", "verdict")
    if kind == "claude-code":
        assert denied.notes == ("tool calls without permission: Write 1",)
    assert any(event.get("is_error") for event in events(project, denied))

    unknown = found["unknown"]
    if kind in TOOLS:
        assert (unknown.status, unknown.kind, unknown.lasting) == ("error", "infrastructure", True)
        assert "nosuch" in unknown.reason
    else:
        assert (unknown.status, unknown.kind) == ("failed", "verdict")
        assert "there is no tool 'nosuch'" in str(events(project, unknown))

    silent = found["silent"]
    assert (silent.status, silent.kind) == ("failed", "agent")
    assert silent.reason.startswith("produced nothing")


def events(project: Project, result: TrialResult) -> list[dict[str, Any]]:
    stored = project.latest / result.record / "events.jsonl"
    return [json.loads(line) for line in stored.read_text().splitlines()]


# -- 12: a key of the environment -----------------------------------------------------------

SECRET = "sk-live/0123+abc=def 'quoted\" and ünicode"
KEPT = """\
dataset: {{path: cases}}
execution: {{prompt: "{{message}}", timeout: 20}}
models: {{skill: {model}, judge: openai/some-judge}}
runner: {{type: {kind}, {rest}}}
judges:
  - {{name: asks, llm_rubric: "Good?", feedback_type: bool}}
  - name: raises
    check: |
      import os
      raise ValueError(os.environ["SERVICE_API_KEY"] + outputs["final_message"])
"""
TOLD = {
    "claude-code": {
        "talks": lines(
            INIT,
            {
                "type": "assistant",
                "message": {
                    "id": "1",
                    "model": "m",
                    "content": [{"type": "text", "text": "SECRET"}],
                },
            },
            {**RESULT, "result": "The key is SECRET", "num_turns": 1},
        ),
        "fails": lines(INIT, {**RESULT, "is_error": True, "result": "refused: SECRET"}),
    },
    "codex": {
        "talks": lines(
            {"type": "turn.started"},
            {
                "type": "item.completed",
                "item": {"id": "item_1", "type": "agent_message", "text": "The key is SECRET"},
            },
            {"type": "turn.completed", "usage": {}},
        ),
        "fails": lines({"type": "turn.failed", "error": {"message": "refused: SECRET"}}),
    },
}


def model_that_tells(asked: Asked) -> Answer:
    if asked["model"] == "some-judge":
        return submit(asked, passed=False, rationale=f"It told {SECRET}")
    messages = said(asked)
    if "fails" in str(messages[0]["content"]):
        return Answer(status=401, error=f"wrong key: {SECRET}")
    if len(messages) > 1:
        return Answer(content=f"The key is {SECRET}", thinking=f"Not {SECRET}!")
    arguments = {"command": f'cat <<"E" | tee output/{SECRET[:7]}.txt\n{SECRET}\nE\n'}
    return Answer(tool="bash", arguments=json.dumps(arguments), thinking=SECRET)


def places(root: Path, ours: set[Path]) -> list[str]:
    """Files below a directory that hold the key, in any of its forms, or have it in their name."""
    forms = [SECRET.encode(), json.dumps(SECRET)[1:-1].encode(), b"0123+abc=def"]
    found = []
    for path in root.rglob("*"):
        if path.is_file() and path not in ours:
            content = path.read_bytes() + str(path).encode()
            found += [str(path) for form in forms if form in content]
    return found


@pytest.mark.parametrize("kind", RUNNERS)
def test_12_a_key_of_the_environment_is_found_nowhere(
    project: Project, server: Provider, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", SECRET)
    server.reply = model_that_tells
    rest = "settings: {tools: [bash]}"
    if kind in TOOLS:
        path = install(project, kind, TOLD[kind])
        rest = f'env: {{PATH: "{path}", SERVICE_API_KEY: $SERVICE_API_KEY}}'
    model = "openai/some-model" if kind in MODELS else "m"
    project.suite(KEPT.format(kind=kind, model=model, rest=rest))
    project.case("talks", {"message": "talks"})
    project.case("fails", {"message": "fails"})
    ours = {path for path in project.path.rglob("*") if path.is_file()}
    junit = project.path / "junit.xml"
    result = project.run(
        "--agent-eval", "-vv", "-rA", f"--junitxml={junit}", "-o", "junit_logging=all"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert places(project.path, ours) == []
    printed = result.stdout.str() + result.stderr.str()
    assert SECRET not in printed
    assert "0123+abc=def" not in printed
    assert "***SERVICE_API_KEY***" in printed, "it was met, and replaced"
    recorded = [path.read_text() for path in project.path.glob("recordings/*/*.json")]
    assert any("***SERVICE_API_KEY***" in text for text in recorded)
    assert junit.read_text("utf-8").count("***SERVICE_API_KEY***") > 1
