"""``judges[].agent``: a runner that can judge, and something that it is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.runner import check_runner, runner_type
from pytest_agent_eval.suite.findings import Findings, Place, block, entries, text
from pytest_agent_eval.suite.known import ASKED_BY_WORDS, MODEL_RUNNERS, Known
from pytest_agent_eval.suite.messages import nearest
from pytest_agent_eval.suite.models.base import is_number
from pytest_agent_eval.suite.models.judge import LLM_KEYS

__all__ = ["check_agent"]

_MODIFIED = "_modified"


def check_agent(
    data: Mapping[str, Any],
    judge: Mapping[str, Any],
    place: Place,
    findings: Findings,
    known: Known,
) -> None:
    """Check one agent judge."""
    agent = block(judge, "agent")
    given = agent.get("runner")
    runner = {"type": given} if isinstance(given, str) else block(agent, "runner")
    at: Place = (*place, "agent", "runner")
    if given is None or isinstance(given, str | dict):
        check_runner(runner, at, findings, known)
    kind = runner_type(runner)
    if runner.get("workspace_mode") == "repo":
        message = "an agent judge works on a staged copy, never in the checkout"
        findings.problem((*at, "workspace_mode"), message)
    if text(runner, "function").startswith("fixture:"):
        message = "a fixture belongs to a test and cannot judge; name package.module:callable"
        findings.problem((*at, "function"), message)
    if kind in ASKED_BY_WORDS and not any(text(judge, key).strip() for key in LLM_KEYS):
        message = f"the judging agent is asked nothing: {kind} needs one of {', '.join(LLM_KEYS)}"
        findings.problem((*place, "agent"), message)
    if block(runner, "settings").get("project_files"):
        message = "ignored: a judging agent gets files by agent.context"
        findings.warn((*at, "settings", "project_files"), message)
    _check_limits(judge, agent, kind, place, findings)
    _check_inputs(data, agent, (*place, "agent", "inputs"), findings)


def _check_limits(
    judge: Mapping[str, Any],
    agent: Mapping[str, Any],
    kind: str,
    place: Place,
    findings: Findings,
) -> None:
    """What a runner of this type takes no notice of."""
    if is_number(judge.get("temperature")) and kind not in MODEL_RUNNERS:
        message = f"ignored: an agent of type {kind} is given no temperature"
        findings.warn((*place, "temperature"), message)
    if kind == "codex":
        for key, instead in (
            ("max_budget_usd", "codex has no budget; use timeout"),
            ("allowed_tools", "codex has no such rules; runner.settings.sandbox_mode is its fence"),
        ):
            if agent.get(key) is not None:
                findings.warn((*place, "agent", key), f"without effect: {instead}")


def _check_inputs(
    data: Mapping[str, Any], agent: Mapping[str, Any], place: Place, findings: Findings
) -> None:
    """Note inputs in which the agent that is judged can leave nothing that is kept."""
    inputs = agent.get("inputs")
    outputs = [
        os.path.normpath(path) for _, o in entries(data, "outputs") if (path := text(o, "path"))
    ]
    known = [*dict.fromkeys((*outputs, "output", _MODIFIED))]
    for index, path in enumerate(inputs if isinstance(inputs, list) else ()):
        if not isinstance(path, str) or not path.strip():
            continue
        plain = os.path.normpath(path)
        if plain == "." or any(_overlap(plain, output) for output in known):
            continue
        fits = nearest(path, known) or f"; there are {', '.join(known)}"
        findings.warn((*place, index), f"shows nothing: {path} is in no output directory{fits}")


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
