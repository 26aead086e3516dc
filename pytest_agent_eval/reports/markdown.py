"""A report as Markdown: for a pull request, a job's summary, a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_agent_eval.evidence.aggregate import Aggregate
from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.evidence.reward import REWARD
from pytest_agent_eval.evidence.summary import SuiteSummary, titles
from pytest_agent_eval.reports.calibration import calibration_text
from pytest_agent_eval.reports.case_table import in_order
from pytest_agent_eval.reports.failure import headline
from pytest_agent_eval.reports.handler import FileReport, FinishedRun
from pytest_agent_eval.reports.numbers import count
from pytest_agent_eval.reports.printable import one_line
from pytest_agent_eval.reports.terminal import (
    aggregate_text,
    gate_text,
    reward_text,
    usage_text,
)

__all__ = ["escaped", "make", "markdown"]

CASES_SHOWN = 50
"""Of the cases that did not pass; the rest is counted."""
_STATUSES = ("failed", "error", "tolerated", "skipped", "passed")
_SHOWN = ("failed", "error", "tolerated")
_MARKS = {"passed": "✅", "missed": "❌", "not decided": "➖"}
_SPECIAL = re.compile(
    r"[\\`*|~$#]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word an underscore is one
    r"|(?<=\])[(\[]"  # the second half of a link
    r"|^[-+>]|^\d+(?=[.)])"  # what starts a list or a quotation
)
_LONGEST = 300


def markdown(run: FinishedRun) -> str:
    """The report's text. What agents, judges and cases say is text in it and never markup."""
    lines = [f"# Agent evaluation: {_verdict(run)}", "", _facts(run)]
    names = titles(suite.info for suite in run.summary.suites)
    for suite in run.summary.suites:
        if suite.cases or any(suite.coverage.selected.values()):
            title = names[suite.info.key, suite.info.variant]
            lines += ["", *_suite(suite, title)]
    if run.summary.interrupted:
        lines += ["", "**Incomplete:** the run ended before its last case."]
    lines += ["", *(f"- {escaped(note)}" for note in run.notes)] if run.notes else []
    return "\n".join(lines) + "\n"


def escaped(text: str, width: int = 0) -> str:
    """One line of text in which no character is markup; cut to ``width`` columns if set."""
    plain = one_line(text, width)
    plain = plain.replace("&", "&amp;").replace("<", "&lt;")
    return _SPECIAL.sub(_escape, plain)


def _escape(match: re.Match[str]) -> str:
    found = match.group()
    return f"&#{ord(found[0])};{found[1:]}" if found[0].isdigit() else f"\\{found}"


def _verdict(run: FinishedRun) -> str:
    bad = sum(suite.statuses.get(s, 0) for suite in run.summary.suites for s in ("failed", "error"))
    missed = len(run.summary.missed)
    parts = [count(bad, "case") + " did not pass"] if bad else []
    parts += [count(missed, "gate") + " missed"] if missed else []
    if parts:
        return ", ".join(parts)
    return "passed" if run.summary.complete else "incomplete"


def _facts(run: FinishedRun) -> str:
    parts = [f"Run `{one_line(run.run_id)}`"]
    git = run.header.get("git")
    if isinstance(git, dict) and isinstance(git.get("commit"), str):
        changed = " with changes" if git.get("dirty") else ""
        parts.append(f"commit `{one_line(git['commit'])[:12]}`{changed}")
    return ", ".join(parts)


def _suite(suite: SuiteSummary, title: str) -> Iterator[str]:
    counts = [f"{n:,} {status}" for status in _STATUSES if (n := suite.statuses.get(status, 0))]
    yield f"## {escaped(title)}"
    yield ""
    yield f"{', '.join(counts) or 'no case ran'}; {escaped(usage_text(suite))}"
    shown = [a for a in suite.aggregates if a.cases and (a.split != "all" or a.kind == "mixed")]
    rewards = [found for found in suite.rewards if found.split != "all"]
    if shown or rewards:
        yield ""
        yield from _table(
            ("judge", "split", "result"),
            [
                *((_code(a.judge), a.split, _aggregate(a, suite.info.baseline)) for a in shown),
                *((REWARD, a.split, escaped(reward_text(a))) for a in rewards),
            ],
        )
    if suite.gates:
        yield ""
        yield from _table(("gate", "outcome"), [_gate(gate) for gate in suite.gates])
    said = [*map(calibration_text, suite.calibrations), *suite.claims]
    if said:
        yield ""
        yield from (f"- {escaped(text)}" for text in said)
    yield from _cases(suite.cases)


def _aggregate(found: Aggregate, baseline: str) -> str:
    return escaped(aggregate_text(found, baseline=baseline))


def _gate(gate: Gate) -> tuple[str, str]:
    text = gate_text(gate).removeprefix("GATE ").removesuffix(f" -> {gate.outcome}")
    return escaped(text), f"{_MARKS[gate.outcome]} {gate.outcome}"


def _cases(cases: Sequence[CaseOutcome]) -> Iterator[str]:
    found = sorted(
        (case for case in in_order(cases) if case.status in _SHOWN),
        key=lambda case: _SHOWN.index(case.status),
    )
    if not found:
        return
    yield ""
    yield f"<details><summary>{count(len(found), 'case')} to look at</summary>"
    yield ""
    rows = [
        (case.status, _code(case.label), escaped(_why(case), _LONGEST))
        for case in found[:CASES_SHOWN]
    ]
    yield from _table(("status", "case", "why"), rows)
    if len(found) > CASES_SHOWN:
        yield ""
        yield f"and {len(found) - CASES_SHOWN:,} more"
    yield ""
    yield "</details>"


def _why(case: CaseOutcome) -> str:
    said = headline(case.told)
    return said.partition(": ")[2] or said


def _code(text: str) -> str:
    """Text as code; a longer fence than any in it keeps it together."""
    plain = one_line(text).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", plain)), default=0) + 1)
    blank = " " if "`" in plain else ""
    return f"{fence}{blank}{plain}{blank}{fence}"


def _table(heading: Sequence[str], body: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(heading)} |"
    yield f"| {' | '.join('---' for _ in heading)} |"
    for row in body:
        yield f"| {' | '.join(row)} |"


def make(path: Path) -> FileReport:
    """The handler that writes a file."""
    return FileReport(path, markdown)
