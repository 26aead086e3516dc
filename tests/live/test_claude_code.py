from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.interaction import Decision, Question
from pytest_agent_eval.runners.path_rules import claude_rules
from pytest_agent_eval.suite.models.agent import PermissionsConfig
from tests.live.provider import Call, Refuse, Say
from tests.unit.runners.conftest import MakeTask


def types(execution: Any) -> list[str]:
    return [event["type"] for event in execution.events if event["type"] != "other"]


def test_it_writes_a_file(live: Any, make_task: MakeTask) -> None:
    path = make_task().output_dir / "a.txt"
    write = Call("Write", {"file_path": str(path), "content": "hello"}, "I write.")
    execution, provider = live(
        "claude-code",
        [write, Say("Done.")],
        name="claude_write",
        system_prompt="Be brief.",
        effort="low",
    )
    assert execution.failure is None, execution.error
    assert execution.output == "Done."
    assert path.read_text() == "hello"
    assert types(execution) == ["message", "tool_call", "tool_result", "message", "result"]
    assert (execution.usage.input_tokens, execution.usage.num_turns) == (200, 2)
    assert execution.usage.model == "claude-sonnet-4-5"
    assert "Be brief." in str(provider.requests[0]["system"])


def test_subagents_have_their_own_model(live: Any) -> None:
    asked = {"description": "look", "prompt": "look", "subagent_type": "general-purpose"}
    shell = Call("Bash", {"command": "echo hi", "description": "greet"}, "I look.")
    execution, provider = live(
        "claude-code",
        [Call("Agent", asked, "I delegate."), shell, Say("Seen."), Say("Done.")],
        name="claude_subagent",
        subagent_model="claude-haiku-4-5",
    )
    assert [request["model"] for request in provider.requests] == [
        *("claude-sonnet-4-5", "claude-haiku-4-5", "claude-haiku-4-5", "claude-sonnet-4-5")
    ]
    assert execution.usage.input_tokens == 400
    agents = {event["agent"] for event in execution.events}
    assert len(agents) == 2


def test_a_deny_rule_on_write_holds(live: Any, make_task: MakeTask) -> None:
    rules = claude_rules(
        PermissionsConfig.model_validate({"deny": [{"path": "output/", "tools": ["Write"]}]})
    )
    path = make_task().output_dir / "a.txt"
    write = Call("Write", {"file_path": str(path), "content": "hello"})
    execution, _ = live(
        "claude-code",
        [write, Say("Refused.")],
        name="claude_denied",
        runner={"settings": {"permissions": rules}},
    )
    assert not path.exists()
    (result,) = [event for event in execution.events if event["type"] == "tool_result"]
    assert result["is_error"]


def test_without_a_permission_it_is_noted(live: Any, make_task: MakeTask) -> None:
    path = make_task().output_dir / "a.txt"
    write = Call("Write", {"file_path": str(path), "content": "hello"})
    execution, _ = live(
        "claude-code",
        [write, Say("I could not.")],
        name="claude_unpermitted",
        runner={"permission_mode": "default"},
    )
    assert execution.notes == ("tool calls without permission: Write 1",)


@pytest.mark.parametrize("budget", [0.0, 0.001])
def test_a_budget_ends_it(live: Any, budget: float) -> None:
    shell = Call("Bash", {"command": "echo hi", "description": "greet"})
    execution, _ = live("claude-code", [shell], name="claude_budget", max_budget_usd=budget)
    assert execution.failure == "budget"
    assert execution.usage.cost_usd is not None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "infrastructure"),
        (529, "infrastructure"),
        (500, "infrastructure"),
        (401, "infrastructure"),
        (404, "infrastructure"),
        (400, "agent"),
    ],
)
def test_what_the_provider_refuses(live: Any, status: int, kind: str) -> None:
    execution, _ = live("claude-code", [Refuse(status)], name=f"claude_{status}")
    assert execution.failure == kind
    assert execution.exit_code == 1


def test_no_provider(live: Any) -> None:
    execution, _ = live(
        "claude-code", [Say("")], name="claude_unreachable", url="http://127.0.0.1:9"
    )
    assert execution.failure == "infrastructure"


def test_a_skill(live: Any, make_task: MakeTask) -> None:
    skill = make_task().workspace / ".claude" / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greet\ndescription: greets\n---\nGreet $ARGUMENTS warmly.\n")
    _, provider = live("claude-code", [Say("Hi.")], skill="greet", arguments="Bob")
    assert "Greet Bob warmly." in str(provider.requests[0]["messages"])


def test_a_skill_that_is_not_there(live: Any) -> None:
    with pytest.raises(RunnerError, match="knows no skill nosuch") as caught:
        live("claude-code", [Say("Hi.")], skill="nosuch", arguments="Bob")
    assert caught.value.lasting


def test_a_skill_of_a_plugin(live: Any, tmp_path: Path) -> None:
    plugin = tmp_path / "project" / "evals" / "kit"
    files = {
        ".claude-plugin/plugin.json": '{"name": "kit", "version": "1.0.0"}',
        "skills/greet/SKILL.md": "---\nname: greet\ndescription: greets\n---\nWave to $ARGUMENTS.\n",
    }
    for name, text in files.items():
        (plugin / name).parent.mkdir(parents=True, exist_ok=True)
        (plugin / name).write_text(text)
    _, provider = live(
        "claude-code",
        [Say("Hi.")],
        skill="kit:greet",
        arguments="Bob",
        runner={"plugin_dirs": ["kit"]},
    )
    assert "Wave to Bob." in str(provider.requests[0]["messages"])


class Answers:
    """Answers each question with its last option, and denies Bash."""

    answers_questions = True
    patterns = ("AskUserQuestion", "Ba*", "mcp__x__*")

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.asked: list[Question] = []

    def ask(self, question: Question, *, call: str = "", input: Any = None) -> str:
        if self.fails:
            raise RunnerError(self.fails, lasting=True)
        self.asked.append(question)
        return ", ".join(question.options) if question.multi else question.options[-1]

    def check_tool(self, name: str, input: Any, **about: Any) -> Decision:
        return Decision(name != "Bash", "not here" if name == "Bash" else "", handled=True)


QUESTIONS = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "multiSelect": False,
            "options": [
                {"label": "Red", "description": "warm"},
                {"label": "Blue", "description": "cold"},
            ],
        },
        {
            "question": "Which sizes?",
            "header": "Sizes",
            "multiSelect": True,
            "options": [
                {"label": "S", "description": "small"},
                {"label": "M", "description": "middle"},
            ],
        },
    ]
}


def test_questions_are_answered_and_calls_denied(live: Any) -> None:
    answers = Answers()
    shell = Call("Bash", {"command": "echo hi", "description": "greet"}, "I greet.")
    execution, provider = live(
        "claude-code",
        [Call("AskUserQuestion", QUESTIONS, "I ask."), shell, Say("Done.")],
        interaction=answers,
    )
    assert execution.failure is None, execution.error
    offered = [tool["name"] for tool in provider.requests[0]["tools"]]
    assert "AskUserQuestion" in offered
    assert [one.text for one in answers.asked] == ["Which colour?", "Which sizes?"]
    assert answers.asked[0].details == {"Red": "warm", "Blue": "cold"}
    answered, denied = [one for one in execution.events if one["type"] == "tool_result"]
    assert not answered["is_error"]
    assert '"Which colour?"="Blue"' in answered["text"]
    assert '"Which sizes?"="S, M"' in answered["text"]
    assert denied["is_error"]
    assert "not here" in denied["text"]
    assert execution.notes == ()


def test_a_question_that_cannot_be_answered_ends_it(live: Any) -> None:
    execution, provider = live(
        "claude-code",
        [Call("AskUserQuestion", QUESTIONS, "I ask."), Say("I go on.")],
        interaction=Answers(fails="not recorded"),
    )
    assert (execution.failure, execution.error) == ("infrastructure", "not recorded")
    assert execution.lasting
    assert execution.exit_code is None
    assert [one["name"] for one in execution.events if one["type"] == "tool_call"] == [
        "AskUserQuestion"
    ]
    assert provider.requests


def test_unpermitted_calls_are_refused_where_questions_are_answered(
    live: Any, make_task: MakeTask
) -> None:
    path = make_task().output_dir / "a.txt"
    write = Call("Write", {"file_path": str(path), "content": "hello"})
    execution, _ = live(
        "claude-code",
        [write, Say("I could not.")],
        runner={"permission_mode": "default"},
        interaction=Answers(),
    )
    assert not path.exists()
    assert execution.notes == ("tool calls without permission: Write 1",)
