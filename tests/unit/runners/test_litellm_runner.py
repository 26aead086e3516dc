"""Models as agents, played by a provider on loopback."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.llm import ModelProcess
from pytest_agent_eval.runners import Execution, Task
from pytest_agent_eval.runners.model_tools import MAX_RESULT_BYTES
from pytest_agent_eval.runners.sandbox import find_bubblewrap
from tests.provider import Answer, provider, text
from tests.unit.runners.model_stage import Stage, use, without_time
from tests.unit.runners.processes import marked

MakeTask = Callable[..., Task]
ALL = ["read", "write", "list", "bash"]
_BUBBLEWRAP = find_bubblewrap()
needs_bubblewrap = pytest.mark.skipif(bool(_BUBBLEWRAP.problem), reason=_BUBBLEWRAP.problem)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: ModelProcess) -> Iterator[Stage]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with provider(lambda asked: text("42")) as server:
        yield Stage(tmp_path, server, models)


@pytest.fixture
def task(make_task: MakeTask) -> MakeTask:
    def make(**options: Any) -> Task:
        return make_task(**{"prompt": "What is 6 x 7?", "model": "openai/some-model", **options})

    return make


# -- one question --------------------------------------------------------------------------


def test_a_model_is_asked_once(stage: Stage, task: MakeTask) -> None:
    settings = {"temperature": 0, "max_tokens": 64, "top_p": 0.5, "seed": 7, "stop": ["END"]}
    runner = stage.runner(settings=settings)
    done = runner.run(task(system_prompt="Be brief."))
    (asked,) = stage.server.asked
    assert asked["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 6 x 7?"},
    ]
    assert {name: asked[name] for name in settings} == settings
    assert "tools" not in asked
    assert (done.output, done.exit_code, done.failure) == ("42", 0, None)
    assert done.events == ({"type": "message", "agent": "root", "text": "42"},)
    assert done.duration_s > 0
    usage = done.usage
    assert (usage.input_tokens, usage.output_tokens, usage.num_turns) == (11, 7, 1)
    assert (usage.model, usage.models_used) == ("some-model", ("some-model",))
    assert usage.cost_usd is None  # no price is known


def test_a_bare_name_gets_its_provider_and_effort_is_passed_on(
    stage: Stage, task: MakeTask
) -> None:
    done = stage.runner(effort="low").run(task(model="gpt-5-mini", effort="low"))
    assert done.failure is None, done.error
    (asked,) = stage.server.asked
    assert (asked["model"], asked["reasoning_effort"]) == ("gpt-5-mini", "low")
    assert done.usage.cost_usd is not None
    assert done.usage.cost_usd > 0


def test_arguments_are_the_message_where_there_is_no_prompt(stage: Stage, task: MakeTask) -> None:
    stage.runner().run(task(prompt="", arguments="Sum 1 and 2."))
    assert stage.server.asked[0]["messages"] == [{"role": "user", "content": "Sum 1 and 2."}]


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


def test_a_wrong_key_is_lasting(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(status=401, error="bad key"))
    with pytest.raises(RunnerError, match="could not be asked") as caught:
        stage.runner().run(task())
    assert caught.value.lasting


def test_a_server_without_time_for_another_try_is_infrastructure(
    stage: Stage, task: MakeTask
) -> None:
    stage.script(Answer(status=429, error="busy", headers={"retry-after": "50"}))
    done = stage.runner().run(task(timeout=20.0))
    assert (done.failure, done.exit_code) == ("infrastructure", None)
    assert "no time for another" in done.error


# -- tools ---------------------------------------------------------------------------------


def test_a_model_writes_a_file_and_answers(stage: Stage, task: MakeTask) -> None:
    stage.script(use("write", path="output/a/b.txt", content="grüß dich\n"), text("done"))
    one = task()
    done = stage.runner(ALL).run(one)
    assert (one.output_dir / "a" / "b.txt").read_text("utf-8") == "grüß dich\n"
    assert (done.output, done.failure, done.usage.num_turns) == ("done", None, 2)
    assert (done.usage.input_tokens, done.usage.output_tokens) == (22, 14)
    assert done.usage.per_model_turns == {"some-model": 2}
    content = {"path": "output/a/b.txt", "content": "grüß dich\n"}
    call = {"agent": "root", "name": "write", "id": "call_1"}
    assert done.events == (
        {"type": "tool_call", **call, "input": content},
        {
            "type": "tool_result",
            **call,
            "text": "wrote 12 bytes to output/a/b.txt",
            "is_error": False,
        },
        {"type": "message", "agent": "root", "text": "done"},
    )
    names = [tool["function"]["name"] for tool in stage.server.asked[0]["tools"]]
    assert names == ALL
    assert stage.server.asked[1]["messages"][1]["tool_calls"][0]["id"] == "call_1"


def test_read_and_list(stage: Stage, task: MakeTask) -> None:
    one = task()
    (one.workspace / "input.yaml").write_text("order: 7\n")
    (one.workspace / "long.txt").write_text("a" * (MAX_RESULT_BYTES + 5))
    (one.workspace / "b.bin").write_bytes(b"\0\1")
    os.mkfifo(one.workspace / "pipe")
    stage.script(
        use("list"),
        use("read", path="input.yaml"),
        use("read", path="long.txt"),
        use("read", path="b.bin"),
        use("read", path="output"),
        use("read", path="pipe"),
        use("write", path="pipe", content="x"),
        use("read", path="nothing"),
        use("list", path="input.yaml"),
        use("list", path="output"),
        text("done"),
    )
    done = stage.runner(ALL).run(one)
    told = stage.told()
    assert told[0] == "b.bin\ninput.yaml\nlong.txt\noutput/\npipe"
    assert told[1] == "order: 7\n"
    assert told[2] == "a" * MAX_RESULT_BYTES + "\n[... 5 bytes more]"
    assert told[3:] == [
        "error: b.bin is no text: a binary file of 2 bytes",
        "error: output is a directory, not a file",
        "error: pipe is a special file, not a file",
        "error: pipe is a special file, not a file",
        "error: nothing: no such file or directory",
        "error: input.yaml is a file, not a directory",
        "(empty)",
    ]
    results = [event for event in done.events if event["type"] == "tool_result"]
    assert [event["is_error"] for event in results] == [False] * 3 + [True] * 6 + [False]
    assert len({event["id"] for event in results}) == 10


@pytest.mark.parametrize(
    "path", ["../answer.txt", "{outside}/answer.txt", "link", "way/answer.txt"]
)
def test_nothing_outside_of_the_workspace_is_touched(
    stage: Stage, task: MakeTask, tmp_path: Path, path: str
) -> None:
    one = task()
    outside = tmp_path / "answer.txt"
    outside.write_text("the answer is 42")
    (one.workspace / "link").symlink_to(outside)
    (one.workspace / "way").symlink_to(tmp_path)
    path = path.format(outside=tmp_path)
    stage.script(
        use("read", path=path),
        use("write", path=path, content="mine"),
        use("list", path=os.path.dirname(path) or path),
        text("done"),
    )
    done = stage.runner(ALL).run(one)
    assert done.output == "done"
    told = stage.told()
    assert told[0] == told[1] == f"error: {path} is outside of the workspace"
    assert "answer.txt" not in told[2].removeprefix(f"error: {path}")
    assert "42" not in json.dumps(stage.server.asked[-1]["messages"][1:])
    assert outside.read_text() == "the answer is 42"


def test_a_link_and_dots_that_stay_inside_are_fine(stage: Stage, task: MakeTask) -> None:
    one = task()
    (one.workspace / "a.txt").write_text("inside")
    (one.workspace / "link").symlink_to("output/../a.txt")
    stage.script(
        use("read", path="link"),
        use("read", path="output/../a.txt"),
        use("read", path=str(one.workspace / "a.txt")),
        text("done"),
    )
    stage.runner(ALL).run(one)
    assert stage.told() == ["inside"] * 3


def test_what_holds_answers_is_hidden_also_below_the_workspace(
    stage: Stage, task: MakeTask, tmp_path: Path
) -> None:
    (stage.evals / "cases" / "annotations.yaml").write_text("expected: 42")
    (stage.evals / "recordings").mkdir()
    one = task()
    checkout = Task(
        input={},
        workspace=stage.evals,
        output_dir=one.output_dir,
        log_dir=one.log_dir,
        prompt="x",
        model=one.model,
    )
    stage.script(
        use("list"),
        use("list", path="cases"),
        use("list", path="recordings"),
        use("read", path="cases/annotations.yaml"),
        text(""),
    )
    stage.runner(ALL).run(checkout)
    assert stage.told() == [
        "eval.yaml",
        "error: cases: no such file or directory",
        "error: recordings: no such file or directory",
        "error: cases/annotations.yaml: no such file or directory",
    ]


def test_what_the_model_gets_wrong_it_is_told(stage: Stage, task: MakeTask) -> None:
    stage.script(
        Answer(tool="write", arguments='{"path": "a'),
        Answer(tool="write", arguments="[1]"),
        use("fly"),
        use("bash", command="true"),
        use("write", path="a"),
        use("read", path=7),
        use("read", path="a", line=1),
        use("read", path="a\0b"),
        text("sorry"),
    )
    done = stage.runner(["read", "write"]).run(task())
    assert done.output == "sorry"
    told = stage.told()
    assert told[0].startswith("error: the arguments are no JSON: ")
    assert told[1:] == [
        "error: the arguments are no JSON object",
        "error: there is no tool 'fly'; there are read, write",
        "error: there is no tool 'bash'; there are read, write",
        "error: write needs the argument content",
        "error: path must be a string",
        "error: read has no argument 'line'; there are path",
        "error: a path cannot hold a NUL character",
    ]
    # Some providers refuse a history whose arguments are no object.
    first = stage.server.asked[-1]["messages"][1]["tool_calls"][0]["function"]
    assert first["arguments"] == "{}"
    assert done.events[0]["input"] == '{"path": "a'


def test_thinking_is_kept_and_goes_back_to_who_signed_it(
    stage: Stage, task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    stage.models = ModelProcess()  # the one that all tests share has no such key
    thinks = Answer(tool="list", arguments="{}", thinking="I should look.")
    stage.script(thinks, Answer(content="done", thinking="That is all."))
    one = task(model="anthropic/claude-sonnet-4-5", effort="low")
    done = stage.runner(["list"], "record", effort="low").run(one)
    assert done.output == "done"
    assert [event["type"] for event in done.events] == [
        *("thinking", "tool_call", "tool_result", "thinking", "message"),
    ]
    assert done.events[0]["text"] == "I should look."
    said = stage.server.asked[-1]["messages"][1]
    assert said["role"] == "assistant"
    assert said["content"][0] == {
        "type": "thinking",
        "thinking": "I should look.",
        "signature": "signed",
    }
    stage.models.close()
    again = stage.runner(["list"], "replay", effort="low").run(one)
    assert without_time(again) == {**without_time(done), "usage": again.usage}


def test_thinking_as_text_is_kept_and_not_given_to_who_does_not_want_it(
    stage: Stage, task: MakeTask
) -> None:
    stage.script(Answer(tool="list", arguments="{}", thinking="Hm."), text("done"))
    done = stage.runner(["list"]).run(task())
    assert done.events[0] == {"type": "thinking", "agent": "root", "text": "Hm."}
    assert "reasoning_content" not in stage.server.asked[-1]["messages"][1]
    stage.script(Answer(tool="list", arguments="{}", thinking="Hm."), text("done"))
    stage.runner(["list"]).run(task(model="deepseek/deepseek-reasoner"))
    assert stage.server.asked[-1]["messages"][1]["reasoning_content"] == "Hm."


@pytest.mark.parametrize(
    ("answer", "output", "failure", "note"),
    [
        (Answer(refusal="I will not."), "I will not.", None, "the model refused"),
        (Answer(content="Half", end="length"), "Half", None, "cut off"),
        (Answer(content="Half", end="content_filter"), "", "agent", ""),
    ],
)
def test_what_ends_an_answer(
    stage: Stage, task: MakeTask, answer: Answer, output: str, failure: str | None, note: str
) -> None:
    stage.script(answer)
    done = stage.runner().run(task())
    assert (done.output, done.failure) == (output, failure)
    assert note in " ".join(done.notes)


@pytest.mark.parametrize(
    ("last", "failure", "lasting"),
    [
        (Answer(status=401, error="bad key"), "infrastructure", True),
        (Answer(status=429, error="busy", headers={"retry-after": "99"}), "infrastructure", False),
        (Answer(status=400, error="long", end="context_length_exceeded"), "agent", False),
    ],
)
def test_an_error_in_the_middle_keeps_what_was_before(
    stage: Stage, task: MakeTask, last: Answer, failure: str, lasting: bool
) -> None:
    stage.script(Answer(content="First, a look.", tool="list", arguments="{}"), last)
    done = stage.runner(["list"]).run(task(timeout=20.0))
    assert (done.failure, done.lasting, done.exit_code) == (failure, lasting, None)
    assert [event["type"] for event in done.events] == [
        *("message", "tool_call", "tool_result", "error"),
    ]
    assert (done.usage.num_turns, done.usage.input_tokens) == (1, 11)


# -- commands ------------------------------------------------------------------------------


def test_bash_works_in_the_workspace(
    stage: Stage, task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET_PLACE", "secret-value")
    one = task(env={"FROM_TASK": "yes"})
    stage.script(
        use("bash", command="pwd; echo $FROM_TASK $FROM_RUNNER $SHOP_SECRET_PLACE"),
        use("bash", command="echo out; echo oops >&2; echo x > output/x.txt; exit 3"),
        use("bash", command="true"),
        use("bash", command="kill -9 $$"),
        use("bash", command="if"),
        use("bash", command=f"head -c {3 * MAX_RESULT_BYTES} /dev/zero | tr '\\0' a"),
        use("bash", command="echo $AGENT_EVAL_TRIAL; pwd > where; cat where"),
        use("read", path="where"),
        text("done"),
    )
    done = stage.runner(ALL, env={"FROM_RUNNER": "too"}).run(one)
    told = stage.told()
    assert told[0] == "<workspace>\nyes too\n"
    assert told[1] == "out\noops\n[exit status 3]"
    assert told[2] == "(no output)"
    assert told[3] == "[killed by signal 9]"
    assert "syntax error" in told[4]
    assert len(told[5]) < MAX_RESULT_BYTES + 100
    assert re.search(r"a\n\[\.\.\. 20\d{4} bytes dropped \.\.\.]\na", told[5])
    assert told[6:] == ["<trial>\n<workspace>\n", "<workspace>\n"]
    assert (one.output_dir / "x.txt").read_text() == "x\n"
    assert str(one.workspace) not in json.dumps(stage.server.asked)
    assert (done.output, done.failure) == ("done", None)


def test_what_a_command_leaves_running_is_ended(
    stage: Stage, task: MakeTask, trial_id: str
) -> None:
    stage.script(use("bash", command="sleep 600 & echo $! > pid"), text("done"))
    one = task(trial_id=trial_id)
    assert stage.runner(["bash"]).run(one).output == "done"
    assert (one.workspace / "pid").read_text().strip().isdigit()
    assert marked(trial_id) == []


@needs_bubblewrap
def test_commands_in_a_sandbox(stage: Stage, task: MakeTask) -> None:
    answer = stage.evals / "cases" / "annotations.yaml"
    answer.write_text("expected: 42")
    stage.script(
        use("bash", command=f"cat {answer}; echo x > output/x.txt; cat output/x.txt"),
        use("bash", command="exit 1"),
        text("done"),
    )
    runner = stage.runner(["bash"], sandbox="bubblewrap")
    assert getattr(runner, "description", "") == "sandbox: bubblewrap"
    one = task()
    assert runner.run(one).output == "done"
    told = stage.told()
    assert "No such file" in told[0]
    assert "42" not in told[0]
    assert told[0].endswith("x\n")
    assert told[1] == "[exit status 1]"
    assert (one.output_dir / "x.txt").read_text() == "x\n"


def test_a_sandbox_is_of_no_use_to_files(stage: Stage) -> None:
    assert getattr(stage.runner(["read"], sandbox="auto"), "description", None) == ""


def test_a_command_ends_with_the_tasks_time(stage: Stage, task: MakeTask, trial_id: str) -> None:
    stage.script(use("bash", command="echo begun; sleep 600"), text("done"))
    done = stage.runner(["bash"]).run(task(trial_id=trial_id, timeout=2.0))
    assert (done.failure, done.timed_out, done.exit_code) == ("timeout", True, None)
    assert done.error == "timed out after 2 s"
    assert done.events[-1]["text"] == "begun\n"
    assert marked(trial_id) == []


def test_a_command_ends_with_the_session(stage: Stage, task: MakeTask, trial_id: str) -> None:
    one = task(trial_id=trial_id)
    stage.script(use("bash", command="touch begun; sleep 600"), text("done"))
    runner, ended = stage.runner(["bash"]), threading.Event()
    found: list[Execution] = []

    def work() -> None:
        found.append(runner.run(one))
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    while not (one.workspace / "begun").exists():
        assert not ended.wait(0.02)
    one.cancelled.set()
    assert ended.wait(30)
    assert (found[0].failure, found[0].error) == ("infrastructure", "cancelled before it ended")
    assert marked(trial_id) == []


# -- limits --------------------------------------------------------------------------------


def test_a_model_that_does_not_answer_in_time(stage: Stage, task: MakeTask) -> None:
    hold = threading.Event()
    stage.script(Answer(content="late", before=lambda: hold.wait(30)))
    try:
        done = stage.runner().run(task(timeout=1.0))
    finally:
        hold.set()
    assert (done.failure, done.timed_out, done.error) == ("timeout", True, "timed out after 1 s")


def test_a_session_that_ends_does_not_wait_for_the_model(stage: Stage, task: MakeTask) -> None:
    hold, one = threading.Event(), task()

    def answered() -> None:
        one.cancelled.set()
        hold.wait(30)

    stage.script(Answer(content="late", before=answered))
    try:
        done = stage.runner().run(one)
    finally:
        hold.set()
    assert (done.failure, done.error) == ("infrastructure", "cancelled before it ended")
    assert done.duration_s < 20


def test_no_more_turns_than_allowed(stage: Stage, task: MakeTask) -> None:
    stage.script(use("list"))
    done = stage.runner(["list"], settings={"max_turns": 3}).run(task())
    assert (done.failure, done.exit_code) == ("agent", None)
    assert done.error == "not done after 3 turns (runner.settings.max_turns)"
    assert len(stage.server.asked) == done.usage.num_turns == 3


def test_no_more_money_than_allowed(stage: Stage, task: MakeTask) -> None:
    stage.script(Answer(tool="list", arguments="{}", tokens=(1_000_000, 0)))
    done = stage.runner(["list"]).run(task(model="openai/gpt-4o-mini", max_budget_usd=0.4))
    assert done.failure == "budget"
    assert "over the budget of $0.40" in done.error
    assert len(stage.server.asked) == 3  # at 15 cents each
    assert done.usage.cost_usd == pytest.approx(0.45)


# -- recordings ----------------------------------------------------------------------------


def test_a_recorded_task_is_replayed_to_the_letter(
    stage: Stage, task: MakeTask, tmp_path: Path
) -> None:
    answers = (
        use("bash", command="pwd; echo $AGENT_EVAL_TRIAL; echo hello > output/a.txt"),
        use("read", path="output/a.txt"),
        text("done"),
    )
    stage.script(*answers)
    first = stage.runner(ALL, "record").run(task())
    assert len(stage.server.asked) == 3
    stored = [path.read_text() for path in sorted(stage.evals.glob("recordings/*/*.json"))]
    assert len(stored) == 3
    assert str(tmp_path) not in "".join(stored)
    stage.server.stop()
    other = tmp_path / "elsewhere"
    (other / "output").mkdir(parents=True)
    again = task(trial_id="another")
    moved = Task(
        input=again.input,
        workspace=other,
        output_dir=other / "output",
        log_dir=again.log_dir,
        prompt=again.prompt,
        model=again.model,
        trial_id="yet-another",
        timeout=30.0,
    )
    second = stage.runner(ALL, "replay").run(moved)
    assert (first.recorded, second.recorded, second.paid_usd) == (0, 3, 0.0)
    assert without_time(second) == without_time(first)
    assert (other / "output" / "a.txt").read_text() == "hello\n"


def test_each_trial_has_a_recording_and_a_missing_one_is_lasting(
    stage: Stage, task: MakeTask
) -> None:
    stage.script(text("one"), text("two"))
    runner = stage.runner(mode="auto")
    assert [runner.run(task(trial=trial)).output for trial in (1, 2, 1, 2)] == [
        *("one", "two"),
        *("one", "two"),
    ]
    assert len(stage.server.asked) == 2
    with pytest.raises(RunnerError, match="not recorded") as caught:
        stage.runner(mode="replay").run(task(trial=3))
    assert caught.value.lasting
    assert str(caught.value).startswith("case {case}, the agent: a call of a model is not recorded")
    assert "pytest --agent-eval --agent-eval-llm record -k {case};" in str(caught.value)


def test_a_recording_that_is_missing_in_the_middle(stage: Stage, task: MakeTask) -> None:
    stage.script(use("list"), text("done"))
    stage.runner(ALL, "record").run(task())
    one = task()
    (one.workspace / "new.txt").touch()  # what the tool says is another text now
    done = stage.runner(ALL, "replay").run(one)
    assert (done.failure, done.lasting) == ("infrastructure", True)
    assert "--agent-eval-llm record -k {case}" in done.error
    assert done.usage.num_turns == 1


def test_what_was_recorded_is_not_spent_again(stage: Stage, task: MakeTask) -> None:
    stage.script(use("list"), text("done"))
    one = task(model="openai/gpt-4o-mini")
    first = stage.runner(ALL, "record").run(one).usage
    assert first.cost_usd is not None
    assert (first.recorded_usd, first.spent_usd) == (None, first.cost_usd)
    again = stage.runner(ALL, "auto").run(one).usage
    assert (again.cost_usd, again.recorded_usd, again.spent_usd) == (
        first.cost_usd,
        first.cost_usd,
        0,
    )


def test_no_secret_is_told_to_the_model(stage: Stage, task: MakeTask) -> None:
    from pytest_agent_eval.redaction import Secrets

    secrets = Secrets.of({"SHOP_TOKEN": "tok-4711-0815-42"})
    one = task(env={"SHOP_TOKEN": "tok-4711-0815-42"}, secrets=secrets)
    stage.script(
        use("bash", command="echo $SHOP_TOKEN | tee a.txt"), use("read", path="a.txt"), text("ok")
    )
    stage.runner(ALL).run(one)
    assert stage.told() == ["***SHOP_TOKEN***\n"] * 2
