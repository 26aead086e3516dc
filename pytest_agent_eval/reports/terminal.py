"""The section that the plugin adds to the end of pytest's terminal output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_agent_eval.evidence.aggregate import Aggregate
from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.evidence.reward import REWARD
from pytest_agent_eval.evidence.summary import SuiteSummary, Summary, titles
from pytest_agent_eval.reports.calibration import UNVALIDATED, calibration_lines
from pytest_agent_eval.reports.case_table import case_table
from pytest_agent_eval.reports.comparison import comparison_lines
from pytest_agent_eval.reports.line import Line, Markup
from pytest_agent_eval.reports.numbers import count, estimate, money, seconds, tokens
from pytest_agent_eval.reports.printable import display_width, hanging, one_line, padded
from pytest_agent_eval.suite.known import PAIRWISE

__all__ = [
    "Line",
    "aggregate_text",
    "gate_text",
    "holdout_text",
    "reward_text",
    "summary_lines",
    "usage_text",
]

_MARKUP: dict[str, Markup] = {"passed": "green", "missed": "red", "not decided": "yellow"}
_STATUSES = ("failed", "error", "passed", "tolerated", "skipped")
_ERRORS_SHOWN = 3
_NAMES_SHOWN = 5
_WIDEST_NAME = 28


def summary_lines(
    summary: Summary,
    *,
    width: int = 80,
    verbosity: int = 0,
    cases: bool = False,
    stored_in: str = "",
    run: str = "",
    notes: Sequence[str] = (),
) -> list[Line]:
    """The section's lines, for all suites and each of their variants.

    Args:
        summary: of the run.
        width: columns of the terminal.
        verbosity: pytest's; below 0 only gates and where the run is stored, from 1 on all
            names of tolerated cases and the method of each interval.
        cases: with a table of cases and judges.
        stored_in: the run directory as it should be printed; empty if nothing was stored.
        run: name of a stored run that is shown later, when it may not be the latest any more.
        notes: more sentences worth a line (a torn line, a warning of the run).
    """
    lines: list[Line] = []
    names = titles(suite.info for suite in summary.suites)
    for suite in summary.suites:
        coverage = suite.coverage
        if any(coverage.total.values()) and not any(coverage.selected.values()) and not suite.cases:
            continue  # the selection left this suite out altogether
        if lines and verbosity >= 0:
            lines.append(Line(""))
        title = names[suite.info.key, suite.info.variant]
        lines += _suite_lines(suite, title, width, verbosity, cases)
    for note in notes:
        lines += [Line(text, "yellow") for text in hanging(f"note: {note}", width)]
    left = sum(sum(suite.coverage.left_out.values()) for suite in summary.suites)
    if left:
        lines += [Line(text, "yellow") for text in hanging(_left_out(summary, left, run), width)]
    if summary.interrupted:
        lines.append(Line("incomplete: the run ended before its last case", "yellow"))
    if stored_in:
        lines.append(Line(f"stored in {one_line(stored_in)}"))
    return lines


def _left_out(summary: Summary, left: int, run: str) -> str:
    partly = any(
        0 < case.left_out < len(case.trials) for suite in summary.suites for case in suite.cases
    )
    what = f"{count(left, 'case')} {'was' if left == 1 else 'were'} not run"
    return (
        f"incomplete: {what}{', or not to the end,' if partly else ''} because the session's "
        f"budget is spent; go on with --agent-eval-resume{f'={one_line(run)}' if run else ''}"
    )


def _suite_lines(
    suite: SuiteSummary, title: str, width: int, verbosity: int, cases: bool
) -> list[Line]:
    gates = [line for gate in suite.gates for line in _gate_lines(gate, width)]
    errors = _judge_errors(suite.cases, width, verbosity)
    if verbosity < 0:
        return [*errors, *gates]
    counts = ", ".join(
        count(number, "error") if status == "error" else f"{number:,} {status}"
        for status in _STATUSES
        if (number := suite.statuses.get(status, 0))
    )
    heading = f"{one_line(title)}: {counts or 'no case ran'}"
    lines = [Line(text, "bold") for text in hanging(heading, width)]
    if cases and suite.cases:
        judges = [judge.name for judge in suite.info.judges]
        table = case_table(suite.cases, judges, width - 2)
        lines += [*(Line(f"  {text}") for text in table), Line("")]
    lines += _judge_lines(suite, width, verbosity)
    lines += _not_compared(suite, width)
    lines += comparison_lines(suite, width, verbosity)
    lines += _reward_lines(suite, width, verbosity)
    for found in suite.calibrations:
        markup: Markup = "" if found.validated else "yellow"
        texts = calibration_lines(found, width - 2, verbosity)
        lines += [Line(f"  {text}", markup) for text in texts]
    lines += _tolerated(suite.cases, width, verbosity)
    lines += errors
    lines += [Line(f"  {text}") for text in hanging(usage_text(suite), width - 2)]
    if said := holdout_text(suite):
        lines += [Line(f"  {text}") for text in hanging(said, width - 2)]
    if suite.info.without_group:
        text = f"{count(suite.info.without_group, 'case')} without a group: split by name"
        lines.append(Line(f"  {text}"))
    for claim in suite.claims:
        lines += [Line(f"  {text}") for text in hanging(claim, width - 2)]
    return [*lines, *gates]


def holdout_text(suite: SuiteSummary) -> str:
    """``holdout: looked at 4 times for this suite (last 2026-01-03), twice with this version of
    it``; of a sealed half also that its cases are not shown. Empty where there is nothing to say.
    """
    parts = []
    looks = suite.looks
    if looks is not None and looks.total == 1:
        parts.append(f"looked at for the first time for this suite, see {one_line(looks.ledger)}")
    elif looks is not None:
        last = f" (last {looks.last})" if looks.last else ""
        parts.append(
            f"looked at {_times(looks.total)} for this suite{last}, "
            f"{_times(looks.version)} with this version of it"
        )
    if suite.info.sealed and suite.coverage.selected.get("holdout"):
        parts.append("sealed: its cases are counted and not shown")
    return f"holdout: {'; '.join(parts)}" if parts else ""


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _judge_lines(suite: SuiteSummary, width: int, verbosity: int) -> list[Line]:
    without = PAIRWISE if not suite.info.baseline else ""
    shown = [
        found
        for found in suite.aggregates
        if found.cases
        and (found.split != "all" or found.kind == "mixed")
        and (found.judge != without or found.kind == "wins")
    ]
    names = {a.judge: one_line(a.judge, _WIDEST_NAME) for a in shown}
    column = max(map(display_width, names.values()), default=0)
    halves = max((len(a.split) for a in shown), default=0)
    lines, last = [], ""
    for found in shown:
        name = names[found.judge] if found.judge != last else ""
        last = found.judge
        lead = f"  {padded(name, column)}  {found.split:{halves}}  "
        said = aggregate_text(found, verbosity, suite.info.baseline)
        texts = hanging(said, width - display_width(lead), indent=2)
        odd = found.errored or found.unvalidated or found.kind == "mixed"
        markup: Markup = "yellow" if odd else ""
        for text in texts:
            lines.append(Line(lead + text, markup))
            lead = " " * display_width(lead)
    return lines


def _reward_lines(suite: SuiteSummary, width: int, verbosity: int) -> list[Line]:
    """One line, and one more where both halves ran; below those of the judges."""
    shown = [found for found in suite.rewards if found.split != "all"]
    halves = max((len(found.split) for found in shown), default=0)
    names = (one_line(found.judge, _WIDEST_NAME) for found in suite.aggregates if found.cases)
    column = max(len(REWARD), *map(display_width, names), 0)
    lines: list[Line] = []
    for found in shown:
        lead = f"  {'' if lines else REWARD:{column}}  {found.split:{halves}}  "
        texts = hanging(reward_text(found, verbosity), width - len(lead), indent=2)
        markup: Markup = "" if found.value is not None else "yellow"
        lines += [Line(f"{lead}{texts[0]}", markup)]
        lines += [Line(" " * len(lead) + text, markup) for text in texts[1:]]
    return lines


def reward_text(found: Aggregate, verbosity: int = 0) -> str:
    """``mean 0.72 [0.61, 0.83] over 30 cases, 2 cases without a reward``."""
    without = [f"{count(found.skipped, 'case')} without a reward"] if found.skipped else []
    if found.value is None:
        return without[0] if without else found.no_interval
    return ", ".join([aggregate_text(replace(found, skipped=0), verbosity), *without])


def _not_compared(suite: SuiteSummary, width: int) -> list[Line]:
    """That the judge ``pairwise`` had nothing to compare with."""
    compares = any(judge.kind == PAIRWISE for judge in suite.info.judges)
    if not compares or suite.info.baseline or suite.pairwise is not None:
        return []
    text = f"{PAIRWISE}: skipped, no run to compare with is named (--agent-eval-baseline RUN)"
    return [Line(f"  {part}", "yellow") for part in hanging(text, width - 2)]


def aggregate_text(found: Aggregate, verbosity: int = 0, baseline: str = "") -> str:
    """``pass rate 0.90 [0.74, 0.97] over 30 cases, 2 skipped``; of comparisons ``win rate 0.58
    [0.32, 0.81] over 12 cases: 7 wins, 3 losses, 2 ties against 20260101T000000Z-ab12``.
    """
    if found.value is None:
        parts = [found.no_interval]
    else:
        what = {"rate": "pass rate", "wins": "win rate"}.get(found.kind, "mean")
        number = estimate(found.value, found.interval)
        parts = [f"{what} {number} over {count(found.scored, 'case')}"]
        if found.kind == "wins":
            parts[0] += f": {_compared(found, baseline)}"
        if found.interval is None:
            parts.append(f"no interval: {found.no_interval}")
        elif verbosity > 0:
            parts.append(found.interval.method)
        if found.unvalidated:
            parts.append(UNVALIDATED)
        if found.twins is not None:
            both = estimate(found.twins.value, found.twins.interval)
            parts.append(f"twin discrimination {both} over {count(found.twins.pairs, 'pair')}")
    if found.errored:
        judged = found.cases - found.skipped
        parts.append(f"{found.scored} of {judged} scored, {count(found.errored, 'judge error')}")
    if found.skipped:
        parts.append(f"{found.skipped} skipped")
    if found.pass_at_k is not None and found.pass_hat_k is not None:
        k = found.trials
        parts.append(f"pass@{k} {found.pass_at_k:.2f}, pass^{k} {found.pass_hat_k:.2f}")
        parts.append(f"{found.flaky} flaky")
    return ", ".join(parts)


def _compared(found: Aggregate, baseline: str) -> str:
    """``7 wins, 3 losses, 2 ties against 20260101T000000Z-ab12``."""
    counts = (("win", "wins", found.wins), ("loss", "losses", found.losses))
    parts = [f"{number:,} {one if number == 1 else several}" for one, several, number in counts]
    parts.append(count(found.ties, "tie"))
    return ", ".join(parts) + (f" against {one_line(baseline)}" if baseline else "")


def _judge_errors(cases: Iterable[CaseOutcome], width: int, verbosity: int) -> list[Line]:
    """What went wrong with judges in tolerated cases, which have no block of their own."""
    found: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        for trial in case.trials if case.status == "tolerated" else ():
            for verdict in trial.verdicts:
                if verdict.error:
                    found.setdefault((verdict.judge, verdict.error), []).append(case.label)
    shown = [*found.items()] if verbosity > 0 else [*found.items()][:_ERRORS_SHOWN]
    lines: list[Line] = []
    for (judge, error), labels in shown:
        more = f" and {count(len(labels) - 1, 'more case')}" if len(labels) > 1 else ""
        text = f"judge error: {one_line(judge)}: {one_line(error)} ({one_line(labels[0])}{more})"
        lines += [Line(f"  {part}", "red") for part in hanging(text, width - 2)]
    if len(found) > len(shown):
        lines.append(Line(f"  {len(found) - len(shown)} more judge errors (-v shows all)", "red"))
    return lines


def _tolerated(cases: Iterable[CaseOutcome], width: int, verbosity: int) -> list[Line]:
    names = [one_line(case.label) for case in cases if case.status == "tolerated"]
    if not names:
        return []
    shown = names if verbosity > 0 else names[:_NAMES_SHOWN]
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    text = f"tolerated: {', '.join(shown)}{more}"
    return [Line(f"  {part}", "yellow") for part in hanging(text, width - 2)]


def usage_text(suite: SuiteSummary) -> str:
    """``$0.42, 12.3k tokens in, 950 out, 12 s of agent time, 0.4 s judging``."""
    totals = suite.totals
    cost = "cost unknown" if totals.cost_usd is None else money(totals.cost_usd)
    if totals.cost_usd is not None and totals.unknown_costs:
        cost += f" and {count(totals.unknown_costs, 'trial')} of unknown cost"
    parts = [cost]
    if totals.input_tokens is not None or totals.output_tokens is not None:
        read, written = tokens(totals.input_tokens or 0), tokens(totals.output_tokens or 0)
        parts.append(f"{read} tokens in, {written} out")
    parts.append(f"{seconds(totals.duration_s)} of agent time, {seconds(totals.judging_s)} judging")
    if totals.judge_calls:
        calls = (totals.judge_calls, totals.judge_recorded, totals.judge_cost_usd)
        parts.append(_asked("judges' models", *calls))
    if totals.answer_calls:
        calls = (totals.answer_calls, totals.answer_recorded, totals.answer_cost_usd)
        parts.append(_asked("the model that answers agents", *calls))
    return ", ".join(parts)


def _asked(whom: str, calls: int, recorded: int, cost_usd: float | None) -> str:
    """``28 calls of judges' models (20 recorded, $0.01)``."""
    said = f"{count(calls, 'call')} of {whom}"
    if recorded == calls:
        return f"{said} ({'all ' if calls > 1 else ''}recorded)"
    cost = "cost unknown" if cost_usd is None else money(cost_usd)
    return f"{said} ({f'{recorded} recorded, ' if recorded else ''}{cost})"


def gate_text(gate: Gate) -> str:
    """``GATE answer min_mean >= 3.5: 3.72 [3.41, 4.02] over 40 cases -> passed``; of a judge that
    agrees with its human labels no better than chance ``... over 40 cases, unvalidated -> passed``.
    """
    head = f"GATE {one_line(gate.name)} {gate.key} {gate.operator} {gate.bound:g}"
    modifiers = [gate.split] if gate.split else []
    if gate.confidence is not None:
        modifiers.append(f"at {100 * gate.confidence:g} %")
    if modifiers:
        head += f" ({', '.join(modifiers)})"
    if gate.outcome == "not decided":
        return f"{head}: not decided ({gate.reason})"
    if gate.value is None:
        return f"{head}: {gate.reason} -> {gate.outcome}"
    mark = f", {UNVALIDATED}" if gate.unvalidated else ""
    if gate.key == "min_cases":
        return f"{head}: {count(gate.cases, 'case')}{mark} -> {gate.outcome}"
    number = _apart_from_bound(gate, gate.value)
    reason = f" ({gate.reason})" if gate.reason else ""
    return f"{head}: {number} over {count(gate.cases, 'case')}{mark} -> {gate.outcome}{reason}"


def _apart_from_bound(gate: Gate, value: float) -> str:
    """The estimate; a missed 0.8996 must not read as ``0.90`` beside its bound of 0.9."""
    number = estimate(value, gate.interval)
    shown, _, interval = number.partition(" ")
    if gate.outcome == "missed" and float(shown) == gate.bound and value != gate.bound:
        return f"{value:.6g} {interval}".rstrip()
    return number


def _gate_lines(gate: Gate, width: int) -> list[Line]:
    """The gate's line, which stays in one piece for those who search for it; only the reason of
    a miss may go to a second one.
    """
    text, markup = gate_text(gate), _MARKUP[gate.outcome]
    reason = f"({gate.reason})"
    too_long = display_width(text) > width
    if too_long and gate.outcome == "missed" and text.endswith(f" {reason}"):
        return [Line(text[: -len(reason) - 1], markup), Line(f"    {reason}", markup)]
    return [Line(text, markup)]
