"""Output items of OpenAI's Responses API, in the words of this package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agent_eval.runners.agent_tool import text_of
from pytest_agent_eval.runners.model_talk import Event

__all__ = ["events_of", "tool_name"]

Item = Mapping[str, Any]

_CALLS = frozenset(
    {"apply_patch_call", "code_interpreter_call", "computer_call", "custom_tool_call",
     "file_search_call", "image_generation_call", "local_shell_call", "mcp_call", "shell_call",
     "tool_search_call", "web_search_call"}
)  # fmt: skip
_ROOT = {"agent": "root"}
_INPUTS = (
    "action", "actions", "arguments", "code", "container_id", "input", "operation", "queries",
)  # fmt: skip
"""Keys of a call that say what was asked for."""
_RESULTS = ("outputs", "output", "results", "result")
_LONGEST = 100_000
"""Characters of a result; a picture may be one."""


def events_of(item: Item) -> Iterator[Event]:
    """The events of one output item that is no call of a function."""
    kind = str(item.get("type") or "")
    if kind == "message":
        yield from _message(item)
    elif kind == "reasoning":
        texts = [text for key in ("content", "summary") for text in _texts(item.get(key))]
        if texts:
            yield {"type": "thinking", **_ROOT, "text": "\n\n".join(texts)}
    elif kind == "mcp_approval_request":
        about = _about(item)
        yield {"type": "tool_call", **about, "input": _asked(item)}
        refused = "refused: nobody is there to approve it"
        yield {"type": "tool_result", **about, "text": refused, "is_error": True}
    elif kind.removesuffix("_output") in _CALLS and kind.endswith("_output"):
        text, wrong = _cut(_shown(item.get("output"))), _is_wrong(item) or _exited(item)
        yield {"type": "tool_result", **_about(item), "text": text, "is_error": wrong}
    elif kind in _CALLS:
        yield from _call(item)
    else:
        if item.get("error"):
            yield {"type": "error", **_ROOT, "text": text_of(item["error"])}
        yield {"type": "other", **_ROOT, "raw": dict(item)}


def tool_name(item: Item) -> str:
    """``web_search`` of a ``web_search_call``; tools of MCP servers as ``mcp__server__tool``."""
    kind = str(item.get("type") or "")
    if kind in ("mcp_call", "mcp_approval_request"):
        return f"mcp__{item.get('server_label') or '?'}__{item.get('name') or '?'}"
    own = item.get("name")
    return (
        own if isinstance(own, str) and own else kind.removesuffix("_output").removesuffix("_call")
    )


def _message(item: Item) -> Iterator[Event]:
    content = item.get("content")
    for block in content if isinstance(content, list) else [{"text": content}]:
        if not isinstance(block, Mapping):
            continue
        text = block.get("text") or block.get("refusal")
        if not isinstance(text, str) or not text:
            continue
        event: dict[str, Any] = {"type": "message", **_ROOT, "text": text}
        if block.get("refusal"):
            event["refusal"] = True
        if block.get("annotations"):
            event["annotations"] = block["annotations"]
        yield event


def _call(item: Item) -> Iterator[Event]:
    about = _about(item)
    yield {"type": "tool_call", **about, "input": _asked(item)}
    said = next((item[key] for key in _RESULTS if item.get(key) is not None), None)
    wrong = _is_wrong(item)
    if said is None and not wrong:
        return  # its result is an item of its own, or is not told
    text = _shown(item["error"]) if item.get("error") else _shown(said)
    yield {"type": "tool_result", **about, "text": _cut(text), "is_error": wrong}


def _about(item: Item) -> dict[str, Any]:
    name = str(item.get("call_id") or item.get("id") or "")
    return {**_ROOT, "name": tool_name(item), "id": name}


def _asked(item: Item) -> Any:
    found = {key: item[key] for key in _INPUTS if item.get(key) is not None}
    if len(found) != 1:
        return found
    (value,) = found.values()
    if isinstance(value, str) and "arguments" in found:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value if isinstance(value, Mapping) else found


def _is_wrong(item: Item) -> bool:
    return bool(item.get("error")) or item.get("status") in ("failed", "incomplete")


def _exited(item: Item) -> bool:
    """Whether a command of a hosted shell did not end well."""
    outputs = item.get("output")
    outcomes = [
        one.get("outcome")
        for one in (outputs if isinstance(outputs, list) else ())
        if isinstance(one, Mapping)
    ]
    return any(
        isinstance(one, Mapping) and (one.get("type") != "exit" or one.get("exit_code"))
        for one in outcomes
    )


def _texts(blocks: Any) -> Iterator[str]:
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, Mapping) and isinstance(block.get("text"), str) and block["text"]:
            yield block["text"]


def _shown(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Mapping) and isinstance(value.get("message"), str):
        return str(value["message"])
    return json.dumps(value, ensure_ascii=False, sort_keys=True)  # as recordings have it


def _cut(text: str) -> str:
    left = len(text) - _LONGEST
    return text if left <= 0 else f"{text[:_LONGEST]}\n[... {left} characters more]"
