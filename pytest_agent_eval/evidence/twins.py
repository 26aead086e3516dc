"""Twin discrimination: the share of pairs of which both sides are right. Pure.

A pair is a positive and the control that mirrors it. A judge's plain pass rate over such cases is
0.5 for an agent that always answers the same; its twin discrimination is 0, because a constant
answer is wrong on one side of every pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.evidence.intervals import Interval, wilson

if TYPE_CHECKING:
    from pytest_agent_eval.evidence.aggregate import CaseScore

__all__ = ["Twins", "twins_of"]


@dataclass(frozen=True, slots=True)
class Twins:
    """What one judge said about the pairs of one split.

    Attributes:
        both, one, none: pairs of which both sides are right, only one is, none is. A side is right
            when the verdict of every trial passed.
        interval: of :attr:`value` (Wilson 1927, over pairs, which are independent of each other).
    """

    both: int
    one: int
    none: int
    interval: Interval

    @property
    def pairs(self) -> int:
        """Pairs with a verdict on both sides."""
        return self.both + self.one + self.none

    @property
    def value(self) -> float:
        """The share of pairs of which both sides are right, 0 to 1."""
        return self.both / self.pairs

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types: what summary.yaml shows of it."""
        return {
            "pairs": self.pairs,
            "both": self.both,
            "one": self.one,
            "none": self.none,
            "value": self.value,
            "interval": self.interval.to_dict(),
        }


def twins_of(
    scores: Iterable[CaseScore], pairs: Collection[str], confidence: float = 0.95
) -> Twins | None:
    """Count the pairs by how many of their sides are right.

    Args:
        scores: of one judge, one a case, of the split that is asked about.
        pairs: groups that have exactly two cases in the dataset.
        confidence: of the interval.

    Returns:
        None where no pair has a verdict on both sides. A side says nothing if its case did not run,
        the judge was skipped, or it was an error in one trial while no other failed.
    """
    sides: dict[str, list[bool]] = {}
    for score in scores:
        kind, group = score.cluster
        right = _right(score)
        if kind == "group" and group in pairs and right is not None:
            sides.setdefault(group, []).append(right)
    counts = [0, 0, 0]
    for found in sides.values():
        if len(found) == 2:
            counts[sum(found)] += 1
    if not sum(counts):
        return None
    interval = wilson(counts[2], sum(counts), confidence)
    assert isinstance(interval, Interval)  # there is a pair
    return Twins(counts[2], counts[1], counts[0], interval)


def _right(score: CaseScore) -> bool | None:
    if score.passes < score.booleans:
        return False
    return True if score.booleans and not score.errored else None
