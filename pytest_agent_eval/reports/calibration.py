"""What is told of a judge that has human labels."""

from __future__ import annotations

from pytest_agent_eval.evidence.agreement import Estimate
from pytest_agent_eval.evidence.calibration import Calibration, Label
from pytest_agent_eval.reports.numbers import count, estimate, score
from pytest_agent_eval.reports.printable import hanging, one_line, padded

__all__ = ["UNVALIDATED", "calibration_lines", "calibration_text"]

UNVALIDATED = "unvalidated"
"""Stands beside every number of a judge whose agreement with people may be chance."""
_MOST_VALUES = 10
_NAMES_SHOWN = 10


def calibration_lines(found: Calibration, width: int, verbosity: int) -> list[str]:
    """The judge's line; from verbosity 1 on with the confusion table and the cases that differ."""
    lines = hanging(calibration_text(found, verbosity), width)
    if verbosity > 0 and found.compared:
        lines += [f"  {text}" for text in _table(found)]
        if found.disagreeing:
            lines += [f"  {text}" for text in hanging(_differing(found, verbosity), width - 2)]
    return lines


def calibration_text(found: Calibration, verbosity: int = 0) -> str:
    """``judge tone: unvalidated: agreement 0.60 [0.31, 0.83] over 10 labels, kappa 0.12 [-0.47,
    0.71] (the interval includes chance)``, with what was left out; from verbosity 1 on with the
    agreement that chance alone would give.
    """
    state = "validated" if found.validated else UNVALIDATED
    parts = [f"agreement {_number(found.agreement)} over {_labels(found)}"]
    kappa = "kappa" if found.kind == "bool" else "weighted kappa"
    for name, one in ((kappa, found.kappa), ("Spearman", found.spearman)):
        if one is not None and one.value is not None:
            parts.append(f"{name} {_number(one)}")
    if verbosity > 0 and found.chance is not None:
        parts.append(f"{found.chance:.2f} expected by chance")
    text = f"judge {one_line(found.judge)}: {state}: "
    text += ", ".join(parts) if found.compared else f"no label of {found.labels} has a verdict"
    left = [
        f"{number} {word}"
        for number, word in (
            (found.taught, "shown as examples"),
            (found.not_run, "not run"),
            (found.skipped, "skipped"),
            (found.errored, "in error"),
            (found.unlike, "of another type than the verdict"),
        )
        if number
    ]
    if left:
        text += f"; left out: {', '.join(left)}"
    return text + (f" ({found.reason})" if found.reason and found.compared else "")


def _labels(found: Calibration) -> str:
    text = count(found.compared, "label")
    return text if found.units == found.compared else f"{text} ({found.units} independent)"


def _number(found: Estimate) -> str:
    return "none" if found.value is None else estimate(found.value, found.interval)


def _table(found: Calibration) -> list[str]:
    """Rows are labels, columns are what the judge said."""
    labels: list[Label] = sorted({label for label, _, _ in found.table})
    values: list[Label] = sorted({value for _, value, _ in found.table})
    if max(len(labels), len(values)) > _MOST_VALUES:
        return [f"more than {_MOST_VALUES} different values: no table; all pairs are stored"]
    cells = {(label, value): str(number) for label, value, number in found.table}
    heads = [score(value) for value in values]
    column = max(map(len, [*heads, *cells.values()]))
    lead = max(len("human"), *(len(score(label)) for label in labels))
    rows = [f"{'human':{lead}}  judge: " + "  ".join(padded(head, column) for head in heads)]
    for label in labels:
        numbers = (cells.get((label, value), "0") for value in values)
        row = "  ".join(padded(number, column) for number in numbers)
        rows.append(f"{score(label):{lead}}         {row}")
    return [row.rstrip() for row in rows]


def _differing(found: Calibration, verbosity: int) -> str:
    shown = found.disagreeing if verbosity > 1 else found.disagreeing[:_NAMES_SHOWN]
    more = len(found.disagreeing) - len(shown)
    names = ", ".join(map(one_line, shown)) + (f" and {more} more" if more else "")
    return f"differ: {names}"
