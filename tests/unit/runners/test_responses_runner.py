"""Models behind the Responses API as agents, played by a provider on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.llm import ModelProcess
from pytest_agent_eval.runners import Task
from tests.provider import Answer, provider, text
from tests.unit.runners.model_stage import Stage, use, without_time

MakeTask = Callable[..., Task]
ALL = ["read", "write", "list", "bash"]
SEARCH = {"type": "web_search"}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: ModelProcess) -> Iterator[Stage]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with provider(lambda asked: text("42")) as server:
        yield Stage(tmp_path, server, models, "responses-api")


@pytest.fixture
def task(make_task: MakeTask) -> MakeTask:
    def make(**options: Any) -> Task:
        return make_task(**{"prompt": "What is 6 x 7?", "model": "some-model", **options})

    return make


# -- one question --------------------------------------------------------------------------


def test_a_model_is_asked_once_and_nothing_is_kept_there(stage: Stage, task: MakeTask) -> None:
    settings = {
        "temperature": 0,
        "max_output_tokens": 64,
        "max_tool_calls": 3,
        "top_p": 0.5,
        "text": {"verbosity": "low"},
        "truncation": "auto",
        "parallel_tool_calls": False,
        "service_tier": "flex",
        "tool_choice": "auto",
    }
    done = stage.runner([SEARCH], settings=settings).run(task(system_prompt="Be brief."))
    assert stage.server.paths == ["/v1/responses"]
    (asked,) = stage.server.asked
    assert asked["model"] == "some-model"
    assert asked["input"] == [{"role": "user", "content": "What is 6 x 7?"}]
    assert asked["instructions"] == "Be brief."
    assert asked["store"] is False
    assert {name: asked[name] for name in settings} == settings
    assert asked["tools"] == [SEARCH]
    assert not {"reasoning", "include", "previous_response_id", "stream"} & asked.keys()
    assert (done.output, done.exit_code, done.failure) == ("42", 0, None)
    assert done.events == ({"type": "message", "agent": "root", "text": "42"},)
    usage = done.usage
    assert (usage.input_tokens, usage.output_tokens, usage.num_turns) == (11, 7, 1)
    assert (usage.model, usage.models_used) == ("some-model", ("some-model",))
    assert usage.cost_usd is None  # no price is known


def test_effort_asks_for_reasoning_and_for_its_sealed_form(stage: Stage, task: MakeTask) -> None:
    settings = {"reasoning": {"summary": "auto"}}
    runner = stage.runner(effort="low", settings=settings)
    done = runner.run(task(model="gpt-5-mini", effort="low"))
    (asked,) = stage.server.asked
    assert asked["reasoning"] == {"summary": "auto", "effort": "low"}
    assert asked["include"] == ["reasoning.encrypted_content"]
    assert done.usage.cost_usd is not None
    assert done.usage.cost_usd > 0
    stage.runner(effort="low", settings={"include": []}).run(task(effort="low"))
    assert "include" not in stage.server.asked[-1]


def test_another_server_and_another_model_of_the_older_format(stage: Stage, task: MakeTask) -> None:
    with provider(lambda asked: text("from elsewhere")) as other:
        settings = {"base_url": other.url, "default_model": "their-model"}
        done = stage.runner(settings=settings).run(task(model=""))
        assert done.output == "from elsewhere"
        assert other.asked[0]["model"] == "their-model"
    assert not stage.server.asked


@pytest.mark.parametrize(
    ("options", "words"),
    [({"model": ""}, "models.skill, or --agent-eval-model"), ({"prompt": " "}, "execution.prompt")],
)
def test_a_task_that_cannot_be_asked(
    stage: Stage, task: MakeTask, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(RunnerError, match=re.escape(words)) as caught:
        stage.runner().run(task(**options))
    assert caught.value.lasting
    assert not stage.server.asked


# -- tools ---------------------------------------------------------------------------------


def test_what_was_said_is_carried_along(stage: Stage, task: MakeTask) -> None:
    thinks = Answer(
        tool="write", arguments='{"path": "output/a.txt", "content": "x"}', thinking="Hm."
    )
    stage.script(thinks, use("read", path="output/a.txt"), text("done"))
    one = task(effort="low")
    done = stage.runner(ALL, effort="low").run(one)
    assert (one.output_dir / "a.txt").read_text() == "x"
    assert (done.output, done.usage.num_turns, done.usage.input_tokens) == ("done", 3, 33)
    assert [event["type"] for event in done.events] == [
        *("thinking", "tool_call", "tool_result", "tool_call", "tool_result", "message"),
    ]
    assert done.events[0]["text"] == "Hm."
    first, last = stage.server.asked[0], stage.server.asked[-1]
    assert [tool["name"] for tool in first["tools"]] == ALL
    assert first["tools"][0]["strict"] is False
    assert last["input"] == [
        {"role": "user", "content": "What is 6 x 7?"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "sealed",
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "write",
            "arguments": '{"path": "output/a.txt", "content": "x"}',
        },
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": "wrote 1 bytes to output/a.txt",
        },
        {
            "type": "function_call",
            "call_id": "call_2",
            "name": "read",
            "arguments": '{"path": "output/a.txt"}',
        },
        {"type": "function_call_output", "call_id": "call_2", "output": "x"},
    ]


def test_reasoning_that_the_provider_has_forgotten_is_left_out(
    stage: Stage, task: MakeTask
) -> None:
    stage.script(Answer(tool="list", arguments="{}", thinking="Hm."), text("done"))
    stage.runner(["list"]).run(task())
    kinds = [item.get("type") for item in stage.server.asked[-1]["input"]]
    assert kinds == [None, "function_call", "function_call_output"]


def test_arguments_that_are_none_are_told_and_not_given_back(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(tool="read", arguments='{"path'), text("sorry"))
    done = stage.runner(["read"]).run(task())
    assert stage.told()[0].startswith("error: the arguments are no JSON")
    assert stage.server.asked[-1]["input"][1]["arguments"] == "{}"
    assert done.events[0]["input"] == '{"path'


HOSTED = (
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    },
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "code": "print(1)",
        "container_id": "c",
        "outputs": [{"type": "logs", "logs": "1"}],
    },
    {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "wiki",
        "name": "ask",
        "arguments": '{"q": 1}',
        "output": None,
        "error": "no such page",
    },
    {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c9",
        "status": "completed",
        "action": {"commands": ["ls"]},
    },
    {
        "type": "shell_call_output",
        "id": "so_1",
        "call_id": "c9",
        "output": [{"stdout": "", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}],
    },
    {"type": "brand_new_thing", "id": "zz_1", "what": {"deep": 1}},
)


def test_items_of_the_providers_own_tools_are_events(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(content="Found.", items=HOSTED))
    done = stage.runner([SEARCH]).run(task())
    assert done.output == "Found."
    seen = [
        (event["type"], event.get("name"), event.get("id"), event.get("is_error"))
        for event in done.events
    ]
    assert seen == [
        ("tool_call", "web_search", "ws_1", None),
        ("tool_call", "code_interpreter", "ci_1", None),
        ("tool_result", "code_interpreter", "ci_1", False),
        ("tool_call", "mcp__wiki__ask", "mcp_1", None),
        ("tool_result", "mcp__wiki__ask", "mcp_1", True),
        ("tool_call", "shell", "c9", None),
        ("tool_result", "shell", "c9", True),
        ("other", None, None, None),
        ("message", None, None, None),
    ]
    inputs = [event["input"] for event in done.events if event["type"] == "tool_call"]
    assert inputs == [
        {"type": "search", "query": "q"},
        {"code": "print(1)", "container_id": "c"},
        {"q": 1},
        {"commands": ["ls"]},
    ]
    assert done.events[4]["text"] == "no such page"
    assert done.events[7]["raw"] == HOSTED[-1]


def test_hosted_calls_are_given_back_as_they_are(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(tool="list", arguments="{}", items=HOSTED[:1]), text("done"))
    stage.runner([SEARCH, "list"]).run(task())
    assert stage.server.asked[-1]["input"][1] == HOSTED[0]
    assert [tool["type"] for tool in stage.server.asked[0]["tools"]] == ["function", "web_search"]


def test_nobody_approves_and_that_is_noted(stage: Stage, task: MakeTask) -> None:
    wants = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "wiki",
        "name": "ask",
        "arguments": "{}",
    }
    stage.script(Answer(items=(wants,)), text("I may not."))
    done = stage.runner([{"type": "mcp", "server_label": "wiki"}]).run(task())
    assert done.output == "I may not."
    answer = {"approval_request_id": "mcpr_1", "approve": False}
    assert stage.server.asked[-1]["input"][-1] == {"type": "mcp_approval_response", **answer}
    assert done.notes == ("tool calls without permission: mcp__wiki__ask 1",)
    assert done.events[1]["is_error"]


# -- skills --------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [".agents/skills", ".claude/skills", ".skills", "skills"])
def test_a_skill_is_read_to_the_model(stage: Stage, task: MakeTask, place: str) -> None:
    one = task(prompt="", skill="/greet", arguments="Ada")
    directory = one.workspace / place / "greet"
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text("Say hello.")
    runner = stage.runner(config={"skill": "greet", "arguments": "{name}"})
    assert runner.run(one).output == "42"
    (asked,) = stage.server.asked
    assert asked["input"][0]["content"] == (
        f"Follow the skill greet. Its files are in {place}/greet.\n\nSay hello.\n\nArguments: Ada"
    )
    assert [tool["name"] for tool in asked["tools"]] == ["read", "write", "list"]


@pytest.mark.parametrize("name", ["greet", "../greet", ".."])
def test_a_skill_that_is_not_there(stage: Stage, task: MakeTask, name: str) -> None:
    one = task(prompt="", skill=name)
    (one.workspace / "skills").mkdir()
    (one.workspace / "SKILL.md").write_text("x")
    with pytest.raises(RunnerError, match=r"dataset\.workspace\.files") as caught:
        stage.runner().run(one)
    assert caught.value.lasting


# -- failures ------------------------------------------------------------------------------


def test_a_refusal_is_an_answer(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(refusal="I will not."))
    done = stage.runner().run(task())
    assert (done.output, done.failure, done.notes) == ("I will not.", None, ("the model refused",))
    (event,) = done.events
    assert event == {"type": "message", "agent": "root", "text": "I will not.", "refusal": True}


def test_a_content_filter_is_the_agents_failure(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(content="Half of", end="content_filter"))
    done = stage.runner().run(task())
    assert (done.failure, done.exit_code) == ("agent", None)
    assert "content filter" in done.error
    assert done.events[0]["text"] == "Half of"
    assert done.usage.num_turns == 1


def test_a_cut_answer_is_noted(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(content="Half of", end="length"))
    done = stage.runner().run(task())
    assert (done.output, done.failure) == ("Half of", None)
    assert done.notes == ("an answer was cut off at its longest length (max_output_tokens)",)


def test_a_response_that_failed_for_good(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(end="failed", error="bad_image"))
    with pytest.raises(RunnerError, match="status failed: bad_image: it went wrong") as caught:
        stage.runner().run(task())
    assert caught.value.lasting
    assert len(stage.server.asked) == 1


def test_a_response_that_failed_for_what_was_asked(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(end="failed", error="invalid_prompt"))
    done = stage.runner().run(task())
    assert (done.failure, done.lasting) == ("agent", False)
    assert "invalid_prompt" in done.error


def test_a_response_that_failed_for_now_is_asked_for_again(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(end="failed", error="server_error"), text("42"))
    assert stage.runner().run(task()).output == "42"
    assert len(stage.server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "failure", "words"),
    [
        (
            Answer(status=400, error="Your input is too long", end="context_length_exceeded"),
            "agent",
            "ContextWindowExceededError: OpenAIException - Your input is too long",
        ),
        (
            Answer(status=400, error="flagged", end="content_filter"),
            "agent",
            "BadRequestError: OpenAIException - flagged",
        ),
        (
            Answer(status=429, error="slow down", headers={"retry-after": "50"}),
            "infrastructure",
            "no time for another: RateLimitError: OpenAIException - slow down",
        ),
    ],
)
def test_whose_fault_it_is(
    stage: Stage, task: MakeTask, answer: Answer, failure: str, words: str
) -> None:
    stage.script(answer)
    done = stage.runner().run(task(timeout=20.0))
    assert (done.failure, done.exit_code, done.lasting) == (failure, None, False)
    assert words in done.error
    assert done.events[-1] == {"type": "error", "agent": "root", "text": done.error}
    assert len(stage.server.asked) == 1


@pytest.mark.parametrize(
    ("status", "code"), [(401, "invalid_api_key"), (429, "insufficient_quota")]
)
def test_no_key_and_no_money_are_lasting(
    stage: Stage, task: MakeTask, status: int, code: str
) -> None:
    stage.script(Answer(status=status, error="no", end=code))
    with pytest.raises(RunnerError, match="could not be asked") as caught:
        stage.runner().run(task())
    assert caught.value.lasting
    assert len(stage.server.asked) == 1


def test_limits(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(tool="list", arguments="{}", tokens=(1_000_000, 0)))
    done = stage.runner(["list"], settings={"max_turns": 2}).run(task())
    assert done.error == "not done after 2 turns (runner.settings.max_turns)"
    done = stage.runner(["list"]).run(task(model="gpt-4o-mini", max_budget_usd=0.4))
    assert done.failure == "budget"
    assert done.usage.cost_usd == pytest.approx(0.45)


# -- recordings ----------------------------------------------------------------------------


def test_a_recorded_task_is_replayed_to_the_letter(
    stage: Stage, task: MakeTask, tmp_path: Path
) -> None:
    stage.script(
        Answer(tool="bash", arguments='{"command": "pwd"}', thinking="Hm.", items=HOSTED),
        Answer(refusal="No.", thinking="Well."),
    )
    first = stage.runner(ALL, "record", effort="low").run(task(effort="low"))
    assert len(stage.server.asked) == 2
    stored = [path.read_text() for path in sorted(stage.evals.glob("recordings/*/*.json"))]
    assert len(stored) == 2
    assert str(tmp_path) not in "".join(stored)
    assert {json.loads(one)["request"]["protocol"] for one in stored} == {"responses"}
    stage.server.stop()
    again = stage.runner(ALL, "replay", effort="low").run(task(effort="low", trial_id="other"))
    assert without_time(again) == without_time(first)


def test_what_was_recorded_by_chat_is_another_question(stage: Stage, task: MakeTask) -> None:
    stage.runner(mode="record").run(task())
    stage.kind = "litellm"
    with pytest.raises(RunnerError, match="not recorded"):
        stage.runner(mode="replay").run(task(model="openai/some-model"))
