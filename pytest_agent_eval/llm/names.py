"""Model names, as LiteLLM wants them: ``provider/model``."""

from __future__ import annotations

import re

__all__ = ["provider_name"]

_BARE = (
    (re.compile(r"claude", re.IGNORECASE), "anthropic"),
    (re.compile(r"(gpt|chatgpt|o[1-9])(-|$)", re.IGNORECASE), "openai"),
    (re.compile(r"gemini", re.IGNORECASE), "gemini"),
)


def provider_name(name: str) -> str:
    """The name with its provider; a bare Claude, GPT or Gemini name is given one."""
    if "/" in name:
        return name
    for pattern, provider in _BARE:
        if pattern.match(name):
            return f"{provider}/{name}"
    return name
