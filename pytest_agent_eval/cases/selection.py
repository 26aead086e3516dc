"""Which cases belong to a dataset, and which of them were asked for. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pytest_agent_eval.cases.case import BrokenCase, Case
from pytest_agent_eval.cases.conditions import DATASET_NAMES, Condition, compile_condition
from pytest_agent_eval.cases.split import nfc
from pytest_agent_eval.errors import AgentEvalError, CaseError, ConditionError, SelectionError

__all__ = ["Selected", "Selection", "dataset_cases", "select"]

Cases = Sequence[Case | BrokenCase]
Rules = Sequence[tuple[str, str]]
"""``dataset.cases``: pairs of ``include`` or ``exclude`` and a glob on the case's name."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What was asked for, in the order in which it is applied.

    Attributes:
        rules: ``dataset.cases``.
        dataset_condition: source of ``dataset.if``; empty or None for none.
        split: ``dev``, ``holdout``, or ``all``, which None means as well.
        tags: ``KEY`` or ``KEY=VALUE``; all must match.
        condition: source of ``--agent-eval-if``; empty or None for none.
        limit: the first N cases of each split; None for all.
    """

    rules: Rules = ()
    dataset_condition: str | None = None
    split: str | None = None
    tags: Sequence[str] = ()
    condition: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """What a selection leaves.

    A broken case is never dropped by a filter on what is unknown of it (its split, tags and
    annotations), so that it is reported. A case for which a condition raises is kept as a
    :class:`BrokenCase` with the reason.

    Attributes:
        kept: in dataset order.
        dropped: in dataset order.
        emptied_by: the filter after which nothing was left, and why; empty if something is.
    """

    kept: tuple[Case | BrokenCase, ...]
    dropped: tuple[Case | BrokenCase, ...]
    emptied_by: str = ""


@dataclass(frozen=True, slots=True)
class _Filter:
    """One step: how it is called, what it keeps, and what to say of cases it leaves nothing of."""

    name: str
    apply: Callable[[Cases], list[Case | BrokenCase]]
    explain: Callable[[Cases], str]


def select(cases: Cases, selection: Selection) -> Selected:
    """Apply a selection.

    Raises:
        ConditionError: a condition cannot be compiled.
        SelectionError: a split, tag or limit that cannot be understood.
    """
    filters = list(_filters(selection))
    if not cases:
        return Selected((), (), "no case was collected")
    left: Cases = cases
    emptied_by = ""
    for step in filters:
        before, left = left, step.apply(left)
        if not left:
            emptied_by = f"{step.name}: {step.explain(before)}"
            break
    kept = {case.path for case in left}
    dropped = tuple(case for case in cases if case.path not in kept)
    return Selected(tuple(left), dropped, emptied_by)


def dataset_cases(
    cases: Cases, rules: Rules, condition: str | None = None
) -> tuple[Case | BrokenCase, ...]:
    """The cases that belong to the dataset: ``dataset.cases``, then ``dataset.if``.

    Raises:
        ConditionError: the condition cannot be compiled.
        SelectionError: a rule cannot be understood, or no case is left.
    """
    selected = select(cases, Selection(rules=rules, dataset_condition=condition))
    if selected.emptied_by:
        raise SelectionError(selected.emptied_by)
    return selected.kept


def _filters(selection: Selection) -> list[_Filter]:
    steps: list[_Filter] = []
    if selection.rules:
        steps.append(_by_rules(selection.rules))
    if selection.dataset_condition:
        steps.append(_by_condition("dataset.if", selection.dataset_condition))
    if selection.split not in (None, "", "all"):
        steps.append(_by_split(str(selection.split)))
    steps.extend(_by_tag(tag) for tag in selection.tags)
    if selection.condition:
        steps.append(_by_condition("--agent-eval-if", selection.condition))
    if selection.limit is not None:
        steps.append(_by_limit(selection.limit))
    return steps


def _by_rules(rules: Rules) -> _Filter:
    parsed: list[tuple[bool, str]] = []
    for kind, glob in rules:
        if kind not in ("include", "exclude"):
            raise SelectionError(f"dataset.cases: {kind!r} is neither include nor exclude")
        parsed.append((kind == "include", nfc(glob)))
    # A list that begins with what to include means nothing else; one that begins with what to
    # exclude means all the rest.
    default = not parsed[0][0]

    def belongs(name: str) -> bool:
        for include, glob in reversed(parsed):
            if fnmatchcase(name, glob):
                return include
        return default

    def explain(before: Cases) -> str:
        shown = ", ".join(f"{kind} {glob}" for kind, glob in rules)
        return f"{shown} leaves none of {_count(before)} ({_names(before)})"

    return _Filter("dataset.cases", lambda before: [c for c in before if belongs(c.name)], explain)


def _by_split(split: str) -> _Filter:
    if split not in ("dev", "holdout"):
        raise SelectionError(f"split {split!r}: must be dev, holdout or all")

    def keep(before: Cases) -> list[Case | BrokenCase]:
        return [case for case in before if isinstance(case, BrokenCase) or case.split == split]

    def explain(before: Cases) -> str:
        other = "holdout" if split == "dev" else "dev"
        return f"{_count(before)} before it, all of them in the {other} half"

    return _Filter(f"--agent-eval-split {split}", keep, explain)


def _by_tag(tag: str) -> _Filter:
    key, equals, value = tag.partition("=")
    key = key.strip()
    if not key:
        raise SelectionError(f"--agent-eval-tag {tag!r}: needs KEY or KEY=VALUE")

    def keep(before: Cases) -> list[Case | BrokenCase]:
        return [
            case
            for case in before
            if isinstance(case, BrokenCase)
            or (case.tags.get(key) == value if equals else key in case.tags)
        ]

    def explain(before: Cases) -> str:
        found = Counter(
            item for case in before if isinstance(case, Case) for item in case.tags.items()
        )
        values = sorted(text for name, text in found if name == key)
        if values:
            return f"{_count(before)} before it, where {key} is {_some(values)}"
        keys = sorted({name for name, _ in found})
        if not keys:
            return f"{_count(before)} before it, none of them with a tag"
        near = get_close_matches(key, keys, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{_count(before)} before it, with the tags {_some(keys)}{hint}"

    return _Filter(f"--agent-eval-tag {tag}", keep, explain)


def _by_condition(name: str, source: str) -> _Filter:
    try:
        condition = compile_condition(source, DATASET_NAMES)
    except ConditionError as error:
        raise ConditionError(f"{name}: {error}") from None

    def keep(before: Cases) -> list[Case | BrokenCase]:
        kept: list[Case | BrokenCase] = []
        for case in before:
            held = case if isinstance(case, BrokenCase) else _if_true(case, condition, name)
            if held is not None:
                kept.append(held)
        return kept

    def explain(before: Cases) -> str:
        return f"false for all of {_count(before)} before it"

    return _Filter(f"{name} {source.strip()!r}", keep, explain)


def _if_true(case: Case, condition: Condition, name: str) -> Case | BrokenCase | None:
    """The case where the condition is true, None where it is false, broken where it raises."""
    try:
        return case if condition.evaluate(case.scope(condition.reads)) else None
    except CaseError as error:
        return BrokenCase(case.name, case.path, error)
    except AgentEvalError as error:
        return BrokenCase(case.name, case.path, CaseError(case.name, f"{name}: {error}"))


def _by_limit(limit: int) -> _Filter:
    if limit < 1:
        raise SelectionError(f"--agent-eval-limit {limit}: must be at least 1")

    def keep(before: Cases) -> list[Case | BrokenCase]:
        seen: Counter[str] = Counter()
        kept: list[Case | BrokenCase] = []
        for case in before:
            if isinstance(case, Case):
                seen[case.split] += 1
                if seen[case.split] > limit:
                    continue
            kept.append(case)
        return kept

    return _Filter(f"--agent-eval-limit {limit}", keep, _count)


def _count(cases: Cases) -> str:
    return "1 case" if len(cases) == 1 else f"{len(cases)} cases"


def _names(cases: Cases) -> str:
    return _some([case.name for case in cases])


def _some(words: Sequence[str], most: int = 8) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more
