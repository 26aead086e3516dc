"""``dataset``: where the cases are, what an agent may see of them, and how they are split."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pytest_agent_eval.suite.models.base import (
    Block,
    Items,
    NonEmpty,
    PathText,
    RelativePath,
    Share,
    block_field,
)

__all__ = ["CaseRule", "DatasetConfig", "SplitConfig", "WorkspaceConfig"]

DEFAULT_ANSWERS = (
    "expected_output",
    "expected",
    "canonical_solution",
    "patch",
    "test_patch",
    "test",
    "solution",
    "answer",
    "label",
)
_BY = re.compile(r"name|annotations(\.[^.\s]+)+")


def _split_by(value: str) -> str:
    if not _BY.fullmatch(value):
        raise ValueError(
            f"must be name or annotations.<key>, such as annotations.pair, not {value!r}"
        )
    return value


def _leak(value: Any) -> Any:
    # YAML 1.1 reads an unquoted `off` as false.
    return "off" if value is False else value


class WorkspaceConfig(Block):
    """What of a case is copied into the agent's workspace besides its input."""

    files: Items[RelativePath] = Field(
        (), description="Files and directories of a case that the agent gets besides the input."
    )


class SplitConfig(Block):
    """How the cases are divided into a dev and a holdout half."""

    holdout: Share = Field(0.5, description="Share of the holdout half.")
    by: Annotated[str, AfterValidator(_split_by)] = Field(
        "name",
        description="What is hashed: `name`, or an annotation such as `annotations.pair` whose "
        "values are groups that share a half.",
    )
    salt: str = Field("", description="Prefix of the hashed key; a new one reshuffles everything.")
    default: Literal["all", "dev", "holdout"] = Field(
        "all", description="The half that runs when neither an option nor `-m` asks for one."
    )
    sealed: bool = Field(
        False,
        description="Show results of the holdout half as aggregates only: no name, rationale or "
        "output of its cases.",
    )
    ledger: bool = Field(
        True,
        description="Write each look at the holdout half into a file beside the dataset, "
        "`<dataset>.holdout.yaml`, which is meant to be committed.",
    )


class CaseRule(Block):
    """One rule on case names: exactly one of the two keys."""

    include: NonEmpty | None = Field(None, description="Glob of case names to keep.")
    exclude: NonEmpty | None = Field(None, description="Glob of case names to leave out.")


class DatasetConfig(Block):
    """Where the cases are, what an agent may see of them, and how they are split."""

    path: PathText = Field(
        description="Directory of case directories, or a dataset file (.yaml, .json, .jsonl)."
    )
    schema_: str = Field(
        "", alias="schema", description="Prose about a case's files, for people and models."
    )
    workspace: WorkspaceConfig = block_field(
        WorkspaceConfig, "What the agent gets besides the input."
    )
    answers: Items[NonEmpty] = Field(
        DEFAULT_ANSWERS,
        description="Annotation paths that an agent may rightly reproduce (leak check); also the "
        "fields of sample files that are answers.",
    )
    leak: Annotated[Literal["warn", "error", "off"], BeforeValidator(_leak)] = Field(
        "warn", description="What happens when an agent's output holds text of the answer key."
    )
    split: SplitConfig = block_field(SplitConfig, "The dev and the holdout half.")
    cases: Items[CaseRule] = Field(
        (), description="Globs on case names, in order; the last match wins. Empty: all cases."
    )
    if_: NonEmpty | None = Field(
        None,
        alias="if",
        description="Condition over annotations, input, name, split and tags; keeps a case where "
        "it is true.",
    )
