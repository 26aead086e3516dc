"""The table of cases and judges that ``-v`` adds to the summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_agent_eval.cases import natural_key
from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.reports.failure import verdict_state
from pytest_agent_eval.reports.numbers import money, score, seconds
from pytest_agent_eval.reports.printable import display_width, one_line, padded, shortened
from pytest_agent_eval.results import Verdict

__all__ = ["case_table", "in_order"]

_WIDEST_CASE = 40
_WIDEST_JUDGE = 16
_STATES = {"passed": "ok", "failed": "FAIL", "error": "error", "skipped": "-"}


def in_order(cases: Iterable[CaseOutcome]) -> list[CaseOutcome]:
    """Cases as the dataset has them: several workers finish them in any order."""
    return sorted(cases, key=lambda case: natural_key(case.label))


def case_table(cases: Sequence[CaseOutcome], judges: Sequence[str], width: int) -> Iterator[str]:
    """A heading and one line a case: status, what each judge said, cost and seconds.

    ``ok`` and ``FAIL`` are what a verdict asserts, a number its value; of several trials ``2/3``
    is how many passed, or a number the mean. Judges that do not fit the width are left out, and
    counted in the heading.
    """
    if not cases:
        return
    cases = in_order(cases)
    names = [one_line(case.label, _WIDEST_CASE) for case in cases]
    first = max(len("case"), *map(display_width, names))
    status = max(len("status"), *(len(case.status) for case in cases))
    cells = [[_cell(case, judge) for judge in judges] for case in cases]
    ends = [_end(case) for case in cases]
    headings = [one_line(judge, _WIDEST_JUDGE) for judge in judges]
    columns = [
        max(display_width(heading), *(len(row[place]) for row in cells))
        for place, heading in enumerate(headings)
    ]
    room = width - first - status - 2 - max(map(len, ends)) - 2
    shown = 0
    while shown < len(columns) and room >= columns[shown] + 2:
        room -= columns[shown] + 2
        shown += 1
    more = f"  (+{len(columns) - shown} judges)" if shown < len(columns) else ""
    heading = f"{padded('case', first)}  {padded('status', status)}"
    for text, column in zip(headings[:shown], columns, strict=False):
        heading += f"  {padded(text, column)}"
    yield shortened((heading + more).rstrip(), width)
    for case, name, row, end in zip(cases, names, cells, ends, strict=True):
        line = f"{padded(name, first)}  {padded(case.status, status)}"
        for text, column in zip(row[:shown], columns, strict=False):
            line += f"  {padded(text, column)}"
        yield shortened(f"{line}  {end}".rstrip(), width)


def _cell(case: CaseOutcome, judge: str) -> str:
    found = [v for trial in case.trials for v in trial.verdicts if v.judge == judge]
    if not found:
        return ""
    if len(found) == 1:
        return _said(found[0])
    judged = [verdict for verdict in found if verdict.value is not None]
    if judged and all(isinstance(verdict.value, bool) for verdict in judged):
        return f"{sum(verdict.value is True for verdict in judged)}/{len(judged)}"
    if judged:
        return f"{sum(verdict.value or 0 for verdict in judged) / len(judged):.4g}"
    return _said(found[0])


def _said(verdict: Verdict) -> str:
    state = verdict_state(verdict)
    if isinstance(verdict.value, bool) or verdict.value is None:
        return _STATES.get(state, state)
    return score(verdict.value) + (" FAIL" if state == "failed" else "")


def _end(case: CaseOutcome) -> str:
    started = [trial for trial in case.trials if trial.execution is not None]
    if not started:
        return ""
    costs = [t.usage.cost_usd for t in started if t.usage.cost_usd is not None]
    took = seconds(sum(trial.duration_s for trial in started))
    return f"{took}, {money(sum(costs))}" if costs else took
