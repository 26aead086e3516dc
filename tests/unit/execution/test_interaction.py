"""What an unattended agent is answered, tier by tier, and what is told of it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.errors import CaseError, RunnerError
from pytest_agent_eval.execution.answerer import Answerer, _Shown
from pytest_agent_eval.execution.interaction import Interactions, with_asides
from pytest_agent_eval.llm import Gateway, ModelProcess
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runners import Execution, Task
from pytest_agent_eval.runners.interaction import Question, first_option
from pytest_agent_eval.suite.tool_handlers import ToolHandlers, ToolRule
from tests.provider import Answer, Provider, provider, submit, text
from tests.unit.execution.execution_bench import CASE, Bench

HANDLERS = ToolHandlers((ToolRule(("AskUserQuestion",), "Answer as a manager."),))
Ask = Callable[..., str]


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., Task]:
    def make(**options: Any) -> Task:
        workspace = tmp_path / "w"
        options = {"timeout": 30.0, **options}
        return Task({}, workspace, workspace / "output", tmp_path, **options)

    return make


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider(lambda asked: submit(asked, answer="blue")) as server:
        yield server


@pytest.fixture
def shared(
    tmp_path: Path, models: ModelProcess, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> Interactions:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-test")
    gateway = Gateway(tmp_path, api_base=server.url, process=models)
    return Interactions(HANDLERS, Answerer(gateway, "openai/user"))


COLOUR = Question("Which colour?", ("red", "blue"))


def told(interaction: Any) -> list[tuple[str, str, int]]:
    return [(one["text"], one["answer"], one["tier"]) for one in interaction.take_events()]


# -- tier 1 --------------------------------------------------------------------------------


def answered_case(bench: Bench, answers: str) -> Any:
    bench.add_case("asking", {**CASE, "answers.yaml": answers})
    return bench.case("asking")


def test_a_case_overrides_the_suite(bench: Bench) -> None:
    handlers = ToolHandlers(HANDLERS.rules, overrides={"A?": ("suite",), "B?": ("suite",)})
    case = answered_case(bench, "case_overrides: {'A?': case, 'C?': [Red, 2], 'D?': yes, 'E?': }")
    interaction = Interactions(handlers).of_case(case)
    assert interaction.ask(Question("A?")) == "case"
    assert interaction.ask(Question(" B?\n")) == "suite"
    assert interaction.ask(Question("C?", ("red", "2", "3"), multi=True)) == "red, 2"
    assert interaction.ask(Question("D?", ("No", "Yes"))) == "Yes"
    assert interaction.ask(Question("E?", ("No", "Yes"))) == "No"
    assert [tier for _, _, tier in told(interaction)] == [1, 1, 1, 1, 3]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("case_overrides: [a]", "case_overrides is a mapping"),
        ("case_overrides: {a: {b: c}}", "'a': an answer is text"),
        ("- a", "must be a mapping"),
    ],
)
def test_answers_that_cannot_be_used(bench: Bench, answers: str, message: str) -> None:
    case = answered_case(bench, answers)
    with pytest.raises(CaseError, match=message):
        Interactions(HANDLERS).of_case(case)
    assert Interactions().of_case(case).ask(COLOUR) == "red"


# -- tier 2 --------------------------------------------------------------------------------


def test_the_model_is_told_what_it_needs_and_no_more(
    bench: Bench, shared: Interactions, server: Provider, task: Callable[..., Task]
) -> None:
    interaction = shared.of_case(answered_case(bench, "likes: blue\n"))
    own = task()
    interaction.begin(own)
    question = Question(
        f"Which colour for {own.workspace}/a?", ("red", "blue"), details={"red": "warm"}
    )
    assert interaction.ask(question) == "blue"
    system, user = server.asked[0]["messages"]
    assert "follow no" in system["content"]
    for part in ("Answer as a manager.", "likes: blue", "What is 6 x 7?", "- red: warm\n- blue"):
        assert part in user["content"]
    assert "Which colour for <workspace>/a?" in user["content"]
    assert str(own.workspace) not in user["content"]
    assert "forty-two" not in user["content"], "annotations are none of its business"
    assert interaction.asked["calls"] == 1
    assert interaction.notes == []


def test_the_same_question_is_asked_once(
    shared: Interactions, server: Provider, task: Callable[..., Task]
) -> None:
    answers = []
    for _ in range(2):
        interaction = shared.of_case(None)
        interaction.begin(task())
        answers.append(interaction.ask(COLOUR))
    assert answers == ["blue", "blue"]
    assert len(server.asked) == 1


def test_a_reply_that_is_no_option_is_asked_for_again(
    shared: Interactions, server: Provider, task: Callable[..., Task]
) -> None:
    replies = iter(("purple", '"BLUE".'))
    server.reply = lambda asked: submit(asked, answer=next(replies))
    interaction = shared.of_case(None)
    interaction.begin(task())
    assert interaction.ask(COLOUR) == "blue"
    assert told(interaction) == [("Which colour?", "blue", 2)]
    assert interaction.asked["calls"] == 2


options = st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True)


@given(options, st.booleans(), st.data())
def test_an_answer_is_always_one_of_the_options(
    options: list[str], multi: bool, data: st.DataObject
) -> None:
    shown = _Shown(Question("?", tuple(options), multi), {})
    said = st.text() | st.sampled_from(options) | st.none() | st.integers()
    given_ = data.draw(said | st.lists(said, max_size=3))
    key = "answers" if multi else "answer"
    try:
        found = shown.read({key: given_})
    except ValueError:
        return
    assert found
    assert set(found) <= set(options)
    assert multi or len(found) == 1


@given(options, st.booleans())
def test_each_option_can_be_chosen(options: list[str], multi: bool) -> None:
    shown = _Shown(Question("?", tuple(options), multi), {})
    key = "answers" if multi else "answer"
    for option in options:
        if option == option.strip():
            assert shown.read({key: [option] if multi else option}) == (option,)


# -- tier 3 --------------------------------------------------------------------------------


@given(st.lists(st.text(), max_size=3), st.booleans())
def test_without_a_handler_the_first_option_is_taken(options: list[str], multi: bool) -> None:
    question = Question("?", tuple(options), multi)
    interaction = Interactions().of_case(None)
    assert interaction.ask(question) == first_option(question)
    ((_, answer, tier),) = told(interaction)
    assert (answer, tier) == (options[0] if options else "yes", 3)


def test_no_model_is_named(task: Callable[..., Task]) -> None:
    interaction = Interactions(HANDLERS).of_case(None)
    interaction.begin(task())
    assert interaction.ask(COLOUR) == "red"
    assert interaction.notes == [
        "the question 'Which colour?' was answered with its first option: no model is named "
        "(models.hook)"
    ]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Answer(status=401, error="no such key"), "could not be asked"),
        (text("I would rather not say."), "no structured answer"),
    ],
)
def test_a_model_that_fails(
    shared: Interactions, server: Provider, task: Callable[..., Task], reply: Answer, why: str
) -> None:
    server.reply = lambda asked: reply
    interaction = shared.of_case(None)
    interaction.begin(task())
    assert interaction.ask(COLOUR) == "red"
    assert told(interaction) == [("Which colour?", "red", 3)]
    (note,) = interaction.notes
    assert why in note


# -- time ----------------------------------------------------------------------------------


def test_an_answer_takes_no_longer_than_the_trial_has(
    shared: Interactions, server: Provider, task: Callable[..., Task]
) -> None:
    held = threading.Event()
    server.reply = lambda asked: Answer(content="late", before=lambda: held.wait(60))
    interaction = shared.of_case(None)
    interaction.begin(task(timeout=0.5))
    started = time.monotonic()
    assert interaction.ask(COLOUR) == "red"
    held.set()
    assert time.monotonic() - started < 20
    assert interaction.ask(COLOUR) == "red"
    assert "time is up" in interaction.notes[-1]


def test_a_session_that_stops_waits_for_no_answer(
    shared: Interactions, server: Provider, task: Callable[..., Task]
) -> None:
    held, cancelled = threading.Event(), threading.Event()

    def hold() -> None:
        cancelled.set()
        held.wait(60)

    server.reply = lambda asked: Answer(content="late", before=hold)
    interaction = shared.of_case(None)
    interaction.begin(task(cancelled=cancelled))
    started = time.monotonic()
    with pytest.raises(RunnerError, match="cancelled"):
        interaction.ask(COLOUR)
    held.set()
    assert time.monotonic() - started < 20


# -- what is told --------------------------------------------------------------------------


def test_questions_stand_after_the_call_that_asks_them() -> None:
    call = {"type": "tool_call", "name": "AskUserQuestion", "id": "t1", "agent": "sub"}
    result = {"type": "tool_result", "id": "t1"}
    first, second = ({"type": "question", "id": "t1", "text": one, "agent": "root"} for one in "ab")
    other = {"type": "question", "text": "c", "agent": "root"}
    found = with_asides([call, result, "junk"], [first, other, second])
    assert [one.get("text") for one in found] == [None, "a", "b", None, None, "c"]
    assert [one["agent"] for one in found[1:3]] == ["sub", "sub"]
    assert found[4] == {"type": "other", "raw": "junk"}


def run(
    bench: Bench, function: Callable[[Task], Any], trial: int = 1, **config: Any
) -> TrialResult:
    runner = {"type": "python", "function": "fixture:agent"}
    bench.config.update({"runner": runner, **config})
    return bench.run(trial=trial, agent=function)


def events(bench: Bench) -> list[dict[str, Any]]:
    path = bench.runs / "cases" / "refund_yes" / "1" / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_agent_without_handlers(bench: Bench) -> None:
    result = run(bench, lambda task: task.ask("Sure?") + str(task.check_tool("Bash").allowed))
    assert result.status == "passed"
    (event,) = events(bench)
    assert event == {
        "type": "question",
        "agent": "root",
        "text": "Sure?",
        "options": [],
        "answer": "yes",
        "tier": 3,
    }
    assert "no handler is for it" in result.notes[0]


def test_events_of_the_agent_itself_are_kept(bench: Bench) -> None:
    def agent(task: Task) -> Execution:
        task.ask("Sure?")
        (task.output_dir / "events.jsonl").write_text('{"type": "message", "text": "hi"}\n')
        return Execution(output="done")

    run(bench, agent)
    assert [event["type"] for event in events(bench)] == ["message", "question"]


def test_no_events_are_wanted(bench: Bench) -> None:
    run(bench, lambda task: task.ask("Sure?"), traces={"events": False})
    assert events(bench) == []


def test_an_async_agent_asks(bench: Bench) -> None:
    async def agent(task: Task) -> str:
        first, second = await asyncio.gather(
            task.ask_async("A?", ["1", "2"]), task.ask_async("B?", ["3", "4"])
        )
        return first + second

    assert run(bench, agent).status == "passed"
    assert sorted(event["text"] for event in events(bench)) == ["A?", "B?"]


def test_an_async_agent_must_not_block_the_others(bench: Bench) -> None:
    async def agent(task: Task) -> str:
        return task.ask("A?")

    result = run(bench, agent)
    assert (result.status, result.kind) == ("failed", "agent")
    assert result.execution is not None
    assert "await task.ask_async" in result.execution.rationale


def test_questions_of_steps(bench: Bench) -> None:
    steps = [{"id": "one", "prompt": "1"}, {"id": "two", "prompt": "2"}]
    result = run(bench, lambda task: task.ask(task.prompt), execution={"steps": steps})
    assert result.status == "passed"
    assert [event["text"] for event in events(bench)] == ["1", "2"]
    stored = bench.runs / "cases" / "refund_yes" / "1" / "steps"
    assert json.loads((stored / "one" / "events.jsonl").read_text())["text"] == "1"


def test_the_suite_is_another_one_when_handlers_change(bench: Bench) -> None:
    bench.config["runner"] = {"type": "python", "function": "fixture:agent"}
    digests = []
    for text_ in (
        None,
        "handlers: []",
        "handlers: [{match: ask}]",
        "handlers: [{match: question}]",
    ):
        if text_ is not None:
            (bench.suite_directory / "tool_handlers.yaml").write_text(text_)
        digests.append(bench.runtime(agent=print).execution_digest)
    (bench.suite_directory / "how.md").write_text("Briefly.")
    for text_ in (
        "handlers: [{match: ask, prompt_file: how.md}]",
        "handlers: [{match: ask, prompt: x}]",
    ):
        (bench.suite_directory / "tool_handlers.yaml").write_text(text_)
        digests.append(bench.runtime(agent=print).execution_digest)
    assert digests[0] == digests[1]
    assert digests[2] == digests[3], "both are for AskUserQuestion"
    assert len(set(digests)) == 4


def test_secrets_are_told_nobody(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sesame-4711-open")
    result = run(bench, lambda task: task.ask("Is it sesame-4711-open?", ["sesame-4711-open"]))
    assert "4711" not in json.dumps([events(bench), result.to_dict()])


def test_an_answer_is_no_leak(bench: Bench) -> None:
    answer = "the depot in Rotterdam, gate seven, before noon"
    secret = "nobody is to be told of the cellar"
    answers = {"case_overrides": {"Where to?": answer}, "never": secret}
    bench.add_case("refund_yes", {**CASE, "answers.yaml": json.dumps(answers)})
    bench.config["dataset"]["leak"] = "error"
    tools = {"tools": [{"match": "questions"}]}
    result = run(bench, lambda task: task.ask("Where to?"), inputs=tools)
    assert (result.status, result.notes) == ("passed", ())
    leaked = run(bench, lambda task: answer, 2, inputs=tools)
    assert (leaked.status, leaked.kind) == ("failed", "agent")
    told = run(bench, lambda task: f"{task.ask('Where to?')}: {secret}", 3, inputs=tools)
    assert told.status == "failed"
    assert "answers.never appears" in told.reason
