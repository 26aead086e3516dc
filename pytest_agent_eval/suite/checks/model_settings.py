"""``runner.settings`` of type litellm: what its model is asked with, and its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_agent_eval.suite.findings import Findings, Place
from pytest_agent_eval.suite.messages import nearest, shown

__all__ = ["MODEL_SETTINGS", "TOOLS", "check_model_settings"]

TOOLS = ("read", "write", "list", "bash")
"""Tools that a model can be given."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_stop(value: Any) -> bool:
    words = value if isinstance(value, list) else [value]
    return bool(words) and all(isinstance(word, str) and word for word in words)


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "max_tokens": (_is_count, "a whole number of at least 1"),
    "max_turns": (_is_count, "a whole number of at least 1"),
    "seed": (lambda value: isinstance(value, int) and not isinstance(value, bool), "an integer"),
    "stop": (_is_stop, "a text or a list of texts, none of them empty"),
    "temperature": (lambda value: _is_number(value) and value >= 0, "a number of at least 0"),
    "top_p": (lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
}
"""Setting -> whether a value fits, and what would fit."""

MODEL_SETTINGS = frozenset({*_RULES, "tools"})


def check_model_settings(
    settings: Mapping[Any, Any], others: frozenset[str], place: Place, findings: Findings
) -> None:
    """Check the settings of one runner.

    Args:
        settings: as written.
        others: keys that are known and are not of the model.
        place: of the settings.
        findings: where problems go.
    """
    known = MODEL_SETTINGS | others
    for key, value in settings.items():
        if isinstance(key, str) and key not in known and not key.startswith("x-"):
            findings.problem((*place, key), f"unknown key{_hint(key, known)}")
        elif key in _RULES and value is not None:
            fits, what = _RULES[key]
            if not fits(value):
                findings.problem((*place, key), f"must be {what}, not {shown(value)}")
    _check_tools(settings.get("tools"), (*place, "tools"), findings)


def _hint(key: str, known: frozenset[str]) -> str:
    if key in ("effort", "reasoning_effort"):
        return "; effort is a key of runner itself"
    close = nearest(key, known)
    return f"{close}{'' if close else ';'} keys here: {', '.join(sorted(known))}"


def _check_tools(tools: Any, place: Place, findings: Findings) -> None:
    if tools is None:
        return
    known = ", ".join(TOOLS)
    if not isinstance(tools, list):
        findings.problem(place, f"must be a list of {known}, not {shown(tools)}")
        return
    for index, name in enumerate(tools):
        if not isinstance(name, str) or name not in TOOLS:
            close = nearest(name, TOOLS) if isinstance(name, str) else ""
            message = f"unknown tool {shown(name)}{close}{'' if close else ';'} there are {known}"
            findings.problem((*place, index), message)
        elif name in tools[:index]:
            findings.problem((*place, index), f"{name} is listed twice")
