"""Compiling what is source text inside an eval.yaml: conditions, templates, checks."""

from __future__ import annotations

from typing import Any, Literal

from pytest_agent_eval.errors import ConditionError, SuiteError, TemplateError
from pytest_agent_eval.suite.findings import Findings, Place

__all__ = ["check_body", "check_condition", "check_of_boolean", "check_template"]


def check_condition(
    source: Any, scope: Literal["judge", "dataset", "value"], place: Place, findings: Findings
) -> None:
    """Note a condition that does not compile for the names it may read."""
    if not isinstance(source, str) or not source.strip():
        return
    # Imported when the first condition is met: a suite without one need not wait for it.
    from pytest_agent_eval.cases.conditions import (
        DATASET_NAMES,
        JUDGE_NAMES,
        VALUE_NAMES,
        compile_condition,
    )

    names = {"judge": JUDGE_NAMES, "dataset": DATASET_NAMES, "value": VALUE_NAMES}[scope]
    try:
        compile_condition(source, names)
    except ConditionError as error:
        findings.problem(place, str(error))


def check_of_boolean(source: Any, place: Place, findings: Findings) -> None:
    """Note a condition over the value of a boolean judge that tells true and false not apart."""
    if not isinstance(source, str) or not source.strip():
        return
    from pytest_agent_eval.cases.conditions import VALUE_NAMES, compile_condition

    try:
        condition = compile_condition(source, VALUE_NAMES)
        same = condition.evaluate({"value": True}) == condition.evaluate({"value": False})
    except ConditionError:  # said by check_condition, or when it judges
        return
    if same:
        message = f"{source.strip()} says the same of true and of false"
        findings.problem(place, f"{message}, and feedback_type is bool; leave pass_if out")


def check_template(source: Any, place: Place, findings: Findings) -> None:
    """Note a template whose Jinja2 syntax is broken; the brace style has no wrong syntax."""
    if not isinstance(source, str) or ("{{" not in source and "{%" not in source):
        return
    from pytest_agent_eval.cases.templates import compile_template

    try:
        compile_template(source)
    except TemplateError as error:
        findings.problem(place, str(error))


def check_body(source: Any, name: str, place: Place, findings: Findings) -> None:
    """Note the check of a judge that does not compile, at its own line."""
    if not isinstance(source, str) or not source.strip():
        return
    from pytest_agent_eval.suite.check_source import compile_check

    try:
        compile_check(source, file="eval.yaml", line=findings.value_line(place), name=name)
    except SuiteError as error:
        found = error.problems[0]
        findings.problem(place, found.message, line=found.line)
