"""``reward``: judges that exist, one way to combine them, a formula that is safe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.cases.formulas import compile_formula
from pytest_agent_eval.errors import ConditionError
from pytest_agent_eval.suite.findings import Findings, Place, block, entries, text
from pytest_agent_eval.suite.known import PAIRWISE
from pytest_agent_eval.suite.messages import nearest
from pytest_agent_eval.suite.models.base import is_free, is_number

__all__ = ["check_reward"]

WEIGHTED = "weighted"


def check_reward(data: Mapping[str, Any], findings: Findings) -> None:
    """Check what concerns more than one key of ``reward``."""
    reward = data.get("reward")
    if not isinstance(reward, dict):
        return
    judges = [text(judge, "name") for _, judge in entries(data, "judges")]
    names = [name for name in judges if name]
    judge = text(reward, "judge")
    if reward.get("judge") is not None:
        others = [key for key in ("formula", "weights", "raw") if reward.get(key) is not None]
        if others:
            message = f"judge excludes {', '.join(others)}: a reward is one judge or a formula"
            findings.problem(("reward",), message)
    elif reward.get("normalize") is True:
        findings.warn(("reward", "normalize"), "ignored: it belongs to judge")
    if judge.strip():
        _check_name(judge, names, ("reward", "judge"), findings)
    _check_weights(block(reward, "weights"), names, findings)
    raw = reward.get("raw")
    for index, name in enumerate(raw if isinstance(raw, list) else ()):
        if isinstance(name, str) and name.strip():
            _check_name(name, names, ("reward", "raw", index), findings)
    formula = text(reward, "formula").strip()
    if formula and formula != WEIGHTED:
        try:
            compile_formula(formula, (name for name in names if name != PAIRWISE))
        except ConditionError as error:
            findings.problem(("reward", "formula"), str(error))
        if block(reward, "weights"):
            findings.warn(("reward", "weights"), "ignored: the formula is not weighted")
    elif reward.get("judge") is None and not block(reward, "weights"):
        message = "no weights: every judge counts the same"
        findings.warn(("reward",), message)
    if reward.get("score_range") is not None:
        message = "score_range of reward is deprecated; declare one with each judge"
        findings.warn(("reward", "score_range"), message)


def _check_weights(weights: Mapping[Any, Any], names: list[str], findings: Findings) -> None:
    given = {n: w for n, w in weights.items() if isinstance(n, str) and not is_free(n)}
    for name in given:
        _check_name(name, names, ("reward", "weights", name), findings)
    known = [weight for weight in given.values() if weight is not None]
    if known and all(is_number(weight) and weight == 0 for weight in known):
        findings.problem(("reward", "weights"), "all weights are 0; one must be more")


def _check_name(name: str, names: list[str], place: Place, findings: Findings) -> None:
    if name not in names:
        close = nearest(name, names)
        there = f"judges: {', '.join(names)}" if names else "there are no judges"
        findings.problem(place, f"no judge is named {name!r}{close}{' ' if close else '; '}{there}")
    elif name == PAIRWISE:
        findings.problem(place, f"{PAIRWISE} compares two runs: it says nothing of a single trial")
