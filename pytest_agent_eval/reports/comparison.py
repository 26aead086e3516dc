"""What is told of a run that was compared with an earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_agent_eval.evidence.comparison import Comparison
from pytest_agent_eval.evidence.summary import SuiteSummary
from pytest_agent_eval.reports.calibration import UNVALIDATED
from pytest_agent_eval.reports.line import Line, Markup
from pytest_agent_eval.reports.numbers import count
from pytest_agent_eval.reports.printable import display_width, hanging, one_line, padded

__all__ = ["comparison_lines", "comparison_text", "p_value"]

_MARKUP: dict[str, Markup] = {"worse": "red", "better": "green"}
_ORDER = ("worse", "better", "no difference shown", "not compared")
_NAMES_SHOWN = 5
_WIDEST_NAME = 28


def comparison_lines(suite: SuiteSummary, width: int, verbosity: int = 0) -> list[Line]:
    """The run against its baseline: what else has changed, one judge a line, regressions first.

    Of all cases; from verbosity 1 on of each half too, and with all names of cases.
    """
    if not suite.comparisons and not suite.changes:
        return []
    against = f"against {one_line(suite.info.baseline)}:"
    lines = [Line(f"  {text}", "bold") for text in hanging(against, width - 2)]
    for change in suite.changes:
        lines += [Line(f"    {text}") for text in hanging(change, width - 4)]
    return lines + judge_lines(suite.comparisons, width, verbosity)


def judge_lines(
    comparisons: Iterable[Comparison], width: int, verbosity: int = 0, indent: int = 4
) -> list[Line]:
    """One judge a line, those that got worse first, and the cases that only one run has."""
    shown = [found for found in comparisons if found.split == "all" or verbosity > 0]
    shown.sort(key=lambda found: _ORDER.index(found.outcome))
    names = {found.judge: one_line(found.judge, _WIDEST_NAME) for found in shown}
    column = max(map(display_width, names.values()), default=0)
    halves = max((len(found.split) for found in shown), default=0) if verbosity > 0 else 0
    lines = []
    for found in shown:
        lead = f"{' ' * indent}{padded(names[found.judge], column)}  "
        lead += f"{found.split:{halves}}  " if halves else ""
        text = comparison_text(found, verbosity)
        for part in hanging(text, width - display_width(lead), indent=2):
            lines.append(Line(lead + part, _MARKUP.get(found.outcome, "")))
            lead = " " * display_width(lead)
    for text in _one_sided(shown, verbosity):
        parts = hanging(text, width - indent)
        lines += [Line(f"{' ' * indent}{part}", "yellow") for part in parts]
    return lines


def comparison_text(found: Comparison, verbosity: int = 0) -> str:
    """``worse: 0.95 -> 0.55, difference -0.40 [-0.60, -0.15] over 20 cases, p 0.0078; regressed: a,
    b``; where no difference is shown with the smallest one that could have been.
    """
    if found.difference is None or found.new is None or found.old is None:
        return f"{found.outcome}: {found.no_interval}"
    text = f"{found.outcome}: {found.old:.2f} -> {found.new:.2f}, difference {_signed(found)}"
    text += f" over {count(found.pairs, 'case')}"
    if found.interval is None:
        text += f" (no interval: {found.no_interval})"
    text += f", {p_value(found.p)}"
    if found.p_adjusted is not None and found.p is not None and found.p_adjusted > found.p:
        text += f" ({p_value(found.p_adjusted)} for all judges together)"
    if found.unvalidated:
        text += f", {UNVALIDATED}"
    if found.outcome == "no difference shown":
        text += f"; {_smallest(found)}"
    for what, cases in (("regressed", found.regressed), ("improved", found.improved)):
        if cases:
            text += f"; {what}: {_some(cases, verbosity)}"
    return text


def p_value(p: float | None) -> str:
    """``p 0.0078``, ``p < 0.0001``."""
    if p is None:
        return "p unknown"
    return "p < 0.0001" if p < 0.0001 else f"p {p:.2g}"


def _signed(found: Comparison) -> str:
    difference = found.difference or 0.0
    number = (
        f"{difference:+.2f}" if abs(difference) > 0.005 or not difference else f"{difference:+.4f}"
    )
    if not difference:
        number = "0.00"
    if found.interval is None:
        return number
    return f"{number} [{found.interval.low:+.2f}, {found.interval.high:+.2f}]"


def _smallest(found: Comparison) -> str:
    if found.smallest is None:
        return f"{count(found.pairs, 'case')} of this spread can show none"
    return f"the smallest that could have been shown is {found.smallest:.2g}"


def _one_sided(shown: Sequence[Comparison], verbosity: int) -> list[str]:
    found = []
    for where, name in (("this run", "only_new"), ("the baseline", "only_old")):
        cases = tuple(
            dict.fromkeys(
                case for one in shown if one.split == "all" for case in getattr(one, name)
            )
        )
        if cases:
            noun = count(len(cases), "case")
            found.append(f"only in {where}, {noun}: {_some(cases, verbosity)}")
    return found


def _some(cases: Sequence[str], verbosity: int) -> str:
    shown = cases if verbosity > 0 else cases[:_NAMES_SHOWN]
    more = f" and {len(cases) - len(shown)} more" if len(shown) < len(cases) else ""
    return ", ".join(map(one_line, shown)) + more
