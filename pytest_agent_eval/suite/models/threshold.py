"""``thresholds``: bounds on a judge's aggregate, decided after the last case."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pytest_agent_eval.suite.models.base import Amount, Block, NonEmpty, Share

__all__ = ["BOUNDS", "ThresholdConfig"]

BOUNDS = (
    "min_mean",
    "min_pass_rate",
    "min_win_rate",
    "max_error_rate",
    "max_drop",
    "min_cases",
)
"""The keys that can miss a gate; the others say how these are decided."""


class ThresholdConfig(Block):
    """The gates of one judge. A value equal to its bound passes."""

    min_mean: float | None = Field(None, description="Least mean over the scored cases.")
    min_pass_rate: Share | None = Field(
        None, description="Least share of true among boolean verdicts."
    )
    min_win_rate: Share | None = Field(
        None, description="Least win rate of the judge `pairwise` against the baseline."
    )
    max_error_rate: Share | None = Field(
        None, description="Greatest share of judge errors among scored and errored cases."
    )
    max_drop: Amount | None = Field(
        None,
        description="Greatest drop of the rate or the mean against `--agent-eval-baseline RUN`, "
        "over the cases that both runs have.",
    )
    min_cases: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Least number of scored cases."
    )
    split: Literal["dev", "holdout"] | None = Field(
        None, description="The half that the gates are about. Default: all cases."
    )
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="The interval at this confidence has to clear the bound, not the estimate.",
    )
    by: NonEmpty | None = Field(
        None,
        description="One gate a value instead of one for all: `category`, or the key of a tag.",
    )
