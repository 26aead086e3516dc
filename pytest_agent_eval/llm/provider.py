"""One call of a model by way of LiteLLM: the only module that imports it, in its own process."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_agent_eval.llm.errors import UNFIT, ProviderError
from pytest_agent_eval.llm.replies import chat_reply, responses_reply
from pytest_agent_eval.llm.request import ModelReply, Protocol

__all__ = ["call", "load"]

_SWITCHES = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches a price list from the network
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env file into the environment
}
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_UNFIT = frozenset({"ContextWindowExceededError", "ContentPolicyViolationError"})
_PREFIXES = re.compile(r"(?:(?:litellm\.)?\w*(?:Error|Timeout): )+")
_NO_PROVIDER = "LLM Provider NOT provided"
"""LiteLLM's words, before a page of advice on its own options."""

_SPENT = "insufficient_quota"
"""OpenAI's word for an account that has to be paid before anything else helps; status 429."""


def load() -> Any:
    """Import litellm, which takes seconds."""
    os.environ.update({name: value for name, value in _SWITCHES.items() if name not in os.environ})
    collects = gc.isenabled()
    gc.disable()  # a third of the time of this import goes into looking for garbage in vain
    try:
        import litellm
    finally:
        if collects:
            gc.freeze()
            gc.enable()

    litellm.suppress_debug_info = True  # else it prints advice in colours on each error
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm


def call(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    timeout: float,
    api_base: str = "",
    parameters: Mapping[str, Any],
    protocol: Protocol = "chat",
) -> ModelReply:
    """Ask a model once, without any retry.

    Args:
        model: ``provider/model``.
        messages: in the form of the protocol.
        timeout: seconds.
        api_base: of the server; empty for the provider's own, or what its variables say.
        parameters: all else that is sent.
        protocol: OpenAI's chat completions, or its Responses API.

    Raises:
        ProviderError: no reply came.
    """
    litellm = load()
    options: dict[str, Any] = {**parameters, "timeout": timeout, "max_retries": 0}
    if api_base:
        options["api_base"] = api_base
    try:
        said = [dict(message) for message in messages]
        if protocol == "responses":
            return responses_reply(litellm.responses(input=said, model=model, **options), model)
        return chat_reply(litellm.completion(model=model, messages=said, **options), model)
    except ProviderError:
        raise
    except Exception as error:
        raise _failed(error, litellm, model) from None


def _failed(error: Exception, litellm: Any, model: str) -> ProviderError:
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    kind = type(error).__name__
    said, code = _said(error)
    # A refused connection comes as a server error of 500, and so does a reply that is none.
    transient = status in _TRANSIENT or kind in ("Timeout", "APIConnectionError")
    transient = transient and code != _SPENT
    message = f"{kind}: {said}" if said else kind
    if _NO_PROVIDER in said:
        message = f"{model} names no provider; write provider/model, such as openai/{model}"
    if transient and status != 429 and (missing := _missing_keys(litellm, model)):
        # Some clients call it an error of the server when they have no key.
        transient = False
        message += f" (not set: {', '.join(missing)})"
    return ProviderError(
        message,
        status=status,
        transient=transient,
        retry_after=_retry_after(error),
        unfit=kind in _UNFIT or code in UNFIT,
    )


def _missing_keys(litellm: Any, model: str) -> list[str]:
    """Variables that the provider wants and that are not set."""
    try:
        known = litellm.validate_environment(model)
    except Exception:
        return []
    return [] if known["keys_in_environment"] else [*known["missing_keys"]]


def _said(error: Exception) -> tuple[str, str]:
    """What the provider says, in one line without the words that LiteLLM puts before it, and its
    code for it; either may be empty.
    """
    text = str(error).strip()
    if prefix := _PREFIXES.match(text):
        text = text[prefix.end() :]
    code = getattr(error, "code", None)
    before, brace, after = text.partition("{")
    try:
        body = json.loads(brace + after)["error"]
        code = body.get("code") or code
        text = before + body["message"]
    except (ValueError, LookupError, TypeError, AttributeError):  # no JSON of that form in it
        pass
    return text.split("\n", 1)[0], code if isinstance(code, str) else ""


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    more = getattr(error, "litellm_response_headers", None) or {}
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value: Any = headers.get(name) or more.get(name)
        try:
            seconds = float(value) * unit
        except (TypeError, ValueError):  # absent, or a date
            continue
        if seconds >= 0:
            return seconds
    return None
