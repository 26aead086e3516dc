"""What sessions whose agents are models have in common, whatever the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.provider import Answer, Asked, Provider, provider

from .conftest import Project

SUITE = """\
dataset: {path: cases}
runner:
  type: KIND
  settings: {tools: [write]}
execution: {prompt: "Greet {message} in output/greeting.txt.", retries: 2}
models: {skill: openai/gpt-4o-mini}
judges:
  - name: greeted
    check: |
      text = outputs["files"].get("greeting.txt", "")
      return text == "Hello " + outputs["input"]["message"], text
  - {name: thought, check: 'return "Hm." in outputs["reasoning"]'}
"""
KINDS = ("litellm", "responses-api")
TOKENS = (1_000_000, 0)  # 15 cents


def said(asked: Asked) -> list[dict[str, str]]:
    found: list[dict[str, str]] = asked.get("messages") or asked["input"]
    return found


def greet(asked: Asked) -> Answer:
    messages = said(asked)
    if len(messages) > 1:
        return Answer(content="Greeted.", tokens=TOKENS)
    name = messages[0]["content"].split()[1]
    arguments = json.dumps({"path": "output/greeting.txt", "content": f"Hello {name}"})
    return Answer(tool="write", arguments=arguments, thinking="Hm.", tokens=TOKENS)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(project: Project, kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    project.suite(SUITE.replace("KIND", kind))
    project.cases(2)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    with provider(greet) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        yield server


def test_a_replay_spends_nothing(
    project: Project, server: Provider, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run("--agent-eval").assert_outcomes(passed=2)
    assert len(server.asked) == 4
    assert {path.rpartition("/")[2] for path in server.paths} == {
        "completions" if kind == "litellm" else "responses"
    }
    first = project.results()
    assert [one.usage.cost_usd for one in first.values()] == pytest.approx([0.3, 0.3])
    server.stop()
    monkeypatch.delenv("OPENAI_API_KEY")
    options = ("--agent-eval-llm", "replay", "--agent-eval-max-cost", "0.01")
    project.run("--agent-eval", *options).assert_outcomes(passed=2)
    for name, again in project.results().items():
        usage = again.usage
        assert usage.cost_usd == first[name].usage.cost_usd
        assert usage.recorded_usd == usage.cost_usd
        assert [(one.judge, one.value) for one in again.verdicts] == [
            (one.judge, one.value) for one in first[name].verdicts
        ]


def test_an_error_in_the_middle_costs_what_it_cost(project: Project, server: Provider) -> None:
    def fails(asked: Asked) -> Answer:
        return greet(asked) if len(said(asked)) == 1 else Answer(status=401, error="bad key")

    server.reply = fails
    result = project.run("--agent-eval", "-k", "001")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "bad key" in result.stdout.str()
    assert len(server.asked) == 2, "not tried again"
    (one,) = project.results().values()
    assert (one.status, one.kind, one.lasting) == ("error", "infrastructure", True)
    assert one.usage.cost_usd == pytest.approx(0.15)
    record = project.latest / one.record
    events = [json.loads(line) for line in (record / "events.jsonl").read_text().splitlines()]
    assert [event["type"] for event in events] == [
        *("thinking", "tool_call", "tool_result", "error"),
    ]
    assert json.loads((record / "record.json").read_text())["cost_usd"] == pytest.approx(0.15)


def test_a_missing_recording_is_a_lasting_error_with_case_and_command(
    project: Project, server: Provider
) -> None:
    result = project.run("--agent-eval", "--agent-eval-llm", "replay", "-k", "001")
    (one,) = project.results().values()
    assert (one.status, one.lasting, one.notes) == ("error", True, ())
    shown = " ".join(result.stdout.str().split())
    assert f"{one.case}: a recording is missing: case {one.case}, the agent: a call of a" in shown
    assert f"record it: pytest --agent-eval --agent-eval-llm record -k {one.case};" in shown
    assert not server.asked
