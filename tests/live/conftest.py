"""The real tools, with a provider on this machine: no key, no network, no cost.

With ``AGENT_EVAL_RECORD`` set, what the tools print replaces the fixtures of the unit tests.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.runners import Execution
from tests.live.provider import Provider, Reply
from tests.unit.runners.conftest import MakeRunner, MakeTask, make_runner, make_task

__all__ = ["make_runner", "make_task"]

FIXTURES = Path(__file__).parents[1] / "unit" / "runners" / "fixtures"

Live = Callable[..., tuple[Execution, Provider]]


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[str], None]:
    """Keep what the tool printed as a fixture, if asked to, without what is of this machine."""

    def write(name: str) -> None:
        if not os.environ.get("AGENT_EVAL_RECORD"):
            return
        text = (tmp_path / "logs" / "stdout.log").read_text(encoding="utf-8")
        text = text.replace(f"{tmp_path}/0123456789abcdef", "/workspace")
        text = text.replace(str(tmp_path).replace("/", "-").replace("_", "-"), "-tmp")
        text = text.replace(str(tmp_path), "/tmp/agent")
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", text)
        (FIXTURES / f"{name}.jsonl").write_text(text, encoding="utf-8")

    return write


def _settings_of(kind: str, url: str) -> dict[str, Any]:
    if kind == "claude-code":
        return {"permission_mode": "acceptEdits"}
    provider = {"name": "loopback", "base_url": f"{url}/v1", "wire_api": "responses"}
    retries = {"request_max_retries": 0, "stream_max_retries": 0}
    return {
        "settings": {
            # Codex makes no sandbox where its home is in a directory for temporary files.
            "sandbox_mode": "danger-full-access",
            "model_provider": "loopback",
            "model_providers": {"loopback": {**provider, **retries, "env_key": "OPENAI_API_KEY"}},
        }
    }


@pytest.fixture
def live(
    make_runner: MakeRunner, make_task: MakeTask, tmp_path: Path, keep: Callable[[str], None]
) -> Live:
    """Run one task with a real tool: ``live("codex", [Say("hi")])``."""

    def call(
        kind: str,
        replies: Sequence[Reply],
        *,
        name: str = "",
        runner: dict[str, Any] | None = None,
        url: str = "",
        **task: Any,
    ) -> tuple[Execution, Provider]:
        program = "claude" if kind == "claude-code" else "codex"
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        with Provider(replies) as provider:
            env = {
                "HOME": str(home),
                "CLAUDE_CONFIG_DIR": str(home),
                "CODEX_HOME": str(home),
                "ANTHROPIC_BASE_URL": url or provider.url,
                "ANTHROPIC_API_KEY": "a-dummy-key",
                "OPENAI_API_KEY": "a-dummy-key",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_RETRIES": "1",
            }
            block = {"type": kind, "env": env, **_settings_of(kind, url or provider.url)}
            made = make_runner(**{**block, **(runner or {})})
            if "skill" not in task:
                task.setdefault("prompt", "Write hello into output/a.txt.")
            execution = made.run(make_task(**{"model": MODELS[kind], **task}))
        if name:
            keep(name)
        return execution, provider

    return call


MODELS = {"claude-code": "anthropic/claude-sonnet-4-5", "codex": "openai/gpt-5.1-codex"}
