"""``execution``: skill or prompt, steps, templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.environment import check_environment
from pytest_agent_eval.suite.checks.runner import check_runner, runner_type
from pytest_agent_eval.suite.checks.sources import check_template
from pytest_agent_eval.suite.findings import Findings, Place, block, entries, text
from pytest_agent_eval.suite.known import ASKED_BY_WORDS, Known

__all__ = ["check_execution", "step_ids"]

_PER_CASE_HOOKS = ("before_each", "before_step", "after_step", "after_each")


def step_ids(data: Mapping[str, Any]) -> list[str]:
    """The ids of the steps, as far as they are strings."""
    return [text(step, "id") for _, step in entries(block(data, "execution"), "steps")]


def check_execution(data: Mapping[str, Any], findings: Findings, known: Known) -> None:
    """Check what concerns more than one key of ``execution``."""
    execution = block(data, "execution")
    _check_skill(data, execution, findings)
    if execution.get("steps"):
        _check_steps(data, execution, findings, known)
    for key in ("prompt", "arguments"):
        check_template(execution.get(key), ("execution", key), findings)
    check_environment(execution.get("env"), ("execution", "env"), findings)
    if (
        execution.get("max_budget_usd") is not None
        and runner_type(block(data, "runner")) == "codex"
    ):
        message = "without effect: codex neither has a budget nor tells what it cost; use timeout"
        findings.warn(("execution", "max_budget_usd"), message)
    if block(data, "runner").get("workspace_mode") == "repo":
        _check_repo(data, execution, findings)
    if execution.get("mode") == "batch":
        for phase in _PER_CASE_HOOKS:
            if block(data, "hooks").get(phase):
                findings.warn(("hooks", phase), "ignored in mode batch: cases are not run singly")


def _check_skill(data: Mapping[str, Any], execution: Mapping[str, Any], findings: Findings) -> None:
    skill, prompt = execution.get("skill"), execution.get("prompt")
    old = data.get("skill")
    if skill is not None and prompt is not None:
        findings.problem(("execution",), "skill and prompt exclude each other; keep one of them")
    if old is not None:
        if skill is not None or prompt is not None:
            other = "skill" if skill is not None else "prompt"
            findings.problem(("skill",), f"excludes execution.{other}; keep only that one")
        else:
            findings.warn(("skill",), "skill at the top level is deprecated; use execution.skill")
    asked = any(item for item in (skill, prompt, old, execution.get("arguments")))
    kind = runner_type(block(data, "runner"))
    if not asked and not execution.get("steps") and kind in ASKED_BY_WORDS:
        message = f"the agent is asked nothing: {kind} needs execution.skill or execution.prompt"
        findings.warn(("execution",), message)


def _check_repo(data: Mapping[str, Any], execution: Mapping[str, Any], findings: Findings) -> None:
    """What cannot be done, or is worth knowing, where the agent works in the checkout."""
    place: Place = ("runner", "workspace_mode")
    if execution.get("steps"):
        findings.problem(place, "repo runs one agent a case; steps need a workspace of their own")
    if execution.get("mode") == "batch":
        findings.problem(place, "repo runs in mode case only; a batch has a workspace of its own")
    dataset = block(data, "dataset")
    path = dataset.get("path")
    if isinstance(path, str) and not path.startswith("/"):
        message = "the agent works in the checkout, where it can read the answers of the cases; "
        findings.warn(place, message + "a dataset elsewhere (an absolute path) hides them")
    if block(dataset, "workspace").get("files"):
        message = "ignored with workspace_mode repo: only the input file is copied"
        findings.warn(("dataset", "workspace", "files"), message)


def _check_steps(
    data: Mapping[str, Any], execution: Mapping[str, Any], findings: Findings, known: Known
) -> None:
    place: Place = ("execution", "steps")
    if execution.get("mode") == "batch":
        findings.problem(place, "steps run in mode case only, not batch")
    instead = [key for key in ("skill", "prompt") if execution.get(key) is not None]
    if data.get("skill") is not None and "skill" not in instead:
        instead.append("skill")
    if instead:
        findings.problem(place, f"steps replace {' and '.join(instead)}; move it into a step")
    seen: dict[str, int] = {}
    suite_runner = block(data, "runner")
    for index, step in entries(execution, "steps"):
        here: Place = (*place, index)
        name = text(step, "id")
        if name and name in seen:
            message = f"the id {name!r} is already that of step {seen[name] + 1}"
            findings.problem((*here, "id"), message)
        seen.setdefault(name, index)
        _check_step(step, here, runner_type(suite_runner), findings, known)


def _check_step(
    step: Mapping[str, Any], place: Place, suite_type: str, findings: Findings, known: Known
) -> None:
    given = [key for key in ("skill", "prompt") if step.get(key) is not None]
    runner = step.get("runner")
    kind = runner_type(runner) if isinstance(runner, dict) else suite_type
    label = text(step, "id") or "the step"
    if len(given) == 2:
        findings.problem(place, f"{label}: skill and prompt exclude each other")
    elif not given and not step.get("arguments") and kind in ASKED_BY_WORDS:
        findings.problem(place, f"{label}: needs a skill or a prompt")
    if isinstance(runner, dict):
        check_runner(runner, (*place, "runner"), findings, known)
        if runner.get("workspace_mode") == "repo":
            message = "a step works in the workspace that all steps share"
            findings.problem((*place, "runner", "workspace_mode"), message)
    for key in ("prompt", "arguments"):
        check_template(step.get(key), (*place, key), findings)
    check_environment(step.get("env"), (*place, "env"), findings)
