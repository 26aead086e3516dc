"""What all blocks share: strict types, free ``x-`` keys, and the types of single values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, TypeGuard, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    WithJsonSchema,
    model_validator,
)

__all__ = [
    "Amount",
    "Block",
    "Items",
    "Named",
    "NonEmpty",
    "PathText",
    "RelativePath",
    "ScoreRange",
    "Seconds",
    "Share",
    "block_field",
    "is_free",
    "is_number",
    "without_free",
]

T = TypeVar("T")
BlockT = TypeVar("BlockT", bound="Block")


def is_free(key: Any) -> bool:
    """Whether a key is the author's own: ``x-`` keys may stand anywhere."""
    return isinstance(key, str) and key.startswith("x-")


def is_number(value: Any) -> TypeGuard[float]:
    """A finite int or float; a boolean is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the range of float
        return False


def without_free(data: Any) -> Any:
    """A mapping without free keys and without nulls (null equals absent); null is empty."""
    if data is None:
        return {}
    if isinstance(data, dict):
        return {k: v for k, v in data.items() if v is not None and not is_free(k)}
    return data


class Block(BaseModel):
    """A mapping of eval.yaml with known keys."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
    )

    @model_validator(mode="before")
    @classmethod
    def _without_free(cls, data: Any) -> Any:
        return without_free(data)


def block_field(model: type[BlockT], description: str) -> BlockT:
    """A field whose absence means the block's defaults."""
    field: BlockT = Field(default_factory=lambda: model(), description=description)
    return field


def _non_empty(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _path(value: str) -> str:
    _non_empty(value)
    if "\0" in value:
        raise ValueError("must not hold a NUL character")
    if ".." in value.replace("\\", "/").split("/"):
        raise ValueError(f"must not hold .., as {value!r} does")
    return value


def _relative(value: str) -> str:
    _path(value)
    if value.startswith(("/", "\\", "~")) or value[1:2] == ":":
        raise ValueError(f"must be a relative path, not {value!r}")
    return value


def _score_range(value: Any) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"must be a list of two numbers [min, max], not {value!r}")
    if not all(is_number(bound) for bound in value):
        raise ValueError(f"must be two finite numbers [min, max], not {value!r}")
    if not value[0] < value[1]:
        raise ValueError(f"must increase: [min, max] with min < max, not {value!r}")
    return value[0], value[1]


Items = Annotated[tuple[T, ...], Strict(False)]
"""A YAML list, kept as a tuple; its items stay strict."""
Named = Annotated[Mapping[str, T], BeforeValidator(without_free)]
"""A mapping whose keys the author chose, ``x-`` keys and nulls left out."""
NonEmpty = Annotated[str, AfterValidator(_non_empty), Field(json_schema_extra={"minLength": 1})]
PathText = Annotated[str, AfterValidator(_path), Field(json_schema_extra={"minLength": 1})]
"""A path that may be absolute, without ``..``."""
RelativePath = Annotated[str, AfterValidator(_relative), Field(json_schema_extra={"minLength": 1})]
Seconds = Annotated[float, Field(gt=0)]
Amount = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
ScoreRange = Annotated[
    tuple[float, float],
    PlainValidator(_score_range),
    WithJsonSchema({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
]
