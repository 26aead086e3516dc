"""Which half a case belongs to: a hash of its name, or of its group's, and nothing else."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import xxhash

from pytest_agent_eval.errors import DocumentError, Problem, SelectionError

__all__ = ["Half", "Split", "nfc", "position"]

Half = Literal["dev", "holdout"]

_SCALE = 2**64
_ROOT = "annotations."


def position(unit: str, salt: str = "") -> float:
    """Place of a unit in [0, 1]: ``xxh3_64(utf8(NFC(salt + unit))) / 2**64``, seed 0."""
    key = nfc(salt + unit)
    # A lone surrogate (a name that is not UTF-8) has no place in UTF-8, but must not raise here.
    return xxhash.xxh3_64_intdigest(key.encode("utf-8", "surrogatepass")) / _SCALE


@dataclass(frozen=True, slots=True)
class Split:
    """How a dataset is split.

    Attributes:
        holdout: share of the holdout half, in [0, 1]. Raising it only moves cases from dev to
            holdout.
        by: ``name``, or the dotted path of an annotation such as ``annotations.pair``: cases
            with one value share a half.
        salt: prefix of the hashed key.

    Raises:
        SelectionError: ``by`` is neither.
    """

    holdout: float = 0.5
    by: str = "name"
    salt: str = ""

    def __post_init__(self) -> None:
        if self.by != "name" and not all(self.by.removeprefix(_ROOT).split(".")):
            raise SelectionError(_neither(self.by))
        if self.by != "name" and not self.by.startswith(_ROOT):
            raise SelectionError(_neither(self.by))

    def half(self, unit: str) -> Half:
        """The half of a unit: the name of a case, or the value of its group."""
        return "holdout" if position(unit, self.salt) < self.holdout else "dev"

    def unit(self, name: str, annotations: Mapping[str, Any]) -> tuple[str, str | None]:
        """What is hashed for a case, and its group.

        The group is None, and the unit the case's name, where the split is by name or where the
        case lacks the annotation (absent, null or empty text).

        Raises:
            DocumentError: the annotation is a list or a mapping, which names no group.
        """
        if self.by == "name":
            return name, None
        value: Any = annotations
        for part in self.by[len(_ROOT) :].split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None or value == "":
            return name, None
        if isinstance(value, Mapping | list):
            kind = "list" if isinstance(value, list) else "mapping"
            message = f"a {kind} cannot name a group (dataset.split.by); write one text"
            path = self.by[len(_ROOT) :]
            raise DocumentError(Problem(message, path=path, file="annotations.yaml"))
        text = nfc(str(value))
        return text, text


def _neither(by: str) -> str:
    hint = f"; did you mean annotations.{by}?" if by and "." not in by else ""
    return f"dataset.split.by: {by!r} is neither name nor a path such as annotations.pair{hint}"


def nfc(text: str) -> str:
    """The text in Unicode's composed form: one name however a file system spells it."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
