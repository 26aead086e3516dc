"""``generation``: where new cases come from (``agent-eval generate``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from pytest_agent_eval.suite.models.base import Amount, Block, Items, NonEmpty, RelativePath

__all__ = ["GenerationConfig", "SeedConfig"]


def _context(value: Any) -> str | Mapping[str, Any]:
    if isinstance(value, str | dict):
        return value
    raise ValueError(f"must be a string or a mapping, not {value!r}")


Context = Annotated[
    str | Mapping[str, Any],
    PlainValidator(_context),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
]


class SeedConfig(Block):
    """`count` cases of one category, from exactly one of `builtin`, `prompt_file` and `prompt`."""

    category: NonEmpty = Field(description="Stamped onto every case as `annotations.category`.")
    count: Annotated[int, Field(ge=1)] = Field(description="How many cases.")
    builtin: str | None = Field(None, description="Builtin prompt, such as `docs/navigation`.")
    prompt_file: RelativePath | None = Field(
        None, description="File with the prompt, below the suite's directory."
    )
    prompt: str | None = Field(None, description="The prompt itself.")
    description: str = Field("", description="For people.")
    dimensions: Mapping[str, Items[Any]] = Field(
        default_factory=dict,
        description="Dimension -> values; combinations fix the answer before the input is written.",
    )
    twin: bool = Field(
        False,
        description="Ask for pairs of a positive and a control with the same annotation pair.",
    )


class GenerationConfig(Block):
    """Where new cases come from."""

    strategy: Literal["skill", "synthetic", "from-traces"] = Field(
        "skill", description="Cases from the skill, from seeds, or from recorded traces."
    )
    context: Context | None = Field(
        None, description="What the model is told about the project; `synthetic` only."
    )
    seeds: Items[SeedConfig] = Field((), description="Seeds of the strategy `synthetic`.")
    model: NonEmpty | None = Field(
        None, description="Model. Default: `models.hook`, else `models.judge`."
    )
    temperature: Amount = Field(1.0, description="Sampling temperature.")
