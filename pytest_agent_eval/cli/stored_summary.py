"""The summary of a run from what is stored of it, also of one that was killed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_agent_eval.documents import read_document
from pytest_agent_eval.errors import DocumentError
from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.calibration import Calibration
from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.intervals import Interval
from pytest_agent_eval.evidence.looks import Looks
from pytest_agent_eval.evidence.summary import (
    Against,
    SuiteInfo,
    SuiteSummary,
    Summary,
    calibrations,
    summarise,
)
from pytest_agent_eval.runs.stored import StoredRun

__all__ = ["left_out", "stored_calibrations", "stored_summary"]

_Key = tuple[str, str | None]
"""A suite, and its variant where it has some."""


def stored_summary(run: StoredRun, baseline: StoredRun | None = None) -> Summary:
    """Aggregates from the stored results; gates as they were decided, from ``summary.yaml``, as is
    which cases the session's budget left out.

    What a header does not say of a suite (of a run that was killed, or made by an older version)
    is read off its results.

    Args:
        run: the run.
        baseline: the run to compare it with.
    """
    off = _options(run).get("gate") == "never"
    summary = summarise(
        _infos(run) if baseline is None else _compared(_infos(run), baseline.path.name),
        run.results,
        superseded=run.superseded,
        gate_mode="never" if off else "complete",
        interrupted=not run.complete and not run.writer,
        against=None
        if baseline is None
        else Against(baseline.path.name, baseline.results, baseline.header, run.header),
    )
    said = _said(run) if "ended" in run.header else {}
    suites = tuple(
        _as_said(suite, said[key])
        if (key := _key(suite.info)) in said
        else replace(suite, gates=tuple(_undecided(run, gate, said) for gate in suite.gates))
        for suite in summary.suites
    )
    left_out = any(any(suite.coverage.left_out.values()) for suite in suites)
    return replace(summary, suites=suites, interrupted=summary.interrupted and not left_out)


def stored_calibrations(run: StoredRun) -> dict[_Key, tuple[Calibration, ...]]:
    """Suite and variant -> its judges that have human labels, compared with those of that time."""
    return {_key(info): calibrations(info, run.results) for info in _infos(run)}


def left_out(run: StoredRun) -> list[tuple[str, str]]:
    """Name and reason of each case that the session's budget left out, or some of its trials."""
    if "ended" not in run.header:
        return []
    return [
        (str(name), str(case.get("reason", "")))
        for suite in _documents(run)
        if isinstance(cases := suite.get("cases"), Mapping)
        for name, case in cases.items()
        if isinstance(case, Mapping)
        and (case.get("status"), case.get("kind")) == ("skipped", "budget")
    ]


@dataclass(frozen=True, slots=True)
class _Said:
    """What ``summary.yaml`` says of a suite or a variant."""

    gates: tuple[Gate, ...]
    statuses: Mapping[str, int]
    left_out: Mapping[str, int]
    looks: Looks | None = None


def _as_said(suite: SuiteSummary, said: _Said) -> SuiteSummary:
    suite = replace(suite, gates=said.gates, looks=said.looks)
    if not any(said.left_out.values()):
        return suite
    coverage = replace(suite.coverage, left_out=said.left_out)
    return replace(suite, coverage=coverage, statuses=said.statuses)


def _undecided(run: StoredRun, gate: Gate, said: Mapping[_Key, _Said]) -> Gate:
    """A gate of which no decision is stored: with the reason why there can be none, or is none."""
    always = _options(run).get("gate") == "always"
    if gate.outcome == "not decided" and "ended" not in run.header and not always:
        return gate
    if said:
        reason = "the last session did not run it"
    elif "ended" in run.header:
        reason = "summary.yaml cannot be read"
    else:
        reason = "the session has not ended" if run.writer else "the session did not end by itself"
    return replace(gate, value=None, interval=None, cases=0, outcome="not decided", reason=reason)


def _options(run: StoredRun) -> Mapping[str, Any]:
    """Those of the session that wrote last."""
    sessions = run.header.get("sessions")
    last = sessions[-1] if isinstance(sessions, list) and sessions else run.header
    options = last.get("options") if isinstance(last, Mapping) else None
    return options if isinstance(options, Mapping) else {}


def _key(info: SuiteInfo) -> _Key:
    return info.key, info.variant


def _infos(run: StoredRun) -> list[SuiteInfo]:
    judges: dict[_Key, dict[str, None]] = {}
    for result in run.results:
        names = judges.setdefault((result.suite, result.variant), {})
        names.update(dict.fromkeys(verdict.judge for verdict in result.verdicts))
    entries = run.header.get("suites")
    known = {
        (str(entry.get("key") or entry.get("file")), _text_or_none(entry.get("variant"))): entry
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    }
    told = {suite: entry for (suite, _), entry in known.items()}
    varied = {suite for suite, variant in judges if variant is not None}
    infos = []
    for suite, variant in dict.fromkeys((*known, *judges)):
        if variant is None and suite in varied and (suite, None) not in judges:
            continue  # an entry that does not say which variants there are; the results do
        entry = told.get(suite, {})
        info = _told(known.get((suite, variant), {}))
        if info is None:
            name = str(entry.get("name") or suite)
            found = tuple(JudgeInfo(judge) for judge in judges.get((suite, variant), ()))
            info = SuiteInfo(suite, name, variant, file=suite, judges=found)
        infos.append(info)
    return infos


def _compared(infos: Iterable[SuiteInfo], baseline: str) -> list[SuiteInfo]:
    return [replace(info, baseline=baseline) for info in infos]


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def _told(entry: Mapping[str, Any]) -> SuiteInfo | None:
    """What the header says of a suite, if it says all."""
    if "key" not in entry or "judges" not in entry:
        return None
    try:
        return SuiteInfo.from_dict(entry)
    except (TypeError, KeyError, AttributeError):
        return None


def _said(run: StoredRun) -> dict[_Key, _Said]:
    """Suite and variant -> what was said of it; nothing where ``summary.yaml`` cannot be used."""
    found = {}
    try:
        for suite in _documents(run):
            key = str(suite["file"])
            gates = [_gate(key, gate) for gate in suite["gates"]]
            looks = _looks(suite.get("holdout") or {})
            for variant, part in (suite.get("variants") or {None: suite}).items():
                found[key, variant] = _Said(
                    tuple(gate for gate in gates if gate.variant == variant),
                    dict(part.get("status", {})),
                    dict(part.get("coverage", {}).get("left_out", {})),
                    looks,
                )
                looks = None  # the first variant says it for all
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return found


def _looks(data: Mapping[str, Any]) -> Looks | None:
    if "looks" not in data:
        return None
    return Looks(
        total=int(data["looks"]),
        version=int(data["looks_with_this_version"]),
        last=str(data["last_look"] or ""),
        ledger=str(data["ledger"]),
    )


def _documents(run: StoredRun) -> list[Mapping[str, Any]]:
    """The parts of ``summary.yaml``, one a suite; empty where it is not there or something else."""
    try:
        data = read_document(run.path / "summary.yaml")
    except DocumentError:
        return []
    if not isinstance(data, Mapping):
        return []
    several = data.get("suites")
    parts = several.values() if isinstance(several, Mapping) else [data]
    return [part for part in parts if isinstance(part, Mapping)]


def _gate(suite: str, data: Mapping[str, Any]) -> Gate:
    interval = data.get("interval")
    return Gate(
        suite=suite,
        judge=str(data["judge"]),
        key=data["key"],
        bound=data["bound"],
        value=data.get("value"),
        interval=Interval(**interval) if interval else None,
        cases=int(data["cases"]),
        outcome=data["outcome"],
        reason=str(data.get("reason", "")),
        split=data.get("split"),
        confidence=data.get("confidence"),
        variant=data.get("variant"),
        unvalidated=bool(data.get("unvalidated")),
        part=str(data.get("part", "")),
    )
