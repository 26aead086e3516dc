"""``reward``: one number in [0, 1] a trial, for training."""

from __future__ import annotations

from pydantic import Field

from pytest_agent_eval.suite.models.base import (
    Amount,
    Block,
    Items,
    Named,
    NonEmpty,
    ScoreRange,
)

__all__ = ["RewardConfig"]


class RewardConfig(Block):
    """One number in [0, 1] a trial: of one judge, or of a formula over several."""

    judge: NonEmpty | None = Field(
        None, description="The judge whose value is the reward; excludes formula, weights and raw."
    )
    formula: NonEmpty = Field(
        "weighted", description="`weighted`, or an expression over judge names."
    )
    weights: Named[Amount] = Field(
        default_factory=dict, description="Judge -> weight of the weighted mean."
    )
    raw: Items[NonEmpty] = Field(
        (), description="Judges whose value is clamped instead of normalised."
    )
    gate: bool | None = Field(
        None,
        description="Whether a false boolean makes the reward 0. Default: true for a formula, "
        "false for a judge.",
    )
    normalize: bool = Field(
        False, description="With `judge`: map its score_range to [0, 1] instead of clamping."
    )
    score_range: ScoreRange | None = Field(
        None, description="Deprecated: the range of judges that declare none."
    )
