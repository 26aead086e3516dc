"""What LiteLLM returns, as a :class:`ModelReply`: of both protocols."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agent_eval.llm.errors import UNFIT, ProviderError
from pytest_agent_eval.llm.request import ModelReply, ToolCall
from pytest_agent_eval.results import Usage

__all__ = ["chat_reply", "responses_reply"]

_THINKS_ALOUD = ("deepseek/", "moonshot/")
"""Providers that want their reasoning back, as text."""

_PASSING = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout"})
"""Codes of a response that failed and may succeed later."""

_PACKED = "cntr_"
_ENDS = {"max_output_tokens": "length", "content_filter": "content_filter"}


def chat_reply(response: Any, model: str) -> ModelReply:
    """The reply of a chat completion; ``model`` is the one that was asked."""
    choice = response.choices[0]
    message = choice.message
    calls = tuple(
        ToolCall(one.id or "", one.function.name or "", one.function.arguments or "")
        for one in message.tool_calls or ()
    )
    answered = response.model or model
    usage = getattr(response, "usage", None)
    refusal = _refusal(message)
    thinking = getattr(message, "reasoning_content", None) or ""
    return ModelReply(
        text=message.content or refusal,
        tool_calls=calls,
        usage=_usage(
            response,
            answered,
            read=getattr(usage, "prompt_tokens", None),
            made=getattr(usage, "completion_tokens", None),
            details=getattr(usage, "prompt_tokens_details", None),
        ),
        model=answered,
        finish=choice.finish_reason or "",
        thinking=thinking,
        refused=bool(refusal) and not message.content,
        parts=tuple(_kept(message, thinking, model)),
    )


def responses_reply(response: Any, model: str) -> ModelReply:
    """The reply of the Responses API; ``model`` is the one that was asked.

    Raises:
        ProviderError: it says that it failed.
    """
    status = response.status or "completed"
    if status not in ("completed", "incomplete"):
        raise _failed(response, status)
    items = tuple(_plain(item) for item in response.output)
    calls = tuple(
        ToolCall(
            str(item.get("call_id") or item.get("id") or ""),
            str(item.get("name") or ""),
            str(item.get("arguments") or ""),
        )
        for item in items
        if item.get("type") == "function_call"
    )
    said = [content for item in items if item.get("type") == "message" for content in [_said(item)]]
    text, refused = said[-1] if said else ("", False)
    answered = response.model or model
    usage = response.usage
    return ModelReply(
        text=text,
        tool_calls=calls,
        usage=_usage(
            response,
            answered,
            read=getattr(usage, "input_tokens", None),
            made=getattr(usage, "output_tokens", None),
            details=getattr(usage, "input_tokens_details", None),
        ),
        model=answered,
        finish=_finish(response, status, bool(calls)),
        refused=refused,
        parts=items,
    )


def _plain(item: Any) -> dict[str, Any]:
    """An output item as a mapping of JSON types, without what is not set."""
    dump = getattr(item, "model_dump", None)
    raw = item if dump is None else dump(mode="json", exclude_none=True, warnings=False)
    found: dict[str, Any] = _own_ids(raw)
    return found


def _own_ids(value: Any) -> Any:
    """With the provider's own names of containers, in which LiteLLM packs the provider's."""
    if isinstance(value, Mapping):
        return {
            key: _own_id(item) if key == "container_id" else _own_ids(item)
            for key, item in value.items()
        }
    return [_own_ids(item) for item in value] if isinstance(value, list) else value


def _own_id(packed: Any) -> Any:
    try:
        told = base64.b64decode(str(packed).removeprefix(_PACKED), validate=True).decode()
    except ValueError:
        return packed
    before, found, own = told.partition(";container_id:")
    return own if found and before.startswith("litellm:") else packed


def _said(item: Mapping[str, Any]) -> tuple[str, bool]:
    """The text of a message, and whether it is a refusal."""
    texts, refusals = [], []
    content = item.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("text"):
            texts.append(str(block["text"]))
        elif isinstance(block, Mapping) and block.get("refusal"):
            refusals.append(str(block["refusal"]))
    return "".join(texts or refusals), bool(refusals) and not texts


def _finish(response: Any, status: str, called: bool) -> str:
    if status == "completed":
        return "tool_calls" if called else "stop"
    reason = str(getattr(response.incomplete_details, "reason", None) or "incomplete")
    return _ENDS.get(reason, reason)


def _failed(response: Any, status: str) -> ProviderError:
    error = response.error
    found: Mapping[str, Any] = (
        error if isinstance(error, Mapping) else getattr(error, "__dict__", {})
    )
    code, message = str(found.get("code") or ""), str(found.get("message") or "")
    said = ": ".join(part for part in (code, message) if part) or "no reason is given"
    # A response that is still under way was not asked for, and is there later.
    transient = status != "failed" or code in _PASSING or not code
    message = f"the response has the status {status}: {said}"
    return ProviderError(message, transient=transient, unfit=code in UNFIT)


def _refusal(message: Any) -> str:
    more: Mapping[str, Any] = getattr(message, "provider_specific_fields", None) or {}
    return str(getattr(message, "refusal", None) or more.get("refusal") or "")


def _kept(message: Any, thinking: str, model: str) -> Iterator[dict[str, Any]]:
    """Keys of the assistant's message that its provider wants back with the results of tools."""
    blocks = getattr(message, "thinking_blocks", None)
    if blocks:
        yield {"thinking_blocks": [dict(block) for block in blocks]}
    elif thinking and model.startswith(_THINKS_ALOUD):
        yield {"reasoning_content": thinking}


def _usage(response: Any, model: str, *, read: Any, made: Any, details: Any) -> Usage:
    usage = getattr(response, "usage", None)
    hidden: Mapping[str, Any] = getattr(response, "_hidden_params", None) or {}
    # Unknown where LiteLLM knows no price, or was told no counts.
    cost: float | None = hidden.get("response_cost") if usage is not None else None
    return Usage(
        cost_usd=cost,
        input_tokens=read,
        output_tokens=made,
        cache_read_tokens=getattr(details, "cached_tokens", None),
        cache_create_tokens=getattr(usage, "cache_creation_input_tokens", None),
        model=model,
        models_used=(model,),
    )
