"""The plugin's own selection options, applied to collected items suite by suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agent_eval.errors import AgentEvalError
from pytest_agent_eval.items import BrokenItem, CaseItem, SuiteFile

if TYPE_CHECKING:
    from pytest_agent_eval.active_suite import ActiveSuite
    from pytest_agent_eval.options import Options
    from pytest_agent_eval.session import EvalSession

__all__ = ["deselect"]


def deselect(session: EvalSession, items: list[pytest.Item]) -> None:
    """Take out of ``items`` what the options leave out, and tell pytest so.

    Raises:
        pytest.UsageError: an option cannot be understood, or no case of the suites that were to
            run is left.
    """
    from pytest_agent_eval.cases import BrokenCase, Selection, select

    groups: dict[str, list[CaseItem | BrokenItem]] = {}
    for item in items:
        if isinstance(item, CaseItem | BrokenItem):
            groups.setdefault(item.suite.key, []).append(item)
    dropped: set[int] = set()
    emptied: list[str] = []
    options = session.options
    for key, group in groups.items():
        suite = session.suites[key]
        if options.variants:
            suite.pick_variants(options.variants)
            dropped.update(id(item) for item in group if item.variant not in suite.variants)
            if not suite.variants:
                emptied.append(f"{key}: {_no_variant(suite, options)}")
                continue
        try:
            selection = Selection(
                split=_split(session, suite),
                tags=options.tags,
                condition=options.condition,
                limit=options.limit,
            )
            cases = {item.case.path: item.case for item in group}
            chosen = select([*cases.values()], selection)
        except AgentEvalError as error:
            raise pytest.UsageError(f"agent-eval: {error}") from None
        kept = {case.path: case for case in chosen.kept}
        dropped.update(id(item) for item in group if item.case.path not in kept)
        for item in group:
            case = kept.get(item.case.path)
            if isinstance(case, BrokenCase) and isinstance(item, CaseItem):
                # The condition raised for this case: its error is shown in its place.
                parent = item.getparent(SuiteFile)
                assert parent is not None
                items[items.index(item)] = BrokenItem.make(parent, case, item.variant)
        if suite.asked and not kept:
            emptied_by = chosen.emptied_by
            if suite.sealed:  # it tells of the cases that were there before
                told = [case for case in cases.values() if not suite.is_sealed(case)]
                emptied_by = select(told, selection).emptied_by or "the options leave none"
            emptied.append(f"{key}: {emptied_by}")
    running = [key for key in groups if session.suites[key].asked]
    if emptied and len(emptied) == len(running):
        raise pytest.UsageError(*[f"agent-eval: no case is left: {line}" for line in emptied])
    if dropped:
        out = [item for item in items if id(item) in dropped]
        session.config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if id(item) not in dropped]


def _no_variant(suite: ActiveSuite, options: Options) -> str:
    asked = ", ".join(options.variants)
    known = ", ".join(suite.suite.variants)
    return f"no variant {asked}; it has {known}" if known else f"no variant {asked}; it has none"


def _split(session: EvalSession, suite: ActiveSuite) -> str:
    """The half that runs: as asked for, else the suite's default unless cases were picked."""
    options: Options = session.options
    marked = (session.config.option.markexpr or "").strip()
    if options.split is not None:
        split = options.split
    elif marked or session.named_cases(suite):
        split = "all"
    else:
        split = suite.suite.config.dataset.split.default
    asked = marked if marked in ("dev", "holdout") else split
    suite.half = None if asked == "all" else asked
    return split
