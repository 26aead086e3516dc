"""``runner.settings`` of the types whose agent is a model: what it is asked with, and its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_agent_eval.suite.findings import Findings, Place
from pytest_agent_eval.suite.messages import nearest, shown

__all__ = ["TOOLS", "check_model_settings"]

TOOLS = ("read", "write", "list", "bash")
"""Tools that a model can be given."""

Rule = tuple[Callable[[Any], bool], str]
"""Whether a value fits, and what would fit."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) and word for word in value)


def _is_stop(value: Any) -> bool:
    return _is_texts(value if isinstance(value, list) else [value]) and value != []


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_COUNT = (_is_count, "a whole number of at least 1")
_TEXT = (_is_text, "a text")
_MAPPING = (lambda value: isinstance(value, dict), "a mapping")
_SHARED: Mapping[str, Rule] = {
    "max_turns": _COUNT,
    "temperature": (lambda value: _is_number(value) and value >= 0, "a number of at least 0"),
    "top_p": (lambda value: _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
}
_RULES: Mapping[str, Mapping[str, Rule]] = {
    "litellm": {
        **_SHARED,
        "max_tokens": _COUNT,
        "seed": (
            lambda value: isinstance(value, int) and not isinstance(value, bool),
            "an integer",
        ),
        "stop": (_is_stop, "a text or a list of texts, none of them empty"),
    },
    "responses-api": {
        **_SHARED,
        "base_url": _TEXT,
        "default_model": _TEXT,
        "include": (_is_texts, "a list of texts"),
        "max_output_tokens": _COUNT,
        "max_tool_calls": _COUNT,
        "parallel_tool_calls": (lambda value: isinstance(value, bool), "true or false"),
        "reasoning": _MAPPING,
        "service_tier": _TEXT,
        "text": _MAPPING,
        "tool_choice": (lambda value: isinstance(value, str | dict), "a text or a mapping"),
        "truncation": (lambda value: value in ("auto", "disabled"), "auto or disabled"),
    },
}
"""Runner type -> setting -> rule."""

_HOSTED = "responses-api"
_WITHOUT_EFFECT = {
    "api_key": "ignored: the key is that of the provider's variable, such as OPENAI_API_KEY; take "
    "it out of this file",
    "memory_limit_mb": "ignored: the agent's tools work in its workspace on this machine, not in a "
    "container of the provider",
    "network_policy": "ignored: the agent's tools work in its workspace on this machine, not in a "
    "container of the provider; runner.sandbox keeps its commands from the network",
}
_CALLERS = frozenset(
    {"apply_patch", "computer", "computer_use_preview", "custom", "function", "local_shell"}
)
"""Tools of the Responses API that whoever asks has to carry out."""


def check_model_settings(
    kind: str, settings: Mapping[Any, Any], others: frozenset[str], place: Place, findings: Findings
) -> None:
    """Check the settings of one runner.

    Args:
        kind: its type.
        settings: as written.
        others: keys that are known and are not of the model.
        place: of the settings.
        findings: where problems go.
    """
    rules = _RULES[kind]
    known = others | {*rules, "tools"}
    for key, value in settings.items():
        if kind == _HOSTED and key in _WITHOUT_EFFECT:
            findings.warn((*place, key), _WITHOUT_EFFECT[key])
        elif isinstance(key, str) and key not in known and not key.startswith("x-"):
            findings.problem((*place, key), f"unknown key{_hint(key, known)}")
        elif key in rules and value is not None:
            fits, what = rules[key]
            if not fits(value):
                findings.problem((*place, key), f"must be {what}, not {shown(value)}")
    _check_tools(settings.get("tools"), kind == _HOSTED, (*place, "tools"), findings)


def _hint(key: str, known: frozenset[str]) -> str:
    if key in ("effort", "reasoning_effort"):
        return "; effort is a key of runner itself"
    if key == "max_tokens" and "max_output_tokens" in known:
        return "; did you mean max_output_tokens?"
    close = nearest(key, known)
    return f"{close}{'' if close else ';'} keys here: {', '.join(sorted(known))}"


def _check_tools(tools: Any, hosted: bool, place: Place, findings: Findings) -> None:
    if tools is None:
        return
    known = ", ".join(TOOLS)
    if hosted:
        known += ", and mappings such as {type: web_search}"
    if not isinstance(tools, list):
        findings.problem(place, f"must be a list of {known}, not {shown(tools)}")
        return
    for index, name in enumerate(tools):
        if hosted and isinstance(name, dict):
            _check_hosted(name, (*place, index), findings)
        elif not isinstance(name, str) or name not in TOOLS:
            close = nearest(name, TOOLS) if isinstance(name, str) else ""
            message = f"unknown tool {shown(name)}{close}{'' if close else ';'} there are {known}"
            findings.problem((*place, index), message)
        elif name in tools[:index]:
            findings.problem((*place, index), f"{name} is listed twice")


def _check_hosted(tool: Mapping[Any, Any], place: Place, findings: Findings) -> None:
    """A tool of the provider's own: passed on, unless somebody here would have to carry it out."""
    kind = tool.get("type")
    if not _is_text(kind):
        findings.problem(place, "needs a type, such as {type: web_search}")
    environment = tool.get("environment")
    local = isinstance(environment, dict) and environment.get("type") == "local"
    if kind in _CALLERS or (kind == "shell" and local):
        message = f"the type {kind} is carried out by whoever asks; {', '.join(TOOLS)} are here"
        findings.problem(place, message)
