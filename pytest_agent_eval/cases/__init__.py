"""Cases: what a dataset holds, which half each case is in, and which of them were asked for.

The public names are imported when they are first used: a command runner needs
:mod:`.templates` alone, and neither jinja2 nor simpleeval is imported before a template or a
condition needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agent_eval.cases.case import BrokenCase, Case
    from pytest_agent_eval.cases.conditions import (
        DATASET_NAMES,
        JUDGE_NAMES,
        VALUE_NAMES,
        Condition,
        compile_condition,
    )
    from pytest_agent_eval.cases.coverage import EARLY_NAMES, decided
    from pytest_agent_eval.cases.directories import natural_key, read_cases
    from pytest_agent_eval.cases.selection import Selected, Selection, dataset_cases, select
    from pytest_agent_eval.cases.split import Half, Split, position
    from pytest_agent_eval.cases.tags import Tags, read_category, read_tags
    from pytest_agent_eval.cases.templates import Template, command_words, compile_template

__all__ = [
    "DATASET_NAMES",
    "EARLY_NAMES",
    "JUDGE_NAMES",
    "VALUE_NAMES",
    "BrokenCase",
    "Case",
    "Condition",
    "Half",
    "Selected",
    "Selection",
    "Split",
    "Tags",
    "Template",
    "command_words",
    "compile_condition",
    "compile_template",
    "dataset_cases",
    "decided",
    "natural_key",
    "position",
    "read_cases",
    "read_category",
    "read_tags",
    "select",
]

_HOMES = {
    "BrokenCase": "case",
    "Case": "case",
    "Condition": "conditions",
    "DATASET_NAMES": "conditions",
    "EARLY_NAMES": "coverage",
    "Half": "split",
    "JUDGE_NAMES": "conditions",
    "Selected": "selection",
    "Selection": "selection",
    "Split": "split",
    "Tags": "tags",
    "Template": "templates",
    "VALUE_NAMES": "conditions",
    "command_words": "templates",
    "compile_condition": "conditions",
    "compile_template": "templates",
    "dataset_cases": "selection",
    "decided": "coverage",
    "natural_key": "directories",
    "position": "split",
    "read_cases": "directories",
    "read_category": "tags",
    "read_tags": "tags",
    "select": "selection",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
