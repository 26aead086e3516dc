"""The trial used no more tokens than a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.judges.budget import within


def judge(outputs: Mapping[str, Any], max_tokens: int) -> tuple[bool, str]:
    """Pass if input and output tokens together are at most ``max_tokens``; unknown fails."""
    usage = outputs["token_usage"] or {}
    given, answered = usage.get("input"), usage.get("output")
    used = None if given is None or answered is None else given + answered
    return within(used, max_tokens, what="tokens", unit="")
