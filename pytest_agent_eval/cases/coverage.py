"""Conditions that can be decided at collection, and whether a dataset tries both their branches.

A condition that is true for every case, or for none, is no condition: one of its branches is
never tried. The dataset should have a case for each.
"""

from __future__ import annotations

from collections.abc import Iterable

from pytest_agent_eval.cases.case import BrokenCase, Case
from pytest_agent_eval.cases.conditions import Condition
from pytest_agent_eval.errors import ConditionError

__all__ = ["EARLY_NAMES", "decided", "holds", "is_early"]

EARLY_NAMES = frozenset({"annotations", "name", "split", "tags", "group", "category"})
"""What is known of a case at collection, without its input."""


def is_early(condition: Condition) -> bool:
    """Whether a condition reads only what is known at collection."""
    return condition.reads <= EARLY_NAMES


def holds(condition: Condition, case: Case) -> bool | None:
    """What an early condition says of a case; None where it raises, which is an error later."""
    try:
        return condition.evaluate(case.scope(condition.reads))
    except ConditionError:
        return None


def decided(condition: Condition, cases: Iterable[Case | BrokenCase]) -> tuple[int, int]:
    """For how many cases an early condition is true, and for how many false.

    Broken cases, and cases for which it raises, count as neither.

    Raises:
        ValueError: the condition reads more than is known at collection.
    """
    if not is_early(condition):
        later = ", ".join(sorted(condition.reads - EARLY_NAMES))
        raise ValueError(f"not known at collection: {later}")
    answers = [holds(condition, case) for case in cases if isinstance(case, Case)]
    return answers.count(True), answers.count(False)
