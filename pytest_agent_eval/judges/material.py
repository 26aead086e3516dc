"""What a model is shown of a trial: data between fences, never words that are spoken to it.

An agent's output is untrusted. Whatever a template puts in of a record stands between two lines
that hold a digest of what is between them, so that nobody can write the second one in advance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_agent_eval.cases.rendering import to_text
from pytest_agent_eval.llm.fences import LONGEST, fenced

__all__ = ["Material", "Trusted", "trusted"]


class Trusted(str):
    """A text that the suite's author wrote: it is put in as it is."""

    __slots__ = ()


class TrustedMapping(dict[Any, Any]):
    """A mapping that the suite's author wrote; written out, it is a paragraph a key."""

    __slots__ = ()


def trusted(value: Any) -> Any:
    """The value with all of its texts and mappings marked as the author's."""
    if isinstance(value, str):
        return Trusted(value)
    if isinstance(value, Mapping):
        return TrustedMapping((key, trusted(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [trusted(item) for item in value]
    return value


class Material(Mapping[str, Any]):
    """The record as templates know it as ``outputs``: written out, it lists its files.

    Args:
        record: the record.
        hidden: paths of this machine -> what stands for them, so that the same work is the same
            text wherever it was done.
    """

    def __init__(self, record: Mapping[str, Any], hidden: Mapping[str, str]) -> None:
        self._record = record
        self._hidden = hidden

    def __getitem__(self, key: str) -> Any:
        return self._record[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)

    def __contains__(self, key: object) -> bool:
        return key in self._record

    def listing(self) -> str:
        """One line a file: its path and its size."""
        lines = []
        for path, content in self._record["files"].items():
            binary = isinstance(content, Mapping)
            size = content.get("size", 0) if binary else len(content.encode(errors="replace"))
            lines.append(f"{path} ({size:,} bytes{', binary' if binary else ''})")
        return "\n".join(lines) or "(no files)"

    def write(self, value: Any, limit: int = LONGEST) -> str:
        """What a template's expression becomes in a prompt: at most ``limit`` characters."""
        if isinstance(value, Trusted):
            return str(value)
        if isinstance(value, TrustedMapping):
            return "\n\n".join(f"**{key}**: {to_text(item)}" for key, item in value.items())
        if value is None or isinstance(value, bool | int | float):
            return to_text(value)
        if isinstance(value, Material):
            value = value.listing()
        text = to_text(value)
        for path, name in self._hidden.items():
            text = text.replace(path, name)
        return fenced(text, limit) if text else "(empty)"

    def tool_trace(self) -> str:
        """One paragraph a tool call: who, what with which arguments, and what came of it."""
        return "\n\n".join(map(_tool_call, self._record["tool_calls"])) or "(no tool calls)"


def _tool_call(call: Mapping[str, Any]) -> str:
    who = call.get("agent") or "root"
    result = to_text(call.get("result") if call.get("result") is not None else "")
    said = "error" if call.get("is_error") else "result"
    arguments = to_text(call.get("input") or {})
    return f"{who}: {call.get('name')} {_short(arguments)}\n{said}: {_short(result)}"


def _short(text: str, limit: int = 2_000) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [... {len(text) - limit:,} more]"
