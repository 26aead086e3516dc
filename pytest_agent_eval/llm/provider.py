"""One call of a model by way of LiteLLM: the only module that imports it, in its own process."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_agent_eval.llm.errors import ProviderError
from pytest_agent_eval.llm.request import ModelReply, ToolCall
from pytest_agent_eval.results import Usage

__all__ = ["call", "load"]

_SWITCHES = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches a price list from the network
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env file into the environment
}
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


def load() -> Any:
    """Import litellm, which takes seconds."""
    os.environ.update({name: value for name, value in _SWITCHES.items() if name not in os.environ})
    import litellm

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
) -> ModelReply:
    """Ask a model once, without any retry.

    Args:
        model: ``provider/model``.
        messages: in the form of OpenAI's chat completions.
        timeout: seconds.
        api_base: of the server; empty for the provider's own, or what its variables say.
        parameters: all else that is sent.

    Raises:
        ProviderError: no reply came.
    """
    litellm = load()
    options: dict[str, Any] = {**parameters, "timeout": timeout, "max_retries": 0}
    if api_base:
        options["api_base"] = api_base
    try:
        response = litellm.completion(
            model=model, messages=[dict(message) for message in messages], **options
        )
        return _reply(response, model)
    except Exception as error:
        raise _failed(error, litellm, model) from None


def _reply(response: Any, model: str) -> ModelReply:
    choice = response.choices[0]
    message = choice.message
    calls = tuple(
        ToolCall(one.id or "", one.function.name or "", one.function.arguments or "")
        for one in message.tool_calls or ()
    )
    answered = response.model or model
    return ModelReply(
        text=message.content or "",
        tool_calls=calls,
        usage=_usage(response, answered),
        model=answered,
        finish=choice.finish_reason or "",
    )


def _usage(response: Any, model: str) -> Usage:
    usage = getattr(response, "usage", None)
    hidden: Mapping[str, Any] = getattr(response, "_hidden_params", None) or {}
    details = getattr(usage, "prompt_tokens_details", None)
    cost: float | None = hidden.get("response_cost")  # unknown where it knows no price
    return Usage(
        cost_usd=cost,
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        cache_read_tokens=getattr(details, "cached_tokens", None),
        cache_create_tokens=getattr(usage, "cache_creation_input_tokens", None),
        model=model,
        models_used=(model,),
    )


def _failed(error: Exception, litellm: Any, model: str) -> ProviderError:
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    kind = type(error).__name__
    # A refused connection comes as a server error of 500, and so does a reply that is none.
    transient = status in _TRANSIENT or kind in ("Timeout", "APIConnectionError")
    message = _sentence(error, kind)
    if transient and status != 429 and (missing := _missing_keys(litellm, model)):
        # Some clients call it an error of the server when they have no key.
        transient = False
        message += f" (not set: {', '.join(missing)})"
    return ProviderError(
        message,
        status=status,
        transient=transient,
        retry_after=_retry_after(error),
    )


def _missing_keys(litellm: Any, model: str) -> list[str]:
    """Variables that the provider wants and that are not set."""
    try:
        known = litellm.validate_environment(model)
    except Exception:
        return []
    return [] if known["keys_in_environment"] else [*known["missing_keys"]]


def _sentence(error: Exception, kind: str) -> str:
    """Its first line without the words that LiteLLM puts before it."""
    text = str(error).strip().split("\n", 1)[0]
    for prefix in ("litellm.", f"{kind}: "):
        text = text.removeprefix(prefix)
    text = text.removeprefix(f"{kind}: ")
    return f"{kind}: {text}" if text else kind


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
