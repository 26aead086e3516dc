"""The summary of a run from what is stored of it, also of one that was killed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_agent_eval.documents import read_document
from pytest_agent_eval.errors import DocumentError
from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.evidence.gates import Gate
from pytest_agent_eval.evidence.intervals import Interval
from pytest_agent_eval.evidence.summary import SuiteInfo, Summary, summarise
from pytest_agent_eval.runs.stored import StoredRun

__all__ = ["stored_summary"]

_Key = tuple[str, str | None]
"""A suite, and its variant where it has some."""


def stored_summary(run: StoredRun) -> Summary:
    """Aggregates from the stored results; gates as they were decided, from ``summary.yaml``.

    What a header does not say of a suite (of a run that was killed, or made by an older version)
    is read off its results.
    """
    summary = summarise(
        _infos(run),
        run.results,
        superseded=run.superseded,
        gate_mode="never",
        interrupted=not run.complete and "ended" not in run.header and not run.writer,
    )
    decided = _gates(run) if "ended" in run.header else {}
    return replace(
        summary,
        suites=tuple(
            replace(suite, gates=decided[key]) if (key := _key(suite.info)) in decided else suite
            for suite in summary.suites
        ),
    )


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


def _gates(run: StoredRun) -> dict[_Key, tuple[Gate, ...]]:
    """Suite and variant -> its gates; nothing where ``summary.yaml`` cannot be used."""
    try:
        data = read_document(run.path / "summary.yaml")
        several = data.get("suites")
        suites = list(several.values()) if isinstance(several, dict) else [data]
        found: dict[_Key, list[Gate]] = {}
        for suite in suites:
            key = str(suite["file"])
            for variant in suite.get("variants") or (None,):
                found[key, variant] = []
            for gate in suite["gates"]:
                found[key, gate.get("variant")].append(_gate(key, gate))
        return {key: tuple(gates) for key, gates in found.items()}
    except (DocumentError, AttributeError, KeyError, TypeError):
        return {}


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
    )
