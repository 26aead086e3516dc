from __future__ import annotations

from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from tests.live.provider import Call, Refuse, Say
from tests.unit.runners.conftest import MakeTask

WRITE = Call("exec_command", {"cmd": "echo hello > output/a.txt"}, "I write.")
PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: output/b.txt\n+hi\n*** End Patch\nEOF"


def types(execution: Any) -> list[str]:
    return [event["type"] for event in execution.events if event["type"] != "other"]


def test_it_writes_a_file(live: Any, make_task: MakeTask) -> None:
    execution, provider = live(
        "codex",
        [WRITE, Call("exec_command", {"cmd": PATCH}), Say("Done.")],
        name="codex_write",
        effort="high",
        system_prompt='Be brief,\n"please".',
    )
    assert execution.failure is None, execution.error
    assert execution.output == "Done."
    assert (make_task().output_dir / "a.txt").read_text() == "hello\n"
    assert (make_task().output_dir / "b.txt").read_text() == "hi\n"
    calls = [event["name"] for event in execution.events if event["type"] == "tool_call"]
    assert calls == ["command_execution", "file_change"]
    assert types(execution)[-1] == "result"
    usage = execution.usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (180, 120, 30)
    assert provider.requests[0]["model"] == "gpt-5.1-codex"
    assert provider.requests[0]["reasoning"]["effort"] == "high"
    assert 'Be brief,\\n"please".' in str(provider.requests[0]["input"])


def test_a_command_that_fails(live: Any) -> None:
    failing = Call("exec_command", {"cmd": "echo bad; exit 3"})
    execution, _ = live("codex", [failing, Say("It failed.")], name="codex_failing")
    (result,) = [event for event in execution.events if event["type"] == "tool_result"]
    assert (result["text"], result["is_error"]) == ("bad\n", True)
    assert execution.failure is None


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Refuse(429, "rate_limit_error"), "infrastructure"),
        (Refuse(401, "authentication_error"), "infrastructure"),
        (Refuse(500), "infrastructure"),
        (Refuse(503), "infrastructure"),
        (Refuse(400, "invalid_request_error", "this is too long"), "agent"),
    ],
)
def test_what_the_provider_refuses(live: Any, reply: Refuse, kind: str) -> None:
    execution, _ = live("codex", [reply], name=f"codex_{reply.status}")
    assert execution.failure == kind
    assert execution.exit_code == 1


def test_no_provider(live: Any) -> None:
    execution, _ = live(
        "codex", [Say("")], name="codex_unreachable", url="http://127.0.0.1:9", timeout=8.0
    )
    assert execution.timed_out
    assert execution.failure == "infrastructure"
    assert "waiting for the provider" in execution.error


def test_a_skill(live: Any, make_task: MakeTask) -> None:
    skill = make_task().workspace / ".agents" / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greet\ndescription: greets\n---\nGreet warmly.\n")
    _, provider = live("codex", [Say("Hi.")], skill="greet", arguments="Bob")
    told = str(provider.requests[0]["input"])
    assert "Greet warmly." in told
    assert "$greet Bob" in told


def test_a_setting_it_does_not_have(live: Any) -> None:
    with pytest.raises(RunnerError, match="unknown variant `what`"):
        live("codex", [Say("Hi.")], runner={"settings": {"sandbox_mode": "what"}})
