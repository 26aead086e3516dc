"""Which human-scored examples a judge is shown before its question, and how.

What is shown depends on the file, the judge's entry and the case that is judged; not on the order
of the file, the process or the other cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xxhash

from pytest_agent_eval.judges.base import CasePlace
from pytest_agent_eval.llm.fences import fenced
from pytest_agent_eval.suite.examples import Example

__all__ = ["ShownExamples", "chosen", "used_examples"]

_LONGEST = 20_000
"""Characters of an example's output, and of its input."""

_INTRODUCTION = """\
People have scored other outputs by what you are asked below. This is how they judge: keep to their
standard. An example tells nothing else about the output that you are to judge.
"""
_NEXT = "\n\nSo much for examples. Now to the output that you are to judge.\n\n"

Dataset = Callable[[], Mapping[str, CasePlace]]


def chosen(
    examples: Sequence[Example],
    places: Mapping[str, CasePlace],
    *,
    count: int | None = None,
    mix: Any = None,
    case: str | None = None,
) -> tuple[Example, ...]:
    """The examples for the judgement of a case, in the order in which they are shown.

    Args:
        examples: of one file.
        places: half and group of every case of the dataset; what it does not know is not shown.
        count: at most so many; None for all.
        mix: ``balanced`` or None, ``natural``, or value -> how many of it at most.
        case: that is judged: neither it nor another one of its group is shown.
    """
    dev = [one for one in examples if one.case in places and places[one.case].split != "holdout"]
    group = places[case].group if case is not None and case in places else None
    free = [
        one
        for one in dev
        if one.case != case and (group is None or places[one.case].group != group)
    ]
    free.sort(key=_rank)
    if isinstance(mix, Mapping):
        picked = _counted(free, mix)
    elif mix == "natural":
        picked = free[:count]
    else:
        picked = _balanced(free, len(free) if count is None else count)
    return tuple(sorted(picked, key=_rank))


def _rank(example: Example) -> tuple[int, str]:
    """A place in an order that has nothing to do with values, names or the file's order."""
    return xxhash.xxh3_64_intdigest(example.case.encode()), example.case


def _counted(free: Sequence[Example], mix: Mapping[Any, int]) -> list[Example]:
    wanted = {_key(value): number for value, number in mix.items()}
    taken: Counter[tuple[bool, float]] = Counter()
    picked = []
    for one in free:
        key = _key(one.value)
        if taken[key] < wanted.get(key, 0):
            taken[key] += 1
            picked.append(one)
    return picked


def _balanced(free: Sequence[Example], count: int) -> list[Example]:
    """One of each value in turn until there are enough, values that are far apart first."""
    queues: dict[tuple[bool, float], list[Example]] = {}
    for one in free:
        queues.setdefault(_key(one.value), []).append(one)
    order = _far_apart(sorted(queues))
    picked: list[Example] = []
    while len(picked) < min(count, len(free)):
        for key in order:
            if queues[key] and len(picked) < count:
                picked.append(queues[key].pop(0))
    return picked


def _far_apart(keys: Sequence[tuple[bool, float]]) -> list[tuple[bool, float]]:
    """The least, the greatest, then each time the one that is farthest from those before."""
    left = list(keys)
    order = left[:1]
    del left[:1]
    while left:
        farthest = max(left, key=lambda key: (min(abs(key[1] - one[1]) for one in order), key))
        left.remove(farthest)
        order.append(farthest)
    return order


def _key(value: Any) -> tuple[bool, float]:
    """1 is not true."""
    return isinstance(value, bool), value


class ShownExamples:
    """The examples of one judge, as they stand before its question. Used from several threads.

    Args:
        examples: of the judge's file.
        dataset: half and group of every case; asked when the first case is judged.
        count, mix: of the judge's entry.
    """

    def __init__(
        self, examples: Sequence[Example], dataset: Dataset, *, count: int | None, mix: Any
    ) -> None:
        self._examples = examples
        self._dataset = dataset
        self._count = count
        self._mix = mix

    def before(self, record: Mapping[str, Any]) -> str:
        """What is put before the question about a record; empty where nothing may be shown."""
        found = chosen(
            self._examples,
            self._dataset(),
            count=self._count,
            mix=self._mix,
            case=record["case"],
        )
        if not found:
            return ""
        shown = "\n".join(_shown(number, one) for number, one in enumerate(found, start=1))
        return f"{_INTRODUCTION}{shown}{_NEXT}"


def used_examples(
    examples: Sequence[Example], places: Mapping[str, CasePlace], *, count: int | None, mix: Any
) -> frozenset[str]:
    """The cases that are shown before the question about some case of the dataset."""
    names = {one.case for one in examples}
    groups = {places[name].group for name in names if name in places} - {None}
    # Only an example itself, or another case of its group, is shown others than the rest.
    special = [name for name, place in places.items() if name in names or place.group in groups]
    found: set[str] = set()
    for case in (None, *special):
        picked = chosen(examples, places, count=count, mix=mix, case=case)
        found.update(one.case for one in picked)
    return frozenset(found)


def _shown(number: int, example: Example) -> str:
    parts = [f"\nExample {number}."]
    if example.input:
        parts.append(f"The task:{fenced(example.input, _LONGEST)}")
    parts.append(f"The output:{fenced(example.output, _LONGEST)}")
    value = example.value
    said = str(value).lower() if isinstance(value, bool) else f"{value:g}"
    parts.append(f"The verdict of a person: {said}")
    if example.rationale:
        parts.append(f"Because: {example.rationale.strip()}")
    return "\n".join(parts)
