"""``mlflow`` and ``matrix``: blocks of the format that concern whole runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pytest_agent_eval.suite.models.base import Block, Items, Named, NonEmpty

__all__ = ["MatrixConfig", "MlflowConfig"]


class MlflowConfig(Block):
    """Logging to MLflow; the presence of the block switches it on."""

    experiment: NonEmpty | None = Field(None, description="Experiment. Default: `name`.")
    tracking_uri: NonEmpty | None = Field(
        None, description="Server. Default: the variable MLFLOW_TRACKING_URI."
    )
    tags: Mapping[str, Any] = Field(default_factory=dict, description="Tags of every run.")
    dataset: Mapping[str, Any] = Field(
        default_factory=dict, description="Mapping of case files to fields of an MLflow dataset."
    )


class MatrixConfig(Block):
    """All combinations of factors, read as variants when there are none."""

    factors: Named[Items[Any]] = Field(
        description="Factor -> its values; `model` is the agent's model, others are placeholders."
    )
    replications: Annotated[int, Field(ge=1)] = Field(1, description="Trials of every combination.")
