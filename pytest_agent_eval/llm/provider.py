"""One call of a model by way of LiteLLM: the only module that imports it, and late."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_agent_eval.llm.request import ModelReply, ToolCall
from pytest_agent_eval.results import Usage

__all__ = ["ProviderError", "call", "load"]

_SWITCHES = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches a price list from the network
    "LITELLM_MODE": "PRODUCTION",  # else it reads a .env file into the environment
}
_ONE = threading.Lock()
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class ProviderError(Exception):
    """A call failed.

    Attributes:
        status: of HTTP, or None when there was no answer at all.
        transient: it may work later.
        retry_after: seconds that the provider asks to wait, or None.
    """

    def __init__(
        self, message: str, *, status: int | None, transient: bool, retry_after: float | None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.transient = transient
        self.retry_after = retry_after


def load() -> Any:
    """Import litellm, which takes seconds, and keep it from changing this process."""
    with _ONE:
        known = sys.modules.get("litellm")
        if known is not None:  # also when the code under test did
            return known
        with _switched():
            import litellm
        litellm.suppress_debug_info = True  # else it prints advice in colours on each error
        logger = logging.getLogger("LiteLLM")
        if logger.level == logging.NOTSET or logger.level == logging.WARNING:
            logger.setLevel(logging.CRITICAL)
        return litellm


@contextlib.contextmanager
def _switched() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update({name: value for name, value in _SWITCHES.items() if name not in before})
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        for name, value in before.items():
            if os.environ.get(name) != value:
                os.environ[name] = value


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
        raise _failed(error) from None


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
    hidden = getattr(response, "_hidden_params", None) or {}
    details = getattr(usage, "prompt_tokens_details", None)
    cost: Any = hidden.get("response_cost")
    return Usage(
        cost_usd=None if cost is None else float(cost),  # unknown where it knows no price
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        cache_read_tokens=getattr(details, "cached_tokens", None),
        cache_create_tokens=getattr(usage, "cache_creation_input_tokens", None),
        model=model,
        models_used=(model,),
    )


def _failed(error: Exception) -> ProviderError:
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) else None
    kind = type(error).__name__
    # A refused connection comes as a server error of 500, and so does a reply that is none.
    transient = status in _TRANSIENT or kind in ("Timeout", "APIConnectionError")
    return ProviderError(
        _sentence(error, kind),
        status=status,
        transient=transient,
        retry_after=_retry_after(error),
    )


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
        value = headers.get(name) or more.get(name)
        try:
            seconds = float(value) * unit
        except (TypeError, ValueError):  # absent, or a date
            continue
        if seconds >= 0:
            return seconds
    return None
