"""Variants: what each changes of a suite, and the combinations of a matrix read as variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

from pytest_agent_eval.suite.findings import Findings, Place, block
from pytest_agent_eval.suite.messages import shown
from pytest_agent_eval.suite.models.base import is_free, is_number
from pytest_agent_eval.suite.models.suite import SuiteConfig

__all__ = ["MAX_COMBINATIONS", "matrix_variants", "merged", "variant_parts", "variant_values"]

MAX_COMBINATIONS = 1000


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The suite's data with a variant's merged over it: mappings deep, everything else replaced."""
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def variant_parts(
    data: Mapping[str, Any], findings: Findings
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and merged data of every variant, without ``variants``, ``matrix`` and ``values``."""
    base = {key: value for key, value in data.items() if key not in ("variants", "matrix")}
    for name, change in block(data, "variants").items():
        if is_free(name) or change is None or not isinstance(name, str):
            continue
        place: Place = ("variants", name)
        problem = _name_problem(name)
        if problem:
            findings.problem(place, problem)
        if not isinstance(change, dict):
            continue  # the model says so
        for key in ("variants", "matrix", "name"):
            if change.get(key) is not None:
                findings.problem((*place, key), f"a variant cannot change {key}")
        own = {k: v for k, v in change.items() if k not in ("values", "variants", "matrix", "name")}
        yield name, merged(base, own)


def variant_values(data: Mapping[str, Any], findings: Findings) -> dict[str, dict[str, str]]:
    """Variant -> its ``values``: placeholders of the command, numbers and booleans as text."""
    found: dict[str, dict[str, str]] = {}
    for name, change in block(data, "variants").items():
        if is_free(name) or not isinstance(change, dict) or not isinstance(name, str):
            continue
        values = change.get("values")
        if values is not None and not isinstance(values, dict):
            message = f"must be a mapping of placeholders, not {shown(values)}"
            findings.problem(("variants", name, "values"), message)
        found[name] = {}
        for key, value in block(change, "values").items():
            place: Place = ("variants", name, "values", key)
            if is_free(key) or value is None:
                continue
            if not isinstance(key, str):
                findings.problem(place, f"a key must be a string, not {shown(key)}; quote it")
            elif not isinstance(value, str | bool) and not is_number(value):
                findings.problem(place, f"must be a string or a number, not {shown(value)}")
            else:
                found[name][key] = _as_text(value)
    return found


def matrix_variants(
    data: Mapping[str, Any], config: SuiteConfig | None, findings: Findings
) -> tuple[dict[str, SuiteConfig], dict[str, dict[str, str]]]:
    """One variant for each combination of factors, named by its values joined with ``-``."""
    matrix = block(data, "matrix")
    replications = matrix.get("replications")
    combinations = _combinations(matrix, findings)
    variants: dict[str, SuiteConfig] = {}
    values: dict[str, dict[str, str]] = {}
    for combination in combinations:
        name = "-".join(combination.values())
        problem = _name_problem(name)
        if problem or name in values:
            message = problem or f"two combinations would be named {name!r}"
            findings.problem(("matrix", "factors"), message)
            continue
        values[name] = {key: text for key, text in combination.items() if key != "model"}
        if config is None:
            continue
        update: dict[str, Any] = {}
        if "model" in combination:
            update["models"] = config.models.model_copy(update={"skill": combination["model"]})
        if isinstance(replications, int):
            update["execution"] = config.execution.model_copy(update={"trials": replications})
        variants[name] = config.model_copy(update=update)
    return variants, values


def _combinations(matrix: Mapping[str, Any], findings: Findings) -> list[dict[str, str]]:
    factors: dict[str, list[str]] = {}
    sound = True
    for name, levels in block(matrix, "factors").items():
        if not isinstance(name, str) or not isinstance(levels, list) or is_free(name):
            sound = sound and (is_free(name) or levels is None)
            continue
        place: Place = ("matrix", "factors", name)
        if not levels:
            findings.problem(place, "needs at least one value")
        for index, level in enumerate(levels):
            if (not isinstance(level, str | bool) and not is_number(level)) or level == "":
                message = f"must be a string or a number, not {shown(level)}"
                findings.problem((*place, index), message)
                sound = False
        factors[name] = [_as_text(level) for level in levels] if sound else []
    if not sound or not factors:
        return []
    if prod(len(levels) for levels in factors.values()) > MAX_COMBINATIONS:
        message = f"has more than {MAX_COMBINATIONS} combinations"
        findings.problem(("matrix", "factors"), message)
        return []
    return [dict(zip(factors, levels, strict=True)) for levels in product(*factors.values())]


def _name_problem(name: str) -> str:
    """Why pytest could not address an item ``case[name]``; empty if it can."""
    if not name.strip() or name != name.strip():
        return "the name of a variant must not be empty, nor start or end with a blank"
    if "::" in name or set(name) & set("[]") or not name.isprintable():
        return f"the name of a variant must not hold [, ], :: or control characters: {name!r}"
    return ""


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
