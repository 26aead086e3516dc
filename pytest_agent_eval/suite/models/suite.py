"""The whole of an eval.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pytest_agent_eval.suite.models.agent import InputsConfig, ModelsConfig, PermissionsConfig
from pytest_agent_eval.suite.models.base import Block, Items, Named, NonEmpty, block_field
from pytest_agent_eval.suite.models.dataset import DatasetConfig
from pytest_agent_eval.suite.models.execution import ExecutionConfig
from pytest_agent_eval.suite.models.generation import GenerationConfig
from pytest_agent_eval.suite.models.hooks import HooksConfig
from pytest_agent_eval.suite.models.judge import JudgeConfig
from pytest_agent_eval.suite.models.outputs import OutputConfig, TracesConfig
from pytest_agent_eval.suite.models.reward import RewardConfig
from pytest_agent_eval.suite.models.runner import RunnerConfig
from pytest_agent_eval.suite.models.threshold import ThresholdConfig
from pytest_agent_eval.suite.models.tracking import MatrixConfig, MlflowConfig

__all__ = ["SuiteConfig"]


class SuiteConfig(Block):
    """One eval.yaml."""

    name: NonEmpty | None = Field(
        None, description="Shown in reports. Default: the name of the file's directory."
    )
    title: str = Field("", description="Heading of reports. Default: `name`.")
    description: str = Field("", description="For people.")
    skill: NonEmpty | None = Field(None, description="Deprecated place of `execution.skill`.")
    dataset: DatasetConfig = Field(description="Where the cases are.")
    execution: ExecutionConfig = block_field(ExecutionConfig, "What the agent is asked to do.")
    runner: RunnerConfig = block_field(RunnerConfig, "What carries tasks out.")
    models: ModelsConfig = block_field(ModelsConfig, "Default models by role.")
    permissions: PermissionsConfig = block_field(PermissionsConfig, "What its tools may do.")
    inputs: InputsConfig = block_field(InputsConfig, "Answers for an unattended agent.")
    outputs: Items[OutputConfig] = Field((), description="What the agent leaves behind.")
    traces: TracesConfig = block_field(TracesConfig, "What is recorded besides files.")
    judges: Items[JudgeConfig] = Field((), description="Functions of a trial's record.")
    thresholds: Named[ThresholdConfig] = Field(
        default_factory=dict, description="Judge -> its gates."
    )
    reward: RewardConfig | None = Field(None, description="One number a trial, for training.")
    hooks: HooksConfig = block_field(HooksConfig, "Commands around the run and its cases.")
    mlflow: MlflowConfig | None = Field(None, description="Logging to MLflow.")
    generation: GenerationConfig = block_field(GenerationConfig, "How new cases are made.")
    variants: Named[Mapping[str, Any]] = Field(
        default_factory=dict,
        description="Variant -> what it changes of the suite (mappings are merged deeply, lists "
        "replaced), and `values`: placeholders of the command.",
    )
    matrix: MatrixConfig | None = Field(
        None, description="Factors whose combinations are variants, where `variants` is absent."
    )
