"""``reward``: judges that exist, one way to combine them, a formula that is safe."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.findings import Findings, Place, entries, text
from pytest_agent_eval.suite.messages import nearest
from pytest_agent_eval.suite.models.base import is_free, is_number

__all__ = ["check_reward"]

MAX_NODES = 200
_FUNCTIONS = frozenset({"min", "max", "abs", "round", "sum", "len", "mean"})
_ALLOWED = (
    ast.Module, ast.Expr, ast.Assign, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Call,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.UnaryOp, ast.USub,
    ast.UAdd, ast.Not, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Eq, ast.NotEq, ast.Lt,
    ast.LtE, ast.Gt, ast.GtE, ast.IfExp, ast.List, ast.Tuple,
)  # fmt: skip


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
    if judge.strip():
        _check_name(judge, names, ("reward", "judge"), findings)
    for name in reward["weights"] if isinstance(reward.get("weights"), dict) else ():
        if isinstance(name, str) and not is_free(name):
            _check_name(name, names, ("reward", "weights", name), findings)
    raw = reward.get("raw")
    for index, name in enumerate(raw if isinstance(raw, list) else ()):
        if isinstance(name, str) and name.strip():
            _check_name(name, names, ("reward", "raw", index), findings)
    formula = text(reward, "formula")
    if formula.strip() and formula != "weighted":
        _check_formula(formula, names, findings)
    if reward.get("score_range") is not None:
        message = "score_range of reward is deprecated; declare one with each judge"
        findings.warn(("reward", "score_range"), message)


def _check_name(name: str, names: list[str], place: Place, findings: Findings) -> None:
    if name not in names:
        close = nearest(name, names)
        there = f"judges: {', '.join(names)}" if names else "there are no judges"
        findings.problem(place, f"no judge is named {name!r}{close}{' ' if close else '; '}{there}")


def _check_formula(formula: str, names: list[str], findings: Findings) -> None:
    place: Place = ("reward", "formula")
    try:
        tree = ast.parse(formula.strip())
        nodes = list(ast.walk(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error) or "nested too deeply"
        findings.problem(place, f"must be weighted, or an expression over judge names: {said}")
        return
    if len(nodes) > MAX_NODES:
        findings.problem(place, f"has {len(nodes)} parts; at most {MAX_NODES} are allowed")
        return
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        findings.problem(place, "must end in an expression: that is the reward")
    assigned = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    known = assigned | _FUNCTIONS | set(names)
    for node in nodes:
        problem = _wrong(node, known)
        if problem:
            findings.problem(place, problem)


def _wrong(node: ast.AST, known: set[str]) -> str:
    """What is not allowed about one part of a formula; empty if it is."""
    if isinstance(node, ast.Name):
        if node.id.startswith("_") or node.id not in known:
            return f"unknown name {node.id}{nearest(node.id, known, what='known')}"
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            return ""
        if not is_number(node.value):
            return f"must hold numbers and judge names only, not {node.value!r}"
        if node.value > 1_000_000:
            return f"the number {node.value} is too large; at most 1000000"
    elif isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or node.keywords:
            return f"may call {', '.join(sorted(_FUNCTIONS))} only"
    elif not isinstance(node, _ALLOWED):
        return f"{type(node).__name__} is not allowed in a formula"
    return ""
