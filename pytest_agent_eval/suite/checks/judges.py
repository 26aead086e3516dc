"""``judges``: unique names, one kind each, values that fit their type, sources that compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.agent_judges import check_agent
from pytest_agent_eval.suite.checks.execution import step_ids
from pytest_agent_eval.suite.checks.sources import (
    check_body,
    check_condition,
    check_of_boolean,
    check_template,
)
from pytest_agent_eval.suite.findings import Findings, Place, entries, text
from pytest_agent_eval.suite.known import PAIRWISE, RESERVED_JUDGE_NAMES, Known
from pytest_agent_eval.suite.messages import nearest
from pytest_agent_eval.suite.models.base import is_free, is_number
from pytest_agent_eval.suite.models.judge import LLM_KEYS, kinds_set

__all__ = ["check_judges", "is_llm"]

Judge = Mapping[str, Any]


def is_llm(judge: Judge, known: Known) -> bool:
    """Whether a model gives the verdict: LLM and agent judges, and builtins that ask a model."""
    kinds = kinds_set(judge, known.judge_kinds)
    if text(judge, "name") == PAIRWISE:
        return True
    if kinds[:1] == ("builtin",):
        return judge["builtin"] in known.llm_builtins if _is_text(judge["builtin"]) else False
    return kinds[:1] in (("llm",), ("agent",))


def check_judges(data: Mapping[str, Any], findings: Findings, known: Known) -> None:
    """Check every judge."""
    seen: dict[str, int] = {}
    steps = step_ids(data)
    for index, judge in entries(data, "judges"):
        place: Place = ("judges", index)
        name = text(judge, "name")
        _check_name(name, index, seen, (*place, "name"), findings)
        _check_kind(judge, name, place, findings, known)
        _check_scale(judge, name, place, findings, known)
        _check_sources(judge, name, place, findings)
        step = text(judge, "step")
        if step.strip() and step not in steps:
            fits = nearest(step, filter(None, steps), what="steps") if any(steps) else ""
            none = "" if any(steps) else "; execution has no steps"
            findings.problem((*place, "step"), f"no step has the id {step!r}{fits}{none}")
        samples = judge.get("samples")
        if is_number(samples) and samples != 1 and not is_llm(judge, known):
            findings.warn((*place, "samples"), "samples is ignored: no model gives this verdict")
        if kinds_set(judge, known.judge_kinds)[:1] == ("agent",):
            check_agent(data, judge, place, findings, known)


def _check_name(
    name: str, index: int, seen: dict[str, int], place: Place, findings: Findings
) -> None:
    if not name:
        return
    if name in seen:
        message = f"the name {name!r} is already that of judge {seen[name] + 1}; names are unique"
        findings.problem(place, message)
    seen.setdefault(name, index)
    if name in RESERVED_JUDGE_NAMES:
        findings.problem(place, f"{name!r} is reserved: it is the verdict on the agent itself")
    if is_free(name):
        findings.problem(place, "must not start with x-: a threshold with such a key is ignored")


def _check_kind(judge: Judge, name: str, place: Place, findings: Findings, known: Known) -> None:
    kinds = kinds_set(judge, known.judge_kinds)
    label = repr(name) if name else "the judge"
    if name == PAIRWISE:
        other = [kind for kind in kinds if kind != "llm"]
        if other:
            message = f"{PAIRWISE} is reserved for the judge that compares two runs with a model"
            findings.problem(place, f"{message}; it excludes {' and '.join(other)}")
    elif not kinds:
        keys = ["builtin", "check", "agent", *LLM_KEYS, "module and function"]
        keys += sorted(known.judge_kinds)
        empty = [key for key in keys if judge.get(key) == ""]
        if empty:
            findings.problem((*place, empty[0]), f"{label}: {empty[0]} is empty")
        else:
            findings.problem(place, f"{label} has no kind; set one of {', '.join(keys)}")
    elif kinds[0] == "builtin" and len(kinds) > 1:
        others = [key for key in _kind_keys(judge, known) if key != "builtin"]
        findings.problem(place, f"{label}: builtin excludes {', '.join(others)}; keep one of them")
    elif len(kinds) > 1 and kinds != ("agent", "llm"):
        rest = kinds[2:] if kinds[:2] == ("agent", "llm") else kinds[1:]
        findings.warn(place, f"{label}: {kinds[0]} decides, {', '.join(rest)} is ignored")
    asked = [key for key in LLM_KEYS if judge.get(key) not in (None, "")]
    for key in asked[1:]:
        findings.warn((*place, key), f"{label}: {asked[0]} is the question, {key} is ignored")
    if "function" in kinds:
        for key, other_key in (("module", "function"), ("function", "module")):
            if judge.get(key) in (None, ""):
                findings.problem((*place, key), f"missing; {other_key} needs it")
    builtin = judge.get("builtin")
    if _is_text(builtin) and builtin not in known.builtins:
        fits = nearest(str(builtin), known.builtins)
        if not fits:
            full = sorted(item for item in known.builtins if "/" in item)
            fits = f"; there are {', '.join(full)}"
        findings.problem((*place, "builtin"), f"no builtin judge is named {builtin!r}{fits}")


def _kind_keys(judge: Judge, known: Known) -> list[str]:
    """The keys of kinds that a judge sets, as written."""
    keys = ("builtin", "check", "agent", *LLM_KEYS, "module", "function")
    given = [key for key in keys if judge.get(key) not in (None, "")]
    return given + [key for key in judge if key in known.judge_kinds]


def _check_scale(judge: Judge, name: str, place: Place, findings: Findings, known: Known) -> None:
    kind, scale = judge.get("feedback_type"), judge.get("score_range")
    builtin = judge.get("builtin")
    if _is_text(builtin) and builtin in known.llm_builtins:
        wrong = []
        if kind not in (None, "bool"):
            wrong.append(f"feedback_type {kind}")
        if scale is not None:
            wrong.append("score_range")
        if wrong:
            message = f"the verdict of {builtin} is always a boolean; remove {' and '.join(wrong)}"
            findings.problem(place, message)
        return
    if kind == "bool" and scale is not None:
        findings.problem(place, "feedback_type bool excludes score_range; remove one of them")
    if kind == "int" and isinstance(scale, list) and any(_is_fraction(end) for end in scale):
        message = f"the bounds of feedback_type int must be whole numbers, not {scale}"
        findings.problem((*place, "score_range"), message)
    if scale is None and kind != "bool" and name != PAIRWISE and is_llm(judge, known):
        message = "no score_range: the model is told [1, 5], and it is not enforced; declare one"
        if kind is None:
            message += ", or feedback_type: bool for yes or no"
            if not judge.get("pass_if"):
                message += "; a number asserts nothing without pass_if or a threshold"
        findings.warn(place, message)


def _check_sources(judge: Judge, name: str, place: Place, findings: Findings) -> None:
    check_condition(judge.get("if"), "judge", (*place, "if"), findings)
    check_condition(judge.get("pass_if"), "value", (*place, "pass_if"), findings)
    if judge.get("feedback_type") == "bool":
        check_of_boolean(judge.get("pass_if"), (*place, "pass_if"), findings)
    check_body(judge.get("check"), name or "the judge", (*place, "check"), findings)
    for key in ("llm_rubric", "prompt"):
        check_template(judge.get(key), (*place, key), findings)


def _is_fraction(value: Any) -> bool:
    return is_number(value) and value % 1 != 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""
