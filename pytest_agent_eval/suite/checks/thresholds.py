"""``thresholds``: gates of judges that exist, on values that those judges have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.judges import is_llm
from pytest_agent_eval.suite.findings import Findings, Place, block, entries, text
from pytest_agent_eval.suite.known import PAIRWISE, Known
from pytest_agent_eval.suite.messages import nearest
from pytest_agent_eval.suite.models.base import is_free, is_number
from pytest_agent_eval.suite.models.threshold import BOUNDS

__all__ = ["check_thresholds"]


def check_thresholds(data: Mapping[str, Any], findings: Findings, known: Known) -> None:
    """Check every threshold against the judge it names."""
    judges = {text(judge, "name"): judge for _, judge in entries(data, "judges")}
    judges.pop("", None)
    for name, threshold in block(data, "thresholds").items():
        if not isinstance(name, str) or is_free(name) or threshold is None:
            continue
        place: Place = ("thresholds", name)
        if name not in judges:
            close = nearest(name, judges)
            there = f"judges: {', '.join(sorted(judges))}" if judges else "there are no judges"
            joint = " " if close else "; "
            findings.problem(place, f"no judge is named {name!r}{close}{joint}{there}")
        elif isinstance(threshold, dict):
            given = [key for key in BOUNDS if threshold.get(key) is not None]
            unknown = set(threshold) - {*BOUNDS, "split", "confidence", "by"}
            if not given and not unknown:
                message = f"sets no bound, so no verdict of {name} can fail anything"
                findings.warn(place, f"{message}; bounds: {', '.join(BOUNDS)}")
            _check_keys(judges[name], threshold, place, findings, known)


def _check_keys(
    judge: Mapping[str, Any],
    threshold: Mapping[str, Any],
    place: Place,
    findings: Findings,
    known: Known,
) -> None:
    name = text(judge, "name")
    if name == PAIRWISE:
        for key in ("min_mean", "min_pass_rate", "max_drop"):
            if threshold.get(key) is not None:
                message = f"cannot apply to {PAIRWISE}, which compares two runs; use min_win_rate"
                findings.problem((*place, key), message)
        return
    if threshold.get("min_win_rate") is not None:
        message = f"only for the judge {PAIRWISE}; use min_pass_rate or min_mean"
        findings.problem((*place, "min_win_rate"), message)
    scale, kind = judge.get("score_range"), judge.get("feedback_type")
    if threshold.get("min_pass_rate") is not None:
        use = f"the values of {name} are numbers"
        if scale is not None or kind in ("int", "float"):
            findings.problem((*place, "min_pass_rate"), f"cannot apply: {use}; use min_mean")
        elif kind is None and is_llm(judge, known) and judge.get("builtin") in (None, ""):
            message = f"cannot be met: {use} unless it sets feedback_type: bool"
            findings.warn((*place, "min_pass_rate"), message)
    bound = threshold.get("min_mean")
    top = _top(scale, kind)
    if is_number(bound) and top is not None and top < bound:
        findings.warn((*place, "min_mean"), f"can never be reached: values of {name} end at {top}")


def _top(scale: Any, kind: Any) -> float | None:
    """The greatest value a judge declares."""
    if kind == "bool":
        return 1
    if isinstance(scale, list) and len(scale) == 2 and is_number(scale[1]):
        return scale[1]
    return None
