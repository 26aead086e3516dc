"""From the verdicts of trials to one aggregate a judge and split.

The unit is the case: its trials are averaged first. The cluster is the group: cases of one group
are not independent of each other. Cases of status ``error`` (infrastructure, a broken case) say
nothing about the agent and are in no rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pytest_agent_eval.evidence.effective import wilson_effective
from pytest_agent_eval.evidence.intervals import (
    Interval,
    NoInterval,
    pass_at_k,
    pass_hat_k,
    wilson,
)
from pytest_agent_eval.evidence.means import mean_interval
from pytest_agent_eval.evidence.twins import Twins
from pytest_agent_eval.results import TrialResult, Verdict
from pytest_agent_eval.suite.known import PAIRWISE

__all__ = [
    "SPLITS",
    "Aggregate",
    "CaseScore",
    "JudgeInfo",
    "aggregate",
    "aggregate_judge",
    "case_scores",
    "clusters_of",
    "combine",
    "scores_by_case",
]

Kind = Literal["rate", "mean", "wins", "mixed", "none"]
SPLITS = ("dev", "holdout", "all")
TOO_LARGE = 1e150
"""A value beyond this cannot be squared and summed; a mean over it is not worked out."""


@dataclass(frozen=True, slots=True)
class JudgeInfo:
    """What aggregates and reports need to know of a judge.

    Attributes:
        name: unique in its suite.
        kind: ``check``, ``llm``, ``agent``, ``builtin``, ``function``, ``pairwise`` or a plugin's.
        score_range: lowest and highest value, or None.
        gated: a threshold names it.
        labels: case name -> human value, to calibrate the judge with; None where it has none.
        taught: labelled cases that the judge is shown as examples.
    """

    name: str
    kind: str = ""
    score_range: tuple[float, float] | None = None
    gated: bool = False
    labels: Mapping[str, bool | int | float] | None = None
    taught: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types."""
        data: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "score_range": list(self.score_range) if self.score_range else None,
            "gated": self.gated,
        }
        if self.labels is not None:
            data["labels"] = dict(self.labels)
        if self.taught:
            data["taught"] = sorted(self.taught)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JudgeInfo:
        """The inverse of :meth:`to_dict`."""
        bounds = data.get("score_range")
        return cls(
            data["name"],
            data.get("kind", ""),
            (bounds[0], bounds[1]) if bounds else None,
            bool(data.get("gated")),
            labels if isinstance(labels := data.get("labels"), dict) and labels else None,
            frozenset(data.get("taught") or ()),
        )


@dataclass(slots=True)
class CaseScore:
    """What one judge said about all trials of one case (in one variant).

    Attributes:
        split: ``dev`` or ``holdout``.
        cluster: the group, or the case itself where it has none.
        passes, booleans: trials with the value true; with a boolean.
        total, numbers: sum of the numbers; trials with a number.
        above, below: trials with a number above 0, and below: wins and losses of a comparison.
        skipped, errored: trials whose verdict was skipped or an error.
    """

    split: str
    cluster: tuple[str, str]
    passes: int = 0
    booleans: int = 0
    total: float = 0.0
    numbers: int = 0
    above: int = 0
    below: int = 0
    skipped: int = 0
    errored: int = 0

    def add(self, verdict: Verdict) -> None:
        """Count the verdict of one more trial."""
        value = verdict.value
        if verdict.error:
            self.errored += 1
        elif verdict.skipped or value is None:
            self.skipped += 1
        elif isinstance(value, bool):
            self.booleans += 1
            self.passes += value
        else:
            self.numbers += 1
            self.above += value > 0
            self.below += value < 0
            self.total += value if abs(value) < TOO_LARGE else math.inf

    @property
    def scored(self) -> int:
        """Trials with a value."""
        return self.booleans + self.numbers

    @property
    def error_share(self) -> float | None:
        """Share of errors among the verdicts that are scores or errors; None without any."""
        judged = self.scored + self.errored
        return self.errored / judged if judged else None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What one judge said about the cases of one split.

    Attributes:
        judge: its name.
        split: ``dev``, ``holdout`` or ``all``.
        kind: ``rate`` (booleans), ``mean`` (numbers), ``wins`` (comparisons with a baseline),
            ``mixed`` (booleans and numbers: no value), ``none``.
        value: the pass rate or the win rate (0 to 1), or the mean; None for the other kinds.
        interval: of ``value``; None when there is none.
        no_interval: why there is none; empty otherwise.
        cases: cases with a verdict of this judge, infrastructure errors left out.
        scored, errored: cases with at least one value; with at least one judge error.
        skipped: cases with neither.
        clusters: independent units among the scored cases.
        passed: scored cases of which every trial passed (kind ``rate``).
        error_rate: errors / (errors + scores), a case's trials averaged first; None without any.
        trials: the most trials of a scored case.
        pass_at_k, pass_hat_k: means over the cases with that many trials; None with one trial.
        flaky: scored cases that neither always nor never passed.
        wins, losses, ties: compared trials (kind ``wins``). The win rate is wins / (wins + losses
            + ties), a case's trials averaged first.
        unvalidated: the judge has human labels, and no better agreement with them than chance.
        twins: of the pairs among the cases (kind ``rate``); None where there are none.
    """

    judge: str
    split: str
    kind: Kind = "none"
    value: float | None = None
    interval: Interval | None = None
    no_interval: str = ""
    cases: int = 0
    scored: int = 0
    skipped: int = 0
    errored: int = 0
    clusters: int = 0
    passed: int = 0
    error_rate: float | None = None
    trials: int = 0
    pass_at_k: float | None = None
    pass_hat_k: float | None = None
    flaky: int = 0
    wins: int = 0
    losses: int = 0
    ties: int = 0
    unvalidated: bool = False
    twins: Twins | None = None

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types: what summary.yaml shows of it."""
        data: dict[str, Any] = {
            "mean": self.value if self.kind != "wins" else None,
            "pass_rate": self.value if self.kind == "rate" else None,
            "scored_cases": self.scored,
            "errored_cases": self.errored,
            "skipped_cases": self.skipped,
            "kind": self.kind,
            "interval": self.interval.to_dict() if self.interval else None,
        }
        if self.kind == "wins":
            data["win_rate"] = self.value
            data |= {"wins": self.wins, "losses": self.losses, "ties": self.ties}
        if self.no_interval:
            data["no_interval"] = self.no_interval
        if self.clusters != self.scored:
            data["clusters"] = self.clusters
        if self.trials > 1:
            data["trials"] = self.trials
            if self.kind == "rate":
                data["pass_at_k"] = self.pass_at_k
                data["pass_hat_k"] = self.pass_hat_k
                data["flaky_cases"] = self.flaky
        if self.unvalidated:
            data["unvalidated"] = True
        if self.twins is not None:
            data["twins"] = self.twins.to_dict()
        return data


def case_scores(
    results: Iterable[TrialResult], judges: Sequence[JudgeInfo]
) -> dict[str, list[CaseScore]]:
    """For each judge one score a case that has a verdict of it. One suite's results, each trial
    once, in any order; verdicts of judges that are not in ``judges`` are left out.
    """
    by_judge = scores_by_case(results, judges)
    return {name: list(scores.values()) for name, scores in by_judge.items()}


def scores_by_case(
    results: Iterable[TrialResult], judges: Sequence[JudgeInfo]
) -> dict[str, dict[str, CaseScore]]:
    """For each judge the scores of :func:`case_scores` by the case's name, of a variant with
    ``[variant]`` behind it.
    """
    by_judge: dict[str, dict[str, CaseScore]] = {judge.name: {} for judge in judges}
    for result in results:
        if result.status == "error":
            continue
        unit = f"{result.case}[{result.variant}]" if result.variant else result.case
        for verdict in result.verdicts:
            scores = by_judge.get(verdict.judge)
            if scores is None:
                continue
            score = scores.get(unit)
            if score is None:
                cluster = ("group", result.group) if result.group else ("case", result.case)
                score = scores[unit] = CaseScore(result.split, cluster)
            score.add(verdict)
    return by_judge


def aggregate(
    results: Iterable[TrialResult], judges: Sequence[JudgeInfo], *, confidence: float = 0.95
) -> tuple[Aggregate, ...]:
    """One aggregate a judge and split, judges in their order, splits ``dev``, ``holdout``,
    ``all``. A split without any case of the suite is left out; ``all`` is always there.
    """
    results = list(results)
    scores = case_scores(results, judges)
    present = {result.split for result in results}
    return tuple(
        found
        for judge in judges
        for found in aggregate_judge(judge, scores[judge.name], present, confidence)
    )


def aggregate_judge(
    judge: JudgeInfo, scores: Sequence[CaseScore], present: set[str], confidence: float
) -> list[Aggregate]:
    """The aggregates of one judge; ``present`` names the splits that have a case."""
    found = [
        combine(judge, split, [score for score in scores if score.split == split], confidence)
        for split in SPLITS
        if split in present
    ]
    if len(found) == 1:
        # One half alone: "all" is the same cases, and its interval is not worked out twice.
        return [*found, replace(found[0], split="all")]
    return [*found, combine(judge, "all", scores, confidence)]


def combine(
    judge: JudgeInfo, split: str, scores: Sequence[CaseScore], confidence: float = 0.95
) -> Aggregate:
    """Aggregate the given scores, whatever split they are from; ``split`` is only a label."""
    scored = [score for score in scores if score.scored]
    shares = [share for score in scores if (share := score.error_share) is not None]
    common = Aggregate(
        judge=judge.name,
        split=split,
        cases=len(scores),
        scored=len(scored),
        skipped=sum(1 for score in scores if not score.scored and not score.errored),
        errored=sum(1 for score in scores if score.errored),
        clusters=len({score.cluster for score in scored}),
        error_rate=math.fsum(shares) / len(shares) if shares else None,
        trials=max((score.scored for score in scored), default=0),
    )
    booleans = any(score.booleans for score in scored)
    numbers = any(score.numbers for score in scored)
    if judge.kind == PAIRWISE and scored:
        return _wins(common, scored, confidence)
    if booleans and numbers:
        return replace(common, kind="mixed", no_interval="booleans and numbers are mixed")
    if booleans:
        return _rate(common, scored, confidence)
    if numbers:
        return _mean(common, judge, scored, confidence)
    return replace(common, no_interval="no case was scored")


def _rate(common: Aggregate, scored: Sequence[CaseScore], confidence: float) -> Aggregate:
    shares = [score.passes / score.booleans for score in scored]
    k = common.trials
    repeated = [score for score in scored if score.booleans == k] if k > 1 else []
    chances = [pass_at_k(k, score.passes, k) for score in repeated]
    certainties = [pass_hat_k(k, score.passes, k) for score in repeated]
    return replace(
        _share(common, scored, shares, confidence),
        kind="rate",
        passed=sum(1 for share in shares if share == 1.0),
        flaky=sum(1 for share in shares if 0.0 < share < 1.0),
        pass_at_k=math.fsum(chances) / len(chances) if chances else None,
        pass_hat_k=math.fsum(certainties) / len(certainties) if certainties else None,
    )


def _wins(common: Aggregate, scored: Sequence[CaseScore], confidence: float) -> Aggregate:
    shares = [score.above / score.scored for score in scored]
    wins, losses = sum(score.above for score in scored), sum(score.below for score in scored)
    return replace(
        _share(common, scored, shares, confidence),
        kind="wins",
        wins=wins,
        losses=losses,
        ties=sum(score.scored for score in scored) - wins - losses,
    )


def _share(
    common: Aggregate, scored: Sequence[CaseScore], shares: Sequence[float], confidence: float
) -> Aggregate:
    """The mean of the cases' shares, with its interval."""
    total = math.fsum(shares)
    interval: Interval | NoInterval
    if common.clusters == common.scored and all(share in (0.0, 1.0) for share in shares):
        interval = wilson(round(total), len(shares), confidence)
    else:
        outcomes = sum(score.scored for score in scored)
        clusters = clusters_of(scored, shares)
        interval = wilson_effective(clusters, confidence, observations=outcomes)
    return replace(
        common,
        value=total / len(shares),
        interval=interval if isinstance(interval, Interval) else None,
        no_interval=interval.reason if isinstance(interval, NoInterval) else "",
    )


def _mean(
    common: Aggregate, judge: JudgeInfo, scored: Sequence[CaseScore], confidence: float
) -> Aggregate:
    means = [score.total / score.numbers for score in scored]
    if not all(map(math.isfinite, means)):
        return replace(common, kind="mean", no_interval="a value is too large to average")
    scale = judge.score_range
    if scale and not all(scale[0] <= mean <= scale[1] for mean in means):
        scale = None  # stored before the scale was changed
    interval = mean_interval(clusters_of(scored, means), confidence, scale)
    return replace(
        common,
        kind="mean",
        value=math.fsum(means) / len(means),
        interval=interval if isinstance(interval, Interval) else None,
        no_interval=interval.reason if isinstance(interval, NoInterval) else "",
    )


def clusters_of(scored: Sequence[CaseScore], values: Sequence[float]) -> list[tuple[float, int]]:
    """For each cluster the sum of its cases' values, and the number of its cases."""
    members: dict[tuple[str, str], list[float]] = {}
    for score, value in zip(scored, values, strict=True):
        members.setdefault(score.cluster, []).append(value)
    return [(math.fsum(found), len(found)) for found in members.values()]
