"""The failure block: what a person reads when a case did not pass."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.reports.numbers import count, score, seconds
from pytest_agent_eval.reports.printable import (
    display_width,
    hanging,
    one_line,
    padded,
    printable,
    shortened,
    wrapped,
)
from pytest_agent_eval.results import TrialResult, Verdict

__all__ = ["case_block", "failure_block", "headline", "input_lines", "verdict_state"]

STATES = ("failed", "error", "passed", "recorded", "skipped")
"""What a verdict came to, in the order of the table."""

_KINDS = {
    "agent": "the agent failed",
    "timeout": "the agent ran out of time",
    "budget": "the agent went over its budget",
    "case": "the case cannot be used",
}
_HOOK = re.compile(r"hooks\.\w+\b")
_UNRECORDED = "the agent: a call of a model is not recorded"
_STORING = "the trial cannot be stored"
_RATIONALE_LINES = 4
_INPUT_LINES = 8
_DETAIL_LINES = 30
_OUTPUT_LINES = 12
_LONGEST_LINE = 400
_WIDEST_NAME = 28


@dataclass(frozen=True, slots=True)
class _Row:
    state: str
    name: str
    value: str
    text: str


def verdict_state(verdict: Verdict) -> str:
    """``failed``, ``error``, ``passed``, ``recorded`` or ``skipped``."""
    if verdict.error:
        return "error"
    if verdict.skipped:
        return "skipped"
    if verdict.passed is None:
        return "recorded"
    return "passed" if verdict.passed else "failed"


def headline(result: TrialResult, width: int = 0) -> str:
    """One sentence that says what went wrong, e.g. ``case-002: 1 of 3 judges failed: schema
    (the key 'total' is missing)``; cut to ``width`` columns if that is set.
    """
    label = result.case + (f"[{result.variant}]" if result.variant else "")
    if result.trial > 1:
        label += f", trial {result.trial}"
    return one_line(f"{label}: {_what(result)}", width)


def _what(result: TrialResult) -> str:
    judged = [verdict for verdict in result.verdicts if not verdict.skipped]
    failed = [verdict for verdict in judged if verdict_state(verdict) == "failed"]
    errors = [verdict for verdict in judged if verdict.error]
    parts = []
    kind = _infrastructure(result) if result.kind == "infrastructure" else _KINDS.get(result.kind)
    if kind:
        # Where no table of verdicts follows, this is the only place that says all of it.
        said = one_line(result.reason, 120 if result.execution is not None else 0)
        if not said and result.execution is not None:
            said = one_line(result.execution.rationale, 120)
        parts.append(kind + (f": {said}" if said else ""))
    if failed:
        total = count(len(judged), "judge")
        parts.append(f"{len(failed)} of {total} failed: {_named(failed)}")
    if errors:
        parts.append(f"{count(len(errors), 'judge error')}: {_named(errors)}")
    return "; ".join(parts) or one_line(result.reason) or result.status


def _infrastructure(result: TrialResult) -> str:
    """What failed; the agent may have worked by then."""
    if _HOOK.match(result.reason):
        return "a hook failed (infrastructure)"
    if _UNRECORDED in result.reason:
        return "a recording is missing"
    if result.execution is not None and not result.execution.error:
        return "the trial could not be judged (infrastructure)"
    if result.duration_s or result.reason.startswith(_STORING):
        return "the infrastructure failed"
    return "the agent could not be run (infrastructure)"


def _named(verdicts: Sequence[Verdict]) -> str:
    room = 100 if len(verdicts) == 1 else 50
    named = []
    for verdict in verdicts:
        why = one_line(verdict.error or verdict.rationale, room)
        named.append(f"{verdict.judge} ({why})" if why else verdict.judge)
    return ", ".join(named)


def failure_block(
    result: TrialResult,
    *,
    input: Mapping[str, Any] | str | None = None,
    output_tail: str = "",
    stored_in: str = "",
    width: int = 80,
    verbosity: int = 0,
) -> str:
    """The whole block: headline, all verdicts, what was asked, details, output, places.

    Args:
        result: the trial.
        input: the case's input, or its text; shown cut.
        output_tail: the end of what the agent said, with stdout and stderr as the caller likes.
        stored_in: the run directory as it should be printed; the record's path is put behind it.
        width: columns.
        verbosity: pytest's; from 1 on nothing is cut.
    """
    cut = verbosity <= 0
    blocks = [hanging(headline(result), width), _table(result, width, cut)]
    if input:
        blocks.append(_section("asked", _limited(input_lines(input, width - 2), _INPUT_LINES, cut)))
    blocks += _details(result, cut)
    tail = printable(output_tail).rstrip().splitlines()
    if tail:
        blocks.append(_section(*_last(_narrowed(tail, cut), cut)))
    if result.notes:
        lines = [line for note in result.notes for line in hanging(note, width - 2)]
        blocks.append(_section("notes", lines))
    blocks.append(_places(result, stored_in))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def case_block(
    outcome: CaseOutcome,
    evidence: Callable[[TrialResult], Mapping[str, Any]],
    *,
    stored_in: str = "",
    width: int = 80,
    verbosity: int = 0,
) -> str:
    """The failure block of a case: of its trial, or of the trial that shows best what happened,
    below one line for each of its trials.

    Args:
        outcome: of the case.
        evidence: ``input`` and ``output_tail`` of a trial, as :func:`failure_block` takes them.
        stored_in: as of :func:`failure_block`.
        width: columns.
        verbosity: pytest's.
    """
    told = outcome.told
    block = failure_block(
        told, **evidence(told), stored_in=stored_in, width=width, verbosity=verbosity
    )
    if len(outcome.trials) == 1:
        return block
    passed = sum(trial.status == "passed" for trial in outcome.trials)
    said = f"{outcome.label}: {passed} of {len(outcome.trials)} trials passed"
    lines = [shortened(f"{said}; trial {told.trial}: {_what(told)}", width)]
    lines += [
        shortened(
            f"  trial {trial.trial}  {trial.status:9}  {one_line(trial.reason)}", width
        ).rstrip()
        for trial in outcome.trials
    ]
    return "\n".join((*lines, "", block))


def _rows(result: TrialResult) -> list[_Row]:
    execution = [result.execution] if result.execution else []
    # A bare "worked" says nothing beside judges that did not pass.
    if result.execution and verdict_state(result.execution) == "passed" and result.verdicts:
        execution = []
    rows = []
    for verdict in (*execution, *result.verdicts):
        state = verdict_state(verdict)
        # For true and false the first column has said it.
        value = "" if isinstance(verdict.value, bool) else score(verdict.value)
        rows.append(_Row(state, verdict.judge, value, verdict.error or verdict.rationale))
    return sorted(rows, key=lambda row: STATES.index(row.state))


def _table(result: TrialResult, width: int, cut: bool) -> list[str]:
    rows = _rows(result)
    names = [one_line(row.name, _WIDEST_NAME) for row in rows]
    states = max((len(row.state) for row in rows), default=0)
    name_column = max(map(display_width, names), default=0)
    value_column = max((len(row.value) for row in rows), default=0)
    lines = []
    for row, name in zip(rows, names, strict=True):
        lead = f"  {row.state:{states}}  {padded(name, name_column)}  "
        if value_column:
            lead += f"{row.value:>{value_column}}  "
        loud = row.state in ("failed", "error")
        limit = 0 if not cut else _RATIONALE_LINES if loud else 1
        for text in wrapped(row.text, width - display_width(lead), limit):
            lines.append((lead + text).rstrip())
            lead = " " * display_width(lead)
    return lines


def input_lines(value: Mapping[str, Any] | str, width: int) -> list[str]:
    """A case's input, a line or more a field, in printable text; lines are cut to ``width``."""
    if isinstance(value, str):
        return [shortened(line, width) for line in printable(value).strip().splitlines()]
    lines = []
    for key, item in value.items():
        text = item if isinstance(item, str) else _as_json(item)
        parts = printable(text).strip().splitlines() or ['""']
        name = one_line(str(key))
        if len(parts) == 1:
            lines += hanging(f"{name}: {parts[0]}", width, indent=2)
        else:
            lines += [f"{name}:", *(shortened(f"  {part}", width) for part in parts)]
    return lines


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _details(result: TrialResult, cut: bool) -> list[list[str]]:
    blocks = []
    for verdict in (*([result.execution] if result.execution else []), *result.verdicts):
        if verdict.detail.strip() and verdict_state(verdict) in ("failed", "error"):
            lines = printable(verdict.detail).strip("\n").rstrip().splitlines()
            shown = _limited(_narrowed(lines, cut), _DETAIL_LINES, cut)
            blocks.append(_section(one_line(verdict.judge), shown))
    return blocks


def _narrowed(lines: list[str], cut: bool) -> list[str]:
    """The lines, each of a bounded length: an agent may print all it has to say in one."""
    if not cut:
        return lines
    return [
        line
        if len(line) <= _LONGEST_LINE
        else f"{line[:_LONGEST_LINE]} ... {len(line) - _LONGEST_LINE:,} more characters (-v)"
        for line in lines
    ]


def _limited(lines: list[str], limit: int, cut: bool) -> list[str]:
    if not cut or len(lines) <= limit:
        return lines
    hidden = len(lines) - limit + 1
    return [*lines[: limit - 1], f"... {count(hidden, 'more line')} (-v shows all)"]


def _last(lines: list[str], cut: bool) -> tuple[str, list[str]]:
    if not cut or len(lines) <= _OUTPUT_LINES:
        return "output", lines
    return f"output, last {_OUTPUT_LINES} of {len(lines)} lines", lines[-_OUTPUT_LINES:]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"  {line}".rstrip() for line in lines)]


def _places(result: TrialResult, stored_in: str) -> list[str]:
    lines = []
    if result.execution is not None:
        took = f"{seconds(result.duration_s)}"
        if result.exit_code is not None:
            took += f", exit status {result.exit_code}"
        lines.append(f"agent      {took}")
    if result.workspace:
        lines.append(f"workspace  {one_line(result.workspace)}")
    if result.record:
        place = f"{stored_in.rstrip('/')}/{result.record}" if stored_in else result.record
        lines.append(f"record     {one_line(place)}")
    return lines
