"""The reward of a trial: one number in [0, 1], from its verdicts. Pure.

The rules are those of the block ``reward`` of the format (docs/reward.md). Where a judge that is
needed has no value there is no reward, and a reason: a number would be made up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pytest_agent_eval.cases.formulas import Formula, MissingValue, compile_formula
from pytest_agent_eval.errors import ConditionError
from pytest_agent_eval.evidence.aggregate import Aggregate, JudgeInfo, aggregate_judge, case_scores
from pytest_agent_eval.results import TrialResult, Verdict
from pytest_agent_eval.suite.known import PAIRWISE

if TYPE_CHECKING:
    from pytest_agent_eval.suite.models.judge import JudgeConfig
    from pytest_agent_eval.suite.models.reward import RewardConfig

__all__ = ["REWARD", "Reward", "RewardRule", "aggregate_rewards", "normalised", "reward_of"]

REWARD = "reward"
WEIGHTED = "weighted"
DEFAULT_RANGE = (1.0, 5.0)
"""The scale of a number whose judge declares none; that of the format."""


class Reward(NamedTuple):
    """The reward of one trial.

    Attributes:
        value: in [0, 1]; None where there is none.
        reason: why there is none; empty otherwise.
    """

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RewardRule:
    """A block ``reward`` with what it needs to know of the judges. Made by :meth:`of`.

    Attributes:
        config: the block.
        judges: names of the judges of single trials, in the suite's order.
        ranges: judge -> its ``score_range``; those that declare none are left out.
        gating: judges whose value may be a boolean.
        formula: compiled; None for one judge, and for ``weighted``.
    """

    config: RewardConfig
    judges: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float]]
    gating: frozenset[str]
    formula: Formula | None = None

    @classmethod
    def of(cls, config: RewardConfig, judges: Sequence[JudgeConfig]) -> RewardRule:
        """The rule of a suite.

        Raises:
            ConditionError: the formula cannot be compiled; loading a suite finds that.
        """
        own = [judge for judge in judges if judge.kind != PAIRWISE]
        names = tuple(judge.name for judge in own)
        source = config.formula.strip()
        expression = config.judge is None and source != WEIGHTED
        return cls(
            config,
            names,
            {j.name: (j.score_range[0], j.score_range[1]) for j in own if j.score_range},
            frozenset(judge.name for judge in own if _may_be_boolean(judge)),
            compile_formula(source, names) if expression else None,
        )

    @property
    def gate(self) -> bool:
        """Whether a false boolean makes the reward 0; by default unless it is that of one judge."""
        return self.config.judge is None if self.config.gate is None else self.config.gate


def _may_be_boolean(judge: JudgeConfig) -> bool:
    if judge.feedback_type is not None:
        return judge.feedback_type == "bool"
    return judge.score_range is None and judge.kind not in ("llm", "agent")


def reward_of(rule: RewardRule, verdicts: Iterable[Verdict]) -> Reward:
    """The reward of a trial with these verdicts.

    First the gate: a boolean that is false makes it 0, whatever else there is. Then, in [0, 1]:

    - of one judge its value; - ``weighted``: sum(w x) / sum(w) over the judges that were not
      skipped; - a formula: its value, cut off at 0 and 1.

    A boolean counts as 1 or 0, and a number as (x - low) / (high - low) on its judge's scale, or
    as it is where the block says so (``raw``, and one judge without ``normalize``); cut off at 0
    and 1.
    """
    given = {verdict.judge: verdict for verdict in verdicts if verdict.judge in rule.judges}
    if rule.gate:
        if any(verdict.value is False for verdict in given.values()):
            return Reward(0.0)
        for name in rule.judges:
            verdict = given.get(name)
            if name in rule.gating and (verdict is None or verdict.error):
                return Reward(None, f"{_lack(name, verdict)}, and it may be one that gates")
    if rule.config.judge is not None:
        return _of_judge(rule, rule.config.judge, given)
    if rule.formula is None:
        return _weighted(rule, given)
    return _by_formula(rule, rule.formula, given)


def _of_judge(rule: RewardRule, name: str, given: Mapping[str, Verdict]) -> Reward:
    value = _value(rule, name, given)
    return Reward(None, _lack(name, given.get(name))) if value is None else Reward(value)


def _weighted(rule: RewardRule, given: Mapping[str, Verdict]) -> Reward:
    weights = rule.config.weights or dict.fromkeys(rule.judges, 1.0)
    # The largest weight is 1 then, so that no sum or product is too large or too small.
    largest = max(weights.values(), default=0.0)
    shares = {name: weight / largest for name, weight in weights.items() if weight > 0}
    used: list[tuple[float, float]] = []
    for name, share in shares.items():
        value, verdict = _value(rule, name, given), given.get(name)
        if value is not None:
            used.append((share, value))
        elif verdict is None or not verdict.skipped:
            return Reward(None, _lack(name, verdict))
    if not used:
        return Reward(None, "every judge with a weight was skipped")
    total = math.fsum(weight for weight, _ in used)
    return Reward(_cut(math.fsum(weight * value for weight, value in used) / total))


def _by_formula(rule: RewardRule, formula: Formula, given: Mapping[str, Verdict]) -> Reward:
    values = {
        name: value for name in rule.judges if (value := _value(rule, name, given)) is not None
    }
    try:
        return Reward(_cut(formula.value(values)))
    except MissingValue as missing:
        return Reward(None, _lack(missing.name, given.get(missing.name)))
    except ConditionError as error:
        return Reward(None, f"the formula {error}")


def _value(rule: RewardRule, name: str, given: Mapping[str, Verdict]) -> float | None:
    """A judge's value in [0, 1]; None where it has none."""
    verdict = given.get(name)
    value = verdict.value if verdict is not None else None
    if value is None or isinstance(value, bool):
        return None if value is None else float(value)
    one = rule.config.judge is not None
    if (one and not rule.config.normalize) or (not one and name in rule.config.raw):
        return _cut(value)
    return normalised(value, rule.ranges.get(name) or rule.config.score_range or DEFAULT_RANGE)


def normalised(value: int | float, bounds: Sequence[float]) -> float:
    """(value - low) / (high - low), cut off at 0 and 1. The bounds are finite and increase."""
    low, high = bounds
    if value <= low or value >= high:
        return float(value >= high)
    return _cut((value / 2 - low / 2) / (high / 2 - low / 2))  # halves: no difference is infinite


def _cut(value: int | float) -> float:
    return float(min(max(value, 0), 1))


def _lack(name: str, verdict: Verdict | None) -> str:
    """Why there is no value."""
    if verdict is None:
        return f"judge {name} gave no verdict"
    if verdict.error:
        return f"judge {name} is in error"
    return f"judge {name} was skipped"


def aggregate_rewards(
    results: Iterable[TrialResult], confidence: float = 0.95
) -> tuple[Aggregate, ...]:
    """The rewards of one suite's trials by split, aggregated as the numbers of a judge are: the
    unit is the case. ``skipped`` counts cases without one. Empty where no trial was to have one.
    """
    told = [
        TrialResult(
            suite=result.suite,
            case=result.case,
            split=result.split,
            status=result.status,
            group=result.group,
            trial=result.trial,
            variant=result.variant,
            verdicts=(Verdict(REWARD, value=result.reward, skipped=result.reward is None),),
        )
        for result in results
        if result.reward is not None or result.reward_reason
    ]
    if not told:
        return ()
    info = JudgeInfo(REWARD, REWARD, (0.0, 1.0))
    scores = case_scores(told, [info])[REWARD]
    return tuple(aggregate_judge(info, scores, {one.split for one in told}, confidence))
