"""The summary of a run: per suite its aggregates, gates, counts and cost. Pure.

Variants are there to be compared, and a case in two variants is not two cases: each variant of a
suite is summarised by itself, with gates of its own.

:func:`summarise` is called once, after the last case; reports render what it returns, and
``Summary.to_yaml_dict`` is what ``summary.yaml`` holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_agent_eval.evidence.aggregate import (
    Aggregate,
    CaseScore,
    JudgeInfo,
    aggregate_judge,
    case_scores,
    combine,
    scores_by_case,
)
from pytest_agent_eval.evidence.calibration import Calibration, calibrate
from pytest_agent_eval.evidence.changes import changes
from pytest_agent_eval.evidence.claims import claims
from pytest_agent_eval.evidence.comparison import Comparison, adjusted, compare
from pytest_agent_eval.evidence.gates import Coverage, Gate, GateMode, decide_gates
from pytest_agent_eval.evidence.looks import Looks
from pytest_agent_eval.evidence.outcomes import CaseOutcome, PassRule, case_outcomes
from pytest_agent_eval.evidence.reward import aggregate_rewards
from pytest_agent_eval.evidence.twins import twins_of
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.suite.known import PAIRWISE

__all__ = [
    "Against",
    "SuiteInfo",
    "SuiteSummary",
    "Summary",
    "Totals",
    "calibrations",
    "comparison",
    "summarise",
    "titles",
]

HALVES = ("dev", "holdout")


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    """What a summary needs to know of a suite, or of one variant of it, in values that can be
    stored as JSON.

    Attributes:
        key: as in ``TrialResult.suite``.
        name: shown in reports.
        variant: as in ``TrialResult.variant``: which of its variants this is, or None.
        file: its eval.yaml, relative to the root directory.
        digest: of that file.
        judges: in the suite's order.
        thresholds: judge name -> key -> bound or modifier.
        total: cases in the dataset after the suite's own filters, by split.
        selected: cases that the user's selection left, by split.
        half: the split that was asked for, or None.
        without_group: cases that lack the annotation named by ``split.by``.
        pass_rule: ``execution.pass``: how a case's trials make its outcome.
        baseline: name of the run that this one is compared with, or empty.
        sealed: results of the holdout half are shown as aggregates only.
        revealed: the half is sealed, and ``--agent-eval-reveal`` has opened it.
        ledger: where looks at the holdout half are recorded, relative to the root directory, with
            slashes; empty where they are not.
        pairs: groups with exactly two cases in the dataset, sorted.
        runner: its type.
        model: of the agent, as it was asked for; empty where none was.
    """

    key: str
    name: str
    variant: str | None = None
    file: str = ""
    digest: str = ""
    judges: tuple[JudgeInfo, ...] = ()
    thresholds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    total: Mapping[str, int] = field(default_factory=dict)
    selected: Mapping[str, int] = field(default_factory=dict)
    half: str | None = None
    without_group: int = 0
    pass_rule: PassRule = "all"
    baseline: str = ""
    sealed: bool = False
    revealed: bool = False
    ledger: str = ""
    pairs: tuple[str, ...] = ()
    runner: str = ""
    model: str = ""

    @property
    def label(self) -> str:
        """The name, with ``[variant]`` where it is one."""
        return f"{self.name} [{self.variant}]" if self.variant else self.name

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types; :meth:`from_dict` reads it back."""
        return {
            "key": self.key,
            "name": self.name,
            "variant": self.variant,
            "file": self.file,
            "digest": self.digest,
            "judges": [judge.to_dict() for judge in self.judges],
            "thresholds": {name: dict(keys) for name, keys in self.thresholds.items()},
            "total": dict(self.total),
            "selected": dict(self.selected),
            "half": self.half,
            "without_group": self.without_group,
            "pass_rule": self.pass_rule,
            "baseline": self.baseline,
            "sealed": self.sealed,
            "revealed": self.revealed,
            "ledger": self.ledger,
            "pairs": list(self.pairs),
            "runner": self.runner,
            "model": self.model,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SuiteInfo:
        """The inverse of :meth:`to_dict`; unknown keys are ignored."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["judges"] = tuple(JudgeInfo.from_dict(item) for item in known.get("judges", ()))
        known["pairs"] = tuple(map(str, known.get("pairs") or ()))
        return cls(**known)


def titles(infos: Iterable[SuiteInfo]) -> dict[tuple[str, str | None], str]:
    """Key and variant of each suite -> what it is called beside the others: its label, and behind
    the name its file where another suite has the same name.
    """
    infos = list(infos)
    files: dict[str, set[str]] = {}
    for info in infos:
        files.setdefault(info.name, set()).add(info.key)
    found = {}
    for info in infos:
        name = info.name if len(files[info.name]) == 1 else f"{info.name} ({info.key})"
        found[info.key, info.variant] = replace(info, name=name).label
    return found


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over trials. Unknown is not zero: how many trials are unknown is counted.

    Attributes:
        trials: how many.
        cost_usd: sum of the known costs; None when none is known.
        unknown_costs: trials that did not say what they cost.
        input_tokens, output_tokens, cache_read_tokens, cache_create_tokens, num_turns: sums of
            what is known; None when nothing is.
        duration_s, judging_s: seconds of agents' wall clock; of judging.
        judge_calls: calls of models by judges; ``judge_recorded`` of them read from recordings.
        judge_cost_usd: US dollars of the others; None when one is unknown.
        answer_calls, answer_recorded, answer_cost_usd: the same of the model that answers agents'
            questions.
    """

    trials: int = 0
    cost_usd: float | None = None
    unknown_costs: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_create_tokens: int | None = None
    num_turns: int | None = None
    duration_s: float = 0.0
    judging_s: float = 0.0
    judge_calls: int = 0
    judge_recorded: int = 0
    judge_cost_usd: float | None = 0.0
    answer_calls: int = 0
    answer_recorded: int = 0
    answer_cost_usd: float | None = 0.0

    @classmethod
    def of(cls, results: Iterable[TrialResult]) -> Totals:
        """Sum over the trials that were started."""
        started = [result for result in results if result.execution is not None]
        costs = [r.usage.cost_usd for r in started if r.usage.cost_usd is not None]
        asked = [verdict.asked for r in started for verdict in r.verdicts if verdict.asked]
        answers = [r.execution.asked for r in started if r.execution and r.execution.asked]
        return cls(
            trials=len(started),
            cost_usd=math.fsum(costs) if costs else None,
            unknown_costs=len(started) - len(costs),
            input_tokens=_sum(r.usage.input_tokens for r in started),
            output_tokens=_sum(r.usage.output_tokens for r in started),
            cache_read_tokens=_sum(r.usage.cache_read_tokens for r in started),
            cache_create_tokens=_sum(r.usage.cache_create_tokens for r in started),
            num_turns=_sum(r.usage.num_turns for r in started),
            duration_s=math.fsum(r.duration_s for r in started),
            judging_s=math.fsum(r.judging_s for r in started),
            judge_calls=sum(one.get("calls", 0) for one in asked),
            judge_recorded=sum(one.get("recorded", 0) for one in asked),
            judge_cost_usd=_all_known(one.get("cost_usd") for one in asked),
            answer_calls=sum(one.get("calls", 0) for one in answers),
            answer_recorded=sum(one.get("recorded", 0) for one in answers),
            answer_cost_usd=_all_known(one.get("cost_usd") for one in answers),
        )

    @classmethod
    def sum(cls, several: Iterable[Totals]) -> Totals:
        """The totals of all trials of several."""
        parts = list(several)
        costs = [part.cost_usd for part in parts if part.cost_usd is not None]
        return cls(
            trials=sum(part.trials for part in parts),
            cost_usd=math.fsum(costs) if costs else None,
            unknown_costs=sum(part.unknown_costs for part in parts),
            input_tokens=_sum(part.input_tokens for part in parts),
            output_tokens=_sum(part.output_tokens for part in parts),
            cache_read_tokens=_sum(part.cache_read_tokens for part in parts),
            cache_create_tokens=_sum(part.cache_create_tokens for part in parts),
            num_turns=_sum(part.num_turns for part in parts),
            duration_s=math.fsum(part.duration_s for part in parts),
            judging_s=math.fsum(part.judging_s for part in parts),
            judge_calls=sum(part.judge_calls for part in parts),
            judge_recorded=sum(part.judge_recorded for part in parts),
            judge_cost_usd=_all_known(part.judge_cost_usd for part in parts),
            answer_calls=sum(part.answer_calls for part in parts),
            answer_recorded=sum(part.answer_recorded for part in parts),
            answer_cost_usd=_all_known(part.answer_cost_usd for part in parts),
        )

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["duration_s"] = round(self.duration_s, 3)
        data["judging_s"] = round(self.judging_s, 3)
        return data

    def metrics(self) -> dict[str, float | None]:
        """``run_metrics`` of summary.yaml: ratios, None where a part is unknown or zero.

        The cache hit rate is the share of input tokens that were read from the cache.
        """
        tokens = _sum((self.input_tokens, self.output_tokens))
        read_in = _sum((self.input_tokens, self.cache_read_tokens, self.cache_create_tokens))
        millions = tokens / 1e6 if tokens else None
        return {
            "cost_per_turn_usd": _ratio(self.cost_usd, self.num_turns),
            "output_tokens_per_turn": _ratio(self.output_tokens, self.num_turns),
            "cache_hit_rate": _ratio(self.cache_read_tokens, read_in),
            "cost_per_mtok_usd": _ratio(self.cost_usd, millions),
        }


def _all_known(costs: Iterable[float | None]) -> float | None:
    found = [*costs]
    return None if None in found else math.fsum(cost for cost in found if cost is not None)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


@dataclass(frozen=True, slots=True)
class Against:
    """The run that a run is compared with.

    Attributes:
        name: of that run.
        results: of it, each trial once; of other suites too.
        header: its ``run.json``.
        own_header: ``run.json`` of the run that is summarised.
    """

    name: str
    results: Sequence[TrialResult]
    header: Mapping[str, Any] = field(default_factory=dict)
    own_header: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteSummary:
    """What one suite, or one variant of it, came to.

    Attributes:
        info: the suite, or the variant.
        cases: its cases in the order of the results.
        aggregates: judges in their order, each with ``dev``, ``holdout`` and ``all``.
        gates: in the order of ``thresholds``.
        statuses: status -> cases, only those that occur.
        totals: cost, tokens, time; attempts that were repeated are included.
        coverage: cases in the dataset, selected, with a result.
        claims: what the sample can and cannot show, one sentence each.
        calibrations: of the judges with human labels, in their order.
        comparisons: of the judges with those of the baseline, in their order, each with ``dev``,
            ``holdout`` and ``all``; none without a baseline.
        changes: what else is different in the baseline, one sentence each.
        looks: how often the holdout half has been looked at; None where no case of it ran or looks
            are not recorded. Of a suite with variants the first one has it.
        rewards: the mean reward of ``dev``, ``holdout`` and ``all``; empty without ``reward``.
    """

    info: SuiteInfo
    cases: tuple[CaseOutcome, ...]
    aggregates: tuple[Aggregate, ...]
    gates: tuple[Gate, ...]
    statuses: Mapping[str, int]
    totals: Totals
    coverage: Coverage
    claims: tuple[str, ...]
    calibrations: tuple[Calibration, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    changes: tuple[str, ...] = ()
    looks: Looks | None = None
    rewards: tuple[Aggregate, ...] = ()

    @property
    def pairwise(self) -> Aggregate | None:
        """What comparing all cases with the baseline came to; None where nothing was compared."""
        for found in self.aggregates:
            if found.kind == "wins" and found.split == "all":
                return found
        return None

    @property
    def unvalidated(self) -> frozenset[str]:
        """Names of the judges that agree with their human labels no better than chance."""
        return frozenset(found.judge for found in self.calibrations if not found.validated)

    @property
    def complete(self) -> bool:
        """Every selected case has a result."""
        done, wanted = self.coverage.finished, self.coverage.selected
        return all(done.get(half, 0) >= count for half, count in wanted.items())

    def to_yaml_dict(self) -> dict[str, Any]:
        """The suite's part of summary.yaml, where it has no variants."""
        overall = [found for found in self.aggregates if found.split == "all"]
        halves = [half for half in HALVES if any(a.split == half for a in self.aggregates)]
        kinds = {judge.name: judge.kind for judge in self.info.judges}
        data: dict[str, Any] = {
            "suite": self.info.name,
            "file": self.info.file,
            "complete": self.complete,
            "judges": {found.judge: found.to_dict() for found in overall},
            "splits": {
                half: {a.judge: a.to_dict() for a in self.aggregates if a.split == half}
                for half in halves
            },
            "gates": [gate.to_dict() for gate in self.gates],
            "status": dict(self.statuses),
            "coverage": {
                "total": dict(self.coverage.total),
                "selected": dict(self.coverage.selected),
                "finished": dict(self.coverage.finished),
                "left_out": dict(self.coverage.left_out),
            },
            "notes": list(self.claims),
            "usage": self.totals.to_dict(),
            "run_metrics": self.totals.metrics(),
            "cases": {case.label: case.to_dict() for case in self.cases},
            "per_case": {case.label: self._verdicts(case, kinds) for case in self.cases},
        }
        if self.pairwise is not None:
            data["pairwise"] = _comparison(self.pairwise, self.info.baseline)
        if self.comparisons:
            data["comparison"] = self.comparison_dict()
        if self.looks is not None or self.info.sealed:
            looks = self.looks.to_dict() if self.looks is not None else {}
            data["holdout"] = {"sealed": self.info.sealed, **looks}
        if self.calibrations:
            data["calibration"] = {found.judge: found.to_dict() for found in self.calibrations}
        if self.rewards:
            data["reward"] = {found.split: _reward(found) for found in self.rewards}
        return data

    def comparison_dict(self) -> dict[str, Any]:
        """``comparison`` of summary.yaml: JSON types."""
        halves = dict.fromkeys(found.split for found in self.comparisons if found.split != "all")
        return {
            "baseline": self.info.baseline,
            "changes": list(self.changes),
            "judges": {c.judge: c.to_dict() for c in self.comparisons if c.split == "all"},
            "splits": {
                half: {c.judge: c.to_dict() for c in self.comparisons if c.split == half}
                for half in halves
            },
        }

    def _verdicts(self, case: CaseOutcome, kinds: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        verdicts = case.verdicts(kinds)
        for name in self.unvalidated & verdicts.keys():
            verdicts[name]["unvalidated"] = True
        return verdicts


def _reward(found: Aggregate) -> dict[str, Any]:
    """``reward`` of summary.yaml, for one split."""
    data: dict[str, Any] = {
        "mean": found.value,
        "interval": found.interval.to_dict() if found.interval else None,
        "cases": found.scored,
        "without": found.skipped,
    }
    return data | ({"no_interval": found.no_interval} if found.no_interval else {})


def _comparison(found: Aggregate, baseline: str) -> dict[str, Any]:
    """``pairwise`` of summary.yaml: run b is the baseline. Tools for this format know these names,
    but for the win rate and its interval.
    """
    return {
        "run_b": baseline,
        "cases_compared": found.scored,
        "wins_a": found.wins,
        "wins_b": found.losses,
        "ties": found.ties,
        "errors": found.errored,
        "skipped": found.skipped,
        "win_rate": found.value,
        "interval": found.interval.to_dict() if found.interval else None,
    }


_OF_A_VARIANT = (
    "complete",
    "judges",
    "splits",
    "status",
    "coverage",
    "notes",
    "usage",
    "run_metrics",
    "calibration",
    "reward",
    "pairwise",
    "comparison",
)


def _variants_dict(variants: Sequence[SuiteSummary]) -> dict[str, Any]:
    """The part of summary.yaml of a suite with variants: what is counted or listed for all of
    them, and what is estimated for each by itself.
    """
    parts = [variant.to_yaml_dict() for variant in variants]
    statuses: dict[str, int] = {}
    for variant in variants:
        for status, number in variant.statuses.items():
            statuses[status] = statuses.get(status, 0) + number
    totals = Totals.sum(variant.totals for variant in variants)
    return {
        "suite": variants[0].info.name,
        "file": variants[0].info.file,
        "complete": all(variant.complete for variant in variants),
        "variants": {
            str(variant.info.variant): {key: part[key] for key in _OF_A_VARIANT if key in part}
            for variant, part in zip(variants, parts, strict=True)
        },
        "gates": [gate for part in parts for gate in part["gates"]],
        "status": statuses,
        "usage": totals.to_dict(),
        "run_metrics": totals.metrics(),
        **({"holdout": parts[0]["holdout"]} if "holdout" in parts[0] else {}),
        "cases": {label: case for part in parts for label, case in part["cases"].items()},
        "per_case": {label: case for part in parts for label, case in part["per_case"].items()},
    }


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to.

    Attributes:
        suites: in the order they were given; of a suite with variants one entry for each.
        interrupted: the session ended before its last case.
    """

    suites: tuple[SuiteSummary, ...]
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """The session ended by itself and every selected case has a result."""
        return not self.interrupted and all(suite.complete for suite in self.suites)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates of all suites."""
        return tuple(gate for suite in self.suites for gate in suite.gates)

    @property
    def missed(self) -> tuple[Gate, ...]:
        """The gates that fail the session."""
        return tuple(gate for gate in self.gates if gate.outcome == "missed")

    def to_yaml_dict(self, run_id: str = "") -> dict[str, Any]:
        """What summary.yaml holds: JSON types only.

        One suite is written flat, in the shape that tools for this format read; several are
        written below ``suites``, by key.
        """
        head: dict[str, Any] = {"run_id": run_id, "complete": self.complete}
        by_key: dict[str, list[SuiteSummary]] = {}
        for suite in self.suites:
            by_key.setdefault(suite.info.key, []).append(suite)
        parts = {
            key: found[0].to_yaml_dict()
            if len(found) == 1 and found[0].info.variant is None
            else _variants_dict(found)
            for key, found in by_key.items()
        }
        if len(parts) == 1:
            return {**head, **next(iter(parts.values())), "complete": self.complete}
        return {**head, "suites": parts}


def summarise(
    infos: Sequence[SuiteInfo],
    results: Iterable[TrialResult],
    *,
    gate_mode: GateMode = "complete",
    confidence: float = 0.95,
    superseded: Iterable[TrialResult] = (),
    interrupted: bool = False,
    against: Against | None = None,
) -> Summary:
    """Aggregate results and decide gates, suite by suite and variant by variant.

    Args:
        infos: the suites, and of one with variants each of them; other results are left out.
        results: each trial once, in any order (of one trial the last attempt).
        gate_mode: whether gates are decided when part of a suite did not run.
        confidence: of the intervals shown; a gate may name its own.
        superseded: earlier attempts of trials: their cost counts, their verdicts do not.
        interrupted: the session ended before its last case.
        against: the run to compare with.
    """
    keys = [(info.key, info.variant) for info in infos]
    last: dict[tuple[str, str | None], list[TrialResult]] = {key: [] for key in keys}
    earlier: dict[tuple[str, str | None], list[TrialResult]] = {key: [] for key in keys}
    for found, groups in ((results, last), (superseded, earlier)):
        for result in found:
            if (key := (result.suite, result.variant)) in groups:
                groups[key].append(result)
    suites = [
        _suite(info, last[key], earlier[key], gate_mode, confidence, against)
        for info, key in zip(infos, keys, strict=True)
    ]
    return Summary(_adjusted(suites), interrupted)


def _adjusted(suites: Sequence[SuiteSummary]) -> tuple[SuiteSummary, ...]:
    """The suites with the p values of their variants' comparisons adjusted for each other."""
    by_key: dict[str, list[SuiteSummary]] = {}
    for suite in suites:
        by_key.setdefault(suite.info.key, []).append(suite)
    found = {
        key: iter(adjusted([suite.comparisons for suite in variants]))
        for key, variants in by_key.items()
    }
    return tuple(replace(suite, comparisons=next(found[suite.info.key])) for suite in suites)


def calibrations(
    info: SuiteInfo, results: Iterable[TrialResult], confidence: float = 0.95
) -> tuple[Calibration, ...]:
    """Compare the suite's judges that have labels with them; other suites' results are left out."""
    labelled = [judge for judge in info.judges if judge.labels]
    if not labelled:
        return ()
    own = [r for r in results if (r.suite, r.variant) == (info.key, info.variant)]
    return tuple(
        calibrate(one.name, one.labels or {}, own, confidence, taught=one.taught)
        for one in labelled
    )


def comparison(
    info: SuiteInfo, results: Iterable[TrialResult], confidence: float = 0.95
) -> Aggregate | None:
    """What comparing a suite's cases with the baseline came to; None where nothing was compared."""
    judges = [judge for judge in info.judges if judge.kind == PAIRWISE]
    if not judges:
        return None
    own = [r for r in results if (r.suite, r.variant) == (info.key, info.variant)]
    found = combine(judges[0], "all", case_scores(own, judges)[judges[0].name], confidence)
    return found if found.kind == "wins" else None


def _suite(
    info: SuiteInfo,
    results: Sequence[TrialResult],
    earlier: Sequence[TrialResult],
    mode: GateMode,
    confidence: float,
    against: Against | None,
) -> SuiteSummary:
    cases = case_outcomes(results, info.pass_rule)
    finished, left_out = dict.fromkeys(HALVES, 0), dict.fromkeys(HALVES, 0)
    statuses: dict[str, int] = {}
    for case in cases:
        statuses[case.status] = statuses.get(case.status, 0) + 1
        counts = left_out if case.left_out else finished
        counts[case.split] = counts.get(case.split, 0) + 1
    coverage = Coverage(info.total, info.selected, finished, info.half, left_out)
    by_case = scores_by_case(results, info.judges)
    scores = {name: [*found.values()] for name, found in by_case.items()}
    present = {case.split for case in cases}
    compared = calibrations(info, results, confidence)
    unvalidated = {found.judge for found in compared if not found.validated}
    pairs = frozenset(info.pairs)
    aggregates = tuple(
        _with_twins(
            replace(found, unvalidated=judge.name in unvalidated),
            scores[judge.name],
            pairs,
            confidence,
        )
        for judge in info.judges
        for found in aggregate_judge(judge, scores[judge.name], present, confidence)
    )
    old = [r for r in against.results if _belongs(r, info)] if against is not None else []
    gates = decide_gates(
        info.key,
        info.thresholds,
        info.judges,
        by_case,
        coverage,
        mode=mode,
        baseline=info.baseline,
        old=scores_by_case(old, info.judges),
        parts=_parts(info, cases),
    )
    gates = tuple(
        replace(gate, variant=info.variant, unvalidated=gate.judge in unvalidated) for gate in gates
    )
    return SuiteSummary(
        info=info,
        cases=cases,
        aggregates=aggregates,
        gates=gates,
        statuses=statuses,
        totals=Totals.of([*results, *earlier]),
        coverage=coverage,
        claims=claims(aggregates, info.thresholds),
        calibrations=compared,
        comparisons=compare(
            results, old, info.judges, confidence=confidence, unvalidated=unvalidated
        )
        if old
        else (),
        changes=_changes(info, results, old, against),
        rewards=aggregate_rewards(results, confidence),
    )


def _belongs(result: TrialResult, info: SuiteInfo) -> bool:
    return (result.suite, result.variant) == (info.key, info.variant)


def _changes(
    info: SuiteInfo,
    results: Sequence[TrialResult],
    old: Sequence[TrialResult],
    against: Against | None,
) -> tuple[str, ...]:
    if against is None or not results:
        return ()
    if not old:
        what = f"variant {info.variant}" if info.variant else "suite"
        return (f"the baseline has no result of this {what}",)
    return changes(results, old, against.own_header, against.header, suite=info.key)


def _parts(info: SuiteInfo, cases: Sequence[CaseOutcome]) -> dict[str, dict[str, str]]:
    """For each ``by`` of a threshold the value of each case that has one."""
    found: dict[str, dict[str, str]] = {}
    for keys in info.thresholds.values():
        by = keys.get("by")
        if by and by not in found:
            told = [(case.label, case.trials[0]) for case in cases]
            values = {
                label: trial.category if by == "category" else trial.tags.get(by)
                for label, trial in told
            }
            found[by] = {label: value for label, value in values.items() if value}
    return found


def _with_twins(
    found: Aggregate, scores: Sequence[CaseScore], pairs: frozenset[str], confidence: float
) -> Aggregate:
    if found.kind != "rate" or not pairs:
        return found
    own = [score for score in scores if found.split in ("all", score.split)]
    return replace(found, twins=twins_of(own, pairs, confidence))
