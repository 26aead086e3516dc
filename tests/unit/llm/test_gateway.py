from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.llm import (
    AnswerForm,
    Gateway,
    Mode,
    ModelProcess,
    ModelRequest,
    provider_name,
)
from pytest_agent_eval.llm.errors import MissingRecording, ModelError, NoAnswer
from pytest_agent_eval.redaction import Secrets
from tests.provider import Answer, Asked, Provider, provider, submit, text

FORM = AnswerForm(
    "submit_count",
    "Submit the count.",
    {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]},
)
QUESTION = ModelRequest(
    "openai/some-model", ({"role": "user", "content": "How many parcels?"},), FORM
)


@pytest.fixture(autouse=True)
def _a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("CI", raising=False)


def count(found: Mapping[str, Any]) -> int:
    if not isinstance(found.get("count"), int):
        raise ValueError("count is no number")
    return int(found["count"])


@pytest.fixture(autouse=True)
def _shared(models: ModelProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ways, "process", models, raising=False)


class Ways:
    """What the gateways of these tests share."""

    process: ModelProcess


def gateway(directory: Path, server: Provider | None, mode: Mode = "auto", **more: Any) -> Gateway:
    base = server.url if server else "http://127.0.0.1:9/v1"
    return Gateway(directory, mode=mode, api_base=base, **{"process": Ways.process, **more})


def ask(way: Gateway, request: ModelRequest = QUESTION, timeout: float = 30) -> int:
    return way.answer(request, count, asker="case a, judge counts", timeout=timeout).value


def three(asked: Asked) -> Answer:
    return submit(asked, count=3)


def test_an_answer_is_a_forced_tool_call(tmp_path: Path) -> None:
    with provider(three) as server:
        answered = gateway(tmp_path, server, "live").answer(QUESTION, count, asker="x", timeout=30)
    assert answered.value == 3
    (reply,) = answered.replies
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)
    assert reply.usage.cost_usd is None, "nobody knows the price of this model"
    assert not reply.recorded
    (sent,) = server.asked
    assert sent["model"] == "some-model"
    assert sent["tool_choice"]["function"]["name"] == "submit_count"
    assert sent["messages"][0]["content"].startswith("How many parcels?")
    assert not [*tmp_path.iterdir()], "live records nothing"


def test_the_price_of_a_known_model_is_counted(tmp_path: Path) -> None:
    request = ModelRequest("openai/gpt-4o", QUESTION.messages)
    with provider(lambda asked: text("three")) as server:
        reply = gateway(tmp_path, server, "live").ask(request, asker="x", timeout=30)
    assert reply.text == "three"
    assert reply.usage.cost_usd == pytest.approx(11 * 2.5e-6 + 7 * 10e-6)


def test_what_is_recorded_is_not_asked_again(tmp_path: Path) -> None:
    with provider(three) as server:
        assert ask(gateway(tmp_path, server)) == 3
        assert ask(gateway(tmp_path, server)) == 3
        assert len(server.asked) == 1
    (file,) = (tmp_path / "recordings").glob("*/*.json")
    assert file.parent.name == file.stem[:2]
    stored = json.loads(file.read_text())
    assert stored["request"]["messages"] == [{"role": "user", "content": "How many parcels?"}]
    assert stored["usage"]["input_tokens"] == 11
    for mode in ("auto", "replay"):
        answered = gateway(tmp_path, None, mode).answer(QUESTION, count, asker="x", timeout=30)
        assert answered.value == 3
        assert answered.replies[0].recorded


def test_recordings_do_not_depend_on_the_server_and_differ_by_sample(tmp_path: Path) -> None:
    answers = iter([3, 4])
    with provider(lambda asked: submit(asked, count=next(answers))) as server:
        way = gateway(tmp_path, server)
        second = ModelRequest(QUESTION.model, QUESTION.messages, FORM, sample=1)
        assert [ask(way), ask(way, second)] == [3, 4]
    other = Gateway(tmp_path, api_base="http://127.0.0.1:1/v1")
    assert [ask(other), ask(other, second)] == [3, 4]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "openai/other"},
        {"messages": ({"role": "user", "content": "How many parcel?"},)},
        {"parameters": {"temperature": 0.5}},
        {"answer": AnswerForm("submit_count", "Submit it.", FORM.schema)},
        {"answer": AnswerForm("submit_count", "Submit the count.", {"type": "object"})},
    ],
    ids=["model", "word", "parameter", "description", "schema"],
)
def test_whatever_changes_is_another_question(tmp_path: Path, change: dict[str, Any]) -> None:
    with provider(three) as server:
        ask(gateway(tmp_path, server))
    with pytest.raises(MissingRecording):
        ask(gateway(tmp_path, None, "replay"), replace(QUESTION, **change))


def test_five_samples_are_five_calls_and_five_recordings(tmp_path: Path) -> None:
    numbers = itertools.count(1)
    samples = [replace(QUESTION, sample=number) for number in range(5)]
    with provider(lambda asked: submit(asked, count=next(numbers))) as server:
        first = [ask(gateway(tmp_path, server), sample) for sample in samples]
        again = [ask(gateway(tmp_path, server), sample) for sample in samples]
        assert first == again == [1, 2, 3, 4, 5]
        assert len(server.asked) == 5


def test_record_asks_anew_and_overwrites(tmp_path: Path) -> None:
    answers = iter([3, 4])
    with provider(lambda asked: submit(asked, count=next(answers))) as server:
        assert ask(gateway(tmp_path, server, "record")) == 3
        assert ask(gateway(tmp_path, server, "record")) == 4
    assert ask(gateway(tmp_path, None, "replay")) == 4


def test_a_missing_recording_says_who_asked_and_what_records_it(tmp_path: Path) -> None:
    for way in (
        gateway(tmp_path, None, "replay"),
        gateway(tmp_path, None, "auto", environment={"CI": "true"}),
        gateway(tmp_path, None, "auto", environment={"CI": "1"}),
    ):
        with pytest.raises(MissingRecording) as caught:
            ask(way)
        message = str(caught.value)
        assert "case a, judge counts" in message
        assert "pytest --agent-eval --agent-eval-llm record" in message
        assert str(tmp_path / "recordings") in message


@pytest.mark.parametrize("value", ["", "0", "false", "No"])
def test_a_variable_that_says_no_is_not_set(tmp_path: Path, value: str) -> None:
    with provider(three) as server:
        assert ask(gateway(tmp_path, server, environment={"CI": value})) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["request"].update(model="openai/other"), "was edited or renamed"),
        (lambda data: data.update(v=9), "version 9"),
        (lambda data: data.pop("reply"), "no usable recording"),
        (lambda data: data["reply"]["tool_calls"].clear(), "was edited or renamed"),
        (lambda data: data["usage"].update(cost_usd=0), "was edited or renamed"),
        (lambda data: data.pop("digest"), "no usable recording"),
    ],
    ids=["request", "version", "no reply", "reply", "usage", "no digest"],
)
def test_a_changed_recording_is_no_answer(tmp_path: Path, change: Any, said: str) -> None:
    with provider(three) as server:
        ask(gateway(tmp_path, server))
    (file,) = (tmp_path / "recordings").glob("*/*.json")
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))
    with pytest.raises(ModelError, match=said) as caught:
        ask(gateway(tmp_path, None))
    assert file.name in str(caught.value)
    file.write_text("{")
    with pytest.raises(ModelError, match="no usable recording"):
        ask(gateway(tmp_path, None))


def test_no_secret_gets_into_a_recording(tmp_path: Path) -> None:
    secrets = Secrets.of({"SHOP_TOKEN": "tok-123456789"})
    asking = ModelRequest(
        "openai/some-model", ({"role": "user", "content": "the token is tok-123456789"},)
    )
    with provider(lambda asked: text("I see tok-123456789")) as server:
        gateway(tmp_path, server, secrets=secrets).ask(asking, asker="x", timeout=30)
    (file,) = (tmp_path / "recordings").glob("*/*.json")
    assert "tok-123456789" not in file.read_text()
    assert "***SHOP_TOKEN***" in file.read_text()
    found = gateway(tmp_path, None, "replay", secrets=secrets).ask(asking, asker="x", timeout=30)
    assert found.text == "I see ***SHOP_TOKEN***"


REFUSALS: dict[str, Callable[[Asked], bool]] = {
    "tools": lambda asked: "tools" in asked,
    "schemas too": lambda asked: "tools" in asked or "response_format" in asked,
    "named schemas": lambda asked: (
        "tools" in asked or asked.get("response_format", {}).get("type") == "json_schema"
    ),
}


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize("refuses", REFUSALS)
def test_a_server_that_knows_no_such_form_is_asked_in_another(
    tmp_path: Path, refuses: str, status: int
) -> None:
    def reply(asked: Asked) -> Answer:
        if REFUSALS[refuses](asked):
            return Answer(status=status, error="validation error")
        return text('Here it is:\n```json\n{"count": 5}\n```')

    with provider(reply) as server:
        way = gateway(tmp_path, server, "live")
        assert ask(way) == 5
        tried = len(server.asked)
        assert tried > 1
        assert ask(way) == 5
        assert len(server.asked) == tried + 1, "it is remembered what the server understands"
    if "response_format" not in server.asked[-1]:
        assert '"count"' in server.asked[-1]["messages"][-1]["content"], "the form in words"


def failing(times: int, status: int, **headers: str) -> Callable[[Asked], Answer]:
    seen: Counter[str] = Counter()

    def reply(asked: Asked) -> Answer:
        seen["asked"] += 1
        if seen["asked"] <= times:
            return Answer(status=status, error="busy", headers=headers)
        return submit(asked, count=3) if "tool_choice" in asked else text("three")

    return reply


PLAIN = ModelRequest("openai/some-model", QUESTION.messages)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_what_passes_is_waited_for_as_long_as_the_server_asks(tmp_path: Path, status: int) -> None:
    with provider(failing(3, status, **{"retry-after-ms": "5"})) as server:
        reply = gateway(tmp_path, server, "live").ask(PLAIN, asker="x", timeout=60)
        assert reply.text == "three"
        assert len(server.asked) == 4


def test_five_tries_are_enough(tmp_path: Path) -> None:
    with provider(failing(99, 429, **{"retry-after-ms": "5"})) as server:
        with pytest.raises(ModelError, match=r"could not be asked \(5 tries\): .*busy") as caught:
            gateway(tmp_path, server).ask(PLAIN, asker="x", timeout=60)
        assert len(server.asked) == 5
    assert not caught.value.lasting
    assert not (tmp_path / "recordings").exists()


def test_a_wait_that_the_time_does_not_allow_is_not_begun(tmp_path: Path) -> None:
    with provider(failing(99, 429, **{"retry-after": "30"})) as server:
        with pytest.raises(ModelError, match="no time for another"):
            gateway(tmp_path, server).ask(PLAIN, asker="x", timeout=10)
        assert len(server.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_does_not_pass_is_asked_once(tmp_path: Path, status: int) -> None:
    with provider(failing(99, status)) as server:
        with pytest.raises(ModelError, match="openai/some-model could not be asked: ") as caught:
            gateway(tmp_path, server).ask(PLAIN, asker="x", timeout=60)
        assert len(server.asked) == 1
    assert caught.value.lasting
    assert "litellm." not in str(caught.value)


def test_a_model_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    released = threading.Event()
    slow = Answer(content="late", before=lambda: released.wait(30))
    with provider(lambda asked: slow) as server:
        try:
            with pytest.raises(ModelError, match="Timeout"):
                gateway(tmp_path, server).ask(PLAIN, asker="x", timeout=0.5)
        finally:
            released.set()


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="could not be asked"):
        gateway(tmp_path, None, "live").ask(PLAIN, asker="x", timeout=0.5)


def test_an_unknown_provider_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nonsense could not be asked"):
        gateway(tmp_path, None, "live").ask(
            ModelRequest("nonsense", PLAIN.messages), asker="x", timeout=5
        )


def test_a_reply_without_an_answer_is_asked_for_again_once(tmp_path: Path) -> None:
    answers = iter(["I cannot say.", '{"count": 8}'])
    with provider(lambda asked: text(next(answers))) as server:
        way = gateway(tmp_path, server)
        answered = way.answer(QUESTION, count, asker="x", timeout=30)
    assert answered.value == 8
    assert len(answered.replies) == 2
    assert "I cannot say." in [message["content"] for message in server.asked[1]["messages"]]
    offline = gateway(tmp_path, None, "replay").answer(QUESTION, count, asker="x", timeout=30)
    assert (offline.value, len(offline.replies)) == (8, 2)


def test_two_replies_without_an_answer_are_an_error_with_what_was_said(tmp_path: Path) -> None:
    with provider(lambda asked: text('{"count": "many"}')) as server:
        with pytest.raises(NoAnswer, match="no structured answer: count is no number") as caught:
            ask(gateway(tmp_path, server))
        assert len(server.asked) == 2
    assert caught.value.raw == '{"count": "many"}'
    assert len(caught.value.replies) == 2
    assert not [*tmp_path.rglob("*.json")], "what is no answer is worth no recording"


def test_the_same_question_from_many_threads_is_asked_once(tmp_path: Path) -> None:
    with provider(three) as server:
        way = gateway(tmp_path, server)
        found: list[int] = []
        threads = [threading.Thread(target=lambda: found.append(ask(way))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert found == [3] * 8
        assert len(server.asked) == 1


def test_litellm_lives_in_another_process_and_changes_nothing_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("FROM_DOTENV=1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    before = dict(os.environ)
    with provider(three) as server:
        assert ask(gateway(tmp_path, server)) == 3
    assert dict(os.environ) == before
    assert "litellm" not in sys.modules


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("gpt-5", "openai/gpt-5"),
        ("o3-mini", "openai/o3-mini"),
        ("gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("openai/gpt-5", "openai/gpt-5"),
        ("bedrock/claude", "bedrock/claude"),
        ("mistral-large", "mistral-large"),
        ("orca", "orca"),
    ],
)
def test_bare_names_get_their_provider(name: str, full: str) -> None:
    assert provider_name(name) == full


def test_a_name_without_a_provider_is_told_in_our_words(tmp_path: Path) -> None:
    with provider(three) as server, pytest.raises(ModelError) as caught:
        ask(gateway(tmp_path, server), replace(QUESTION, model="gpt5"))
    said = "gpt5 names no provider; write provider/model, such as openai/gpt5"
    assert str(caught.value) == f"gpt5 could not be asked: {said}"
    assert caught.value.lasting
    assert server.asked == []
