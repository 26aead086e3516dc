"""Sessions whose agent is a model, live and recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.provider import Answer, Asked, Provider, provider

from .conftest import Project

SUITE = """\
dataset: {path: cases}
runner:
  type: litellm
  settings: {tools: [read, write, bash]}
execution: {prompt: "Greet {message} in output/greeting.txt."}
models: {skill: openai/some-model}
judges:
  - name: greeted
    check: |
      text = outputs["files"].get("greeting.txt", "")
      return text == "Hello " + outputs["input"]["message"], text
  - {name: tools, builtin: process/tool_call_validation}
"""


def greet(asked: Asked) -> Answer:
    """Look around, write the file, say so."""
    messages = asked["messages"]
    told = [message["content"] for message in messages if message["role"] == "tool"]
    if not told:
        return Answer(tool="bash", arguments=json.dumps({"command": "pwd; ls"}))
    if len(told) == 1:
        assert told[0] == "<workspace>\ninput.yaml\noutput\n", told
        name = messages[0]["content"].split()[1]
        content = {"path": "output/greeting.txt", "content": f"Hello {name}"}
        return Answer(tool="write", arguments=json.dumps(content))
    return Answer(content="Greeted.")


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    project.suite(SUITE)
    project.cases(2)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    with provider(greet) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        yield server


def outcome(project: Project) -> dict[str, Any]:
    """All that may not differ between a session and its replay, by case."""
    found = {}
    for name, result in project.results().items():
        usage = result.usage.to_dict()
        verdicts = [(verdict.judge, verdict.value) for verdict in result.verdicts]
        files = {
            path.relative_to(project.latest / result.record).as_posix(): path.read_bytes()
            for path in (project.latest / result.record).rglob("*")
            if path.name in ("greeting.txt", "events.jsonl")
        }
        assert len(files) == 2
        found[name] = (result.status, result.notes, usage, verdicts, files)
    return found


def recordings(project: Project) -> list[Path]:
    return sorted(project.path.glob("recordings/*/*.json"))


def test_recorded_once_replayed_without_network_or_key(
    project: Project, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run("--agent-eval").assert_outcomes(passed=2)
    assert len(server.asked) == 6
    assert len(recordings(project)) == 6
    assert str(project.path) not in "".join(path.read_text() for path in recordings(project))
    first = outcome(project)
    server.stop()
    monkeypatch.delenv("OPENAI_API_BASE")
    monkeypatch.delenv("OPENAI_API_KEY")
    project.run("--agent-eval", "--agent-eval-llm", "replay").assert_outcomes(passed=2)
    assert outcome(project) == first


def test_each_trial_is_asked_anew(project: Project, server: Provider) -> None:
    project.suite(SUITE.replace("execution: {", "execution: {trials: 2, "))
    project.run("--agent-eval", "-k", "001").assert_outcomes(passed=1)
    assert len(server.asked) == len(recordings(project)) == 6


def test_a_missing_recording_says_how_it_is_made(project: Project, server: Provider) -> None:
    result = project.run("--agent-eval", "--agent-eval-llm", "replay", "-k", "001")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = " ".join(result.stdout.str().split())
    assert "the agent: a call of a model is not recorded" in said
    assert "pytest --agent-eval --agent-eval-llm record" in said
    assert "Traceback" not in said
    assert not server.asked


def test_the_model_of_the_command_line(project: Project, server: Provider) -> None:
    project.suite(SUITE.replace("models: {skill: openai/some-model}\n", ""))
    result = project.run("--agent-eval", "-k", "001")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    said = "eval.yaml:3: runner.type: litellm asks a model and none is named: set models.skill, or"
    assert said in " ".join(result.stdout.str().split())
    result = project.run("--agent-eval", "-k", "001", "--agent-eval-model", "openai/other")
    result.assert_outcomes(passed=1)
    assert {asked["model"] for asked in server.asked} == {"other"}


def test_a_step_asked_of_a_model(project: Project, server: Provider) -> None:
    project.suite(
        SUITE.replace(
            "runner:\n  type: litellm\n  settings: {tools: [read, write, bash]}\n", ""
        ).replace(
            'execution: {prompt: "Greet {message} in output/greeting.txt."}',
            """\
runner: {type: cli, command: "true"}
execution:
  steps:
    - id: greet
      prompt: "Greet {message} in output/greeting.txt."
      runner: {type: litellm, settings: {tools: [write, bash]}}""",
        )
    )
    project.run("--agent-eval").assert_outcomes(passed=2)
    assert len(recordings(project)) == 6


def test_judged_again_without_any_model(
    project: Project, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run("--agent-eval").assert_outcomes(passed=2)
    for path in recordings(project):
        path.unlink()
    project.run("--agent-eval", "--agent-eval-rescore", "latest").assert_outcomes(passed=2)
    assert len(server.asked) == 6
