"""From the trials of a case to the case: its outcome and its line in the summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_agent_eval.results import Status, TrialResult, Value

__all__ = ["CaseOutcome", "PassRule", "case_outcomes", "combine_statuses"]

PassRule = str
"""``all``, ``any``, ``majority`` or ``rate:X``: how a case's trials make its outcome."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """One case (in one variant) with all its trials.

    Attributes:
        label: the case's name, with ``[variant]`` where it has one.
        split: ``dev`` or ``holdout``.
        status: of the case.
        trials: in their order.
    """

    label: str
    split: str
    status: Status
    trials: tuple[TrialResult, ...]

    @property
    def left_out(self) -> int:
        """How many of its trials were not carried out because the session's budget was spent."""
        return sum(map(_left_out, self.trials))

    @property
    def told(self) -> TrialResult:
        """The trial that shows best what became of the case."""
        return next((t for t in self.trials if t.status == self.status), self.trials[0])

    @property
    def reason(self) -> str:
        """Why the case did not pass, in one sentence; empty if it did."""
        if self.status == "passed":
            return ""
        if len(self.trials) == 1:
            return self.told.reason
        passed = sum(trial.status == "passed" for trial in self.trials)
        return f"{passed} of {len(self.trials)} trials passed: {self.told.reason}"

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types: what became of the case and where its record is."""
        told = self.told
        data: dict[str, Any] = {"status": self.status, "split": self.split}
        for name in ("kind", "reason", "group", "category"):
            if value := getattr(told, name):
                data[name] = value
        if len(self.trials) > 1:
            data["trials"] = [trial.status for trial in self.trials]
        if told.record:
            data["record"] = told.record
        return data

    def verdicts(self, kinds: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Judge name -> ``{value, rationale, judge_type, error?, trials?}``.

        With several trials the value is that of all where they agree, else their mean (true
        counting as 1), and ``trials`` lists them.
        """
        if len(self.trials) == 1:
            return {
                verdict.judge: _entry(
                    verdict.value, verdict.rationale, kinds.get(verdict.judge, ""), verdict.error
                )
                for verdict in self.trials[0].verdicts
            }
        found: dict[str, dict[str, Any]] = {}
        by_judge: dict[str, list[Any]] = {}
        for trial in self.trials:
            for verdict in trial.verdicts:
                by_judge.setdefault(verdict.judge, []).append(verdict)
        for name, verdicts in by_judge.items():
            values = [verdict.value for verdict in verdicts]
            told = next((v for v in verdicts if v.value is not None), verdicts[0])
            value = _common(values)
            error = "" if value is not None else next((v.error for v in verdicts if v.error), "")
            found[name] = _entry(value, told.rationale, kinds.get(name, ""), error)
            found[name]["trials"] = values
        return found


def _entry(value: Value, rationale: str, kind: str, error: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"value": value, "rationale": rationale, "judge_type": kind}
    if error:
        entry["error"] = error
    return entry


def _common(values: Iterable[Value]) -> Value:
    known = [value for value in values if value is not None]
    if not known:
        return None
    first = known[0]
    if all(type(value) is type(first) and value == first for value in known):
        return first
    try:
        return math.fsum(known) / len(known)
    except OverflowError:
        return None


def case_outcomes(results: Iterable[TrialResult], rule: PassRule) -> tuple[CaseOutcome, ...]:
    """The cases of one suite in the order in which they first occur; trials in their order."""
    by_case: dict[tuple[str, str | None], list[TrialResult]] = {}
    for result in results:
        by_case.setdefault((result.case, result.variant), []).append(result)
    outcomes = []
    for (name, variant), trials in by_case.items():
        if len(trials) > 1:
            trials.sort(key=lambda trial: trial.trial)
        label = f"{name}[{variant}]" if variant else name
        status = _status(trials, rule)
        outcomes.append(CaseOutcome(label, trials[0].split, status, tuple(trials)))
    return tuple(outcomes)


def _left_out(trial: TrialResult) -> bool:
    return trial.status == "skipped" and trial.kind == "budget"


def _status(trials: list[TrialResult], rule: PassRule) -> Status:
    """That of the case; ``skipped`` where trials that were left out could have changed it."""
    statuses: list[Status] = [trial.status for trial in trials]
    found = combine_statuses(statuses, rule)
    if found in ("error", "skipped") or not any(map(_left_out, trials)):
        return found
    ends: list[Status] = ["passed", "failed"]
    could = {
        combine_statuses([end if _left_out(trial) else trial.status for trial in trials], rule)
        for end in ends
    }
    return "skipped" if "failed" in could and len(could) > 1 else found


def combine_statuses(statuses: list[Status], rule: PassRule) -> Status:
    """The status of a case from those of its trials (at least one).

    Trials in error or skipped say nothing about the agent: if no other is left the case is that
    too. Of the rest, tolerated ones count as passing, and enough must pass by ``rule``.

    Raises:
        ValueError: the rule is none of ``all``, ``any``, ``majority``, ``rate:X``.
    """
    if len(statuses) == 1:
        return statuses[0]
    judged = [status for status in statuses if status not in ("error", "skipped")]
    if not judged:
        return "error" if "error" in statuses else "skipped"
    passed = judged.count("passed")
    if not _enough(passed + judged.count("tolerated"), len(judged), rule):
        return "failed"
    if rule == "all" and "error" in statuses:
        return "error"
    return "passed" if _enough(passed, len(judged), rule) else "tolerated"


def _enough(passed: int, trials: int, rule: PassRule) -> bool:
    if rule == "all":
        return passed == trials
    if rule == "any":
        return passed > 0
    if rule == "majority":
        return 2 * passed > trials
    if rule.startswith("rate:"):
        return passed / trials >= float(rule[len("rate:") :]) - 1e-12
    raise ValueError(f"{rule!r} is none of all, any, majority, rate:X")
