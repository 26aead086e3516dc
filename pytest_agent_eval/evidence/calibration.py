"""A judge beside the people who labelled the same cases: whether its numbers mean anything."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from pytest_agent_eval.evidence.agreement import (
    Estimate,
    chance_agreement,
    cohen_kappa,
    effective_size,
    observed_agreement,
    quadratic_kappa,
    spearman,
)
from pytest_agent_eval.results import TrialResult, Value

__all__ = ["Calibration", "Label", "calibrate"]

Label = bool | int | float
"""What a person said about a case."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far a judge and its human labels agree.

    Attributes:
        judge: its name.
        kind: ``bool`` or ``number``: what the labels are.
        labels: how many there are.
        compared: cases with a label and a value of the judge.
        units: independent ones among them; cases of one group are not.
        taught, not_run, skipped, errored, unlike: labelled cases that are left out because the
            judge was shown them as examples, they have no result, the judge was skipped, the judge
            or the case is an error, or the judge's value is a number where the label is a boolean
            or the other way round.
        agreement: share of compared cases with equal values.
        chance: the agreement to be expected of independent raters; None without a case.
        kappa: Cohen's of booleans, quadratically weighted of numbers.
        spearman: rank correlation; of booleans None.
        table: ``(label, value, cases)``, in the order of the labels, then of the values.
        disagreeing: names of the cases where the two differ, sorted.
    """

    judge: str
    kind: Literal["bool", "number"]
    labels: int
    compared: int
    units: int
    agreement: Estimate
    chance: float | None
    kappa: Estimate
    spearman: Estimate | None = None
    taught: int = 0
    not_run: int = 0
    skipped: int = 0
    errored: int = 0
    unlike: int = 0
    table: tuple[tuple[Label, Label, int], ...] = ()
    disagreeing: tuple[str, ...] = field(default=())

    @property
    def deciding(self) -> Estimate:
        """What decides: kappa of booleans, the rank correlation of numbers."""
        return self.spearman or self.kappa

    @property
    def validated(self) -> bool:
        """The interval of what decides lies above 0: chance alone does not explain it."""
        return self.deciding.above_zero

    @property
    def reason(self) -> str:
        """Why the judge is not validated; empty if it is."""
        found = self.deciding
        if found.interval is None:
            return found.reason
        if found.interval.high < 0.0:
            return "it agrees less than chance would"
        return "" if self.validated else "the interval includes chance"

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types: what summary.yaml shows of it."""
        data: dict[str, Any] = {
            "validated": self.validated,
            "labels": self.labels,
            "compared_cases": self.compared,
            "independent_cases": self.units,
            "taught_cases": self.taught,
            "not_run_cases": self.not_run,
            "skipped_cases": self.skipped,
            "errored_cases": self.errored,
            "unlike_cases": self.unlike,
            "agreement": self.agreement.to_dict(),
            "chance_agreement": self.chance,
            "kappa" if self.kind == "bool" else "weighted_kappa": self.kappa.to_dict(),
        }
        if self.spearman is not None:
            data["spearman"] = self.spearman.to_dict()
        if self.reason:
            data["reason"] = self.reason
        data["confusion"] = [
            {"label": label, "judge": value, "cases": cases} for label, value, cases in self.table
        ]
        data["disagreeing"] = list(self.disagreeing)
        return data


def calibrate(
    judge: str,
    labels: Mapping[str, Label],
    results: Iterable[TrialResult],
    confidence: float = 0.95,
    *,
    taught: Collection[str] = (),
) -> Calibration:
    """Compare a judge's verdicts with labels.

    Args:
        judge: its name.
        labels: case name -> value; at least one, all booleans or all numbers.
        results: of one suite (of one variant), each trial once, in any order.
        confidence: of the intervals.
        taught: cases that the judge is shown as examples: what it says of others like them is no
            news, so that they are left out.

    A case's value is what the majority of its trials say (a tie is false), or the median of their
    numbers. Infrastructure errors are no verdicts.
    """
    kind: Literal["bool", "number"] = (
        "bool" if all(isinstance(label, bool) for label in labels.values()) else "number"
    )
    trials: dict[str, list[TrialResult]] = {}
    for result in results:
        if result.case in labels:
            trials.setdefault(result.case, []).append(result)
    human: list[Label] = []
    said: list[Label] = []
    clusters: list[object] = []
    disagreeing: list[str] = []
    out: Counter[str] = Counter()
    for name in sorted(labels):
        if name in taught:
            out["taught"] += 1
            continue
        value = _case_value(judge, trials.get(name, ()), kind)
        if isinstance(value, str):
            out[value] += 1
            continue
        label = labels[name]
        human.append(label)
        said.append(value)
        group = trials[name][0].group
        clusters.append(("group", group) if group else ("case", name))
        if not math.isclose(label, value, rel_tol=1e-9, abs_tol=1e-12):
            disagreeing.append(name)
    units = effective_size(clusters)
    numeric = kind == "number"
    kappa = quadratic_kappa if numeric else cohen_kappa
    return Calibration(
        judge=judge,
        kind=kind,
        labels=len(labels),
        compared=len(human),
        units=units,
        agreement=observed_agreement(human, said, units, confidence),
        chance=chance_agreement(human, said) if human else None,
        kappa=kappa(human, said, units, confidence),
        spearman=spearman(human, said, units, confidence) if numeric else None,
        taught=out["taught"],
        not_run=out["not_run"],
        skipped=out["skipped"],
        errored=out["errored"],
        unlike=out["unlike"],
        table=tuple(
            (label, value, count)
            for (label, value), count in sorted(Counter(zip(human, said, strict=True)).items())
        ),
        disagreeing=tuple(disagreeing),
    )


def _case_value(
    judge: str, trials: Sequence[TrialResult], kind: Literal["bool", "number"]
) -> Label | Literal["not_run", "skipped", "errored", "unlike"]:
    """The value of a case, or why it has none."""
    values: list[Value] = []
    errors = False
    for trial in trials:
        errors = errors or trial.status == "error"
        for verdict in trial.verdicts if trial.status != "error" else ():
            if verdict.judge == judge:
                errors = errors or bool(verdict.error)
                values.append(None if verdict.error or verdict.skipped else verdict.value)
    known = [value for value in values if value is not None]
    if not known:
        if errors:
            return "errored"
        return "skipped" if trials and not _unstarted(trials) else "not_run"
    if any(isinstance(value, bool) != (kind == "bool") for value in known):
        return "unlike"
    if kind == "bool":
        return 2 * sum(known) > len(known)
    if not all(map(_finite, known)):
        return "errored"
    return median(known)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the range of float
        return False


def _unstarted(trials: Sequence[TrialResult]) -> bool:
    """None of them was carried out: the budget was spent, or the case was skipped."""
    return all(trial.status == "skipped" and not trial.verdicts for trial in trials)
