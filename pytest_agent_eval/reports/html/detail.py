"""What the page of one case shows: input, outputs, events, logs and verdicts of each trial."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.reports.failure import verdict_state
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.reports.html.budget import Purse
from pytest_agent_eval.reports.html.case_files import (
    INPUTS,
    CaseFiles,
    expected_output,
    inside,
)
from pytest_agent_eval.reports.html.stored import (
    EVENTS,
    FILES,
    MODIFIED,
    Images,
    events,
    files,
    head,
    is_binary,
    log,
    record_json,
    tree,
)
from pytest_agent_eval.reports.numbers import money, score, seconds, tokens
from pytest_agent_eval.results import TrialResult, Verdict

__all__ = ["Details"]

_STDOUT, _STDERR = "stdout.log", "stderr.log"
_MOST_COMPARED = 64 * 1024
"""Bytes of a file that is compared with what it was."""


@dataclass(frozen=True)
class Details:
    """Makes what is shown of the cases of one suite.

    Attributes:
        run: the run.
        case_files: where the suite's cases are.
        images: the room for images, of the whole report.
        place: the directory of the report; paths that are shown are relative to it.
    """

    run: FinishedRun
    case_files: CaseFiles
    images: Images
    place: Path

    def case(self, case: CaseOutcome, allowance: int) -> dict[str, Any]:
        """All that is shown of a case; ``allowance``: bytes for each of its trials."""
        first = case.trials[0]
        directory = self.case_files.directory(first)
        data: dict[str, Any] = {}
        if directory is not None:
            purse = Purse(allowance // 4)
            data |= self._input(directory, purse, first)
            expected = expected_output(directory)
            if expected is not None:
                data["expected"] = purse.text(expected, 0.8, self._see(directory))
        rest = allowance - allowance // 4
        data["trials"] = [self._trial(trial, Purse(rest), directory) for trial in case.trials]
        return data

    def _see(self, path: str) -> str:
        """A path as it is shown: relative to the report."""
        for known in (self.run.directory, self.case_files.suite_directory):
            if known is not None and path.startswith(f"{known}{os.sep}"):
                rest = path[len(str(known)) + 1 :].replace(os.sep, "/")
                return f"{_relative(str(known), str(self.place))}/{rest}"
        return _relative(path, str(self.place))

    def _input(self, directory: str, purse: Purse, result: TrialResult) -> dict[str, Any]:
        path = next((file for name in INPUTS if (file := inside(directory, name))), None)
        if path is None:
            return {}
        try:
            status = os.stat(path)
        except OSError:
            return {}
        see = self._see(path)
        data = head(path, purse.share(0.6))
        found: dict[str, Any] = {
            "input": purse.piece(data, status.st_size, see),
            "input_name": os.path.basename(path),
        }
        if result.started and status.st_mtime > _epoch(result.started):
            found["changed"] = True
        return found

    def _trial(self, result: TrialResult, purse: Purse, case: str | None) -> dict[str, Any]:
        data = _said(result, purse)
        data["facts"] = [*_facts(result)]
        if result.notes:
            data["notes"] = [purse.text(note, 0.1) for note in result.notes[:20]]
        record = self.run.record(result)
        old = self._baseline(result, Purse(purse.left // 4))
        if old is not None:
            purse.left -= purse.left // 4
            data["old"] = old
        if record is not None:
            data |= self._record(str(record), purse, case)
        return data

    def _record(self, directory: str, purse: Purse, case: str | None) -> dict[str, Any]:
        see = self._see(directory)
        stored = record_json(directory)
        sizes = tree(directory)
        data: dict[str, Any] = {"record": see}
        output = stored.get("output")
        if isinstance(output, str) and output:
            data["output"] = purse.text(output, 0.4, f"{see}/record.json")
        found = [*files(directory, sizes, purse, 0.6, self.images, see)]
        if found:
            data["files"] = found
            if case is not None:
                self._compare(found, case, purse)
        if EVENTS in sizes:
            path = os.path.join(directory, EVENTS)
            told, missing = events(path, sizes[EVENTS], purse, 0.6)
            data["events"] = told
            if missing > 0:
                data["events_cut"] = {"cut": missing, "see": f"{see}/{EVENTS}"}
        for name, key in ((_STDERR, "stderr"), (_STDOUT, "stdout")):
            if sizes.get(name):
                path = os.path.join(directory, name)
                data[key] = log(path, sizes[name], purse, 0.6, f"{see}/{name}")
        if data.get("stdout") == data.get("output"):
            data.pop("stdout", None)  # what a command printed is its output
        others = [path for path in sizes if "/" in path and not path.startswith(f"{FILES}/")]
        if others:
            data["others"] = [[path, sizes[path]] for path in others[:100]]
        return data

    def _compare(self, found: list[dict[str, Any]], case: str, purse: Purse) -> None:
        """Put beside each file that was changed in place what it was, where that can be found."""
        suite = self.case_files.suite_directory
        for entry in found:
            path = entry.get("path", "")
            if not path.startswith(f"{MODIFIED}/") or "text" not in entry:
                continue
            name = path[len(MODIFIED) + 1 :]
            was = inside(case, name) or (inside(str(suite), name) if suite else None)
            if was is None:
                continue
            data = head(was, _MOST_COMPARED + 1)
            if len(data) <= min(purse.share(0.5), _MOST_COMPARED) and not is_binary(data):
                entry["was"] = purse.piece(data, len(data), "")

    def _baseline(self, result: TrialResult, purse: Purse) -> dict[str, Any] | None:
        found = self.run.baseline_trial(result.suite, result.case, result.variant, result.trial)
        if found is None or self.run.baseline is None:
            return None
        data = _said(found.result, purse)
        path = os.path.normpath(self.run.baseline.path / found.result.record)
        kept_beside = path.startswith(str(self.run.baseline.path.parent) + os.sep)
        if found.result.record and kept_beside and os.path.isdir(path):
            see = self._see(path)
            output = record_json(path).get("output")
            if isinstance(output, str) and output:
                data["output"] = purse.text(output, 0.4, f"{see}/record.json")
            left = [*files(path, tree(path), purse, 0.9, Images(0), see, shown=10)]
            if left:
                data["files"] = left
            data["record"] = see
        return data


@lru_cache(maxsize=16)
def _relative(path: str, start: str) -> str:
    return os.path.relpath(path, start).replace(os.sep, "/")


def _said(result: TrialResult, purse: Purse) -> dict[str, Any]:
    verdicts = [result.execution] if result.execution is not None else []
    verdicts += result.verdicts
    data: dict[str, Any] = {
        "trial": result.trial,
        "status": result.status,
        "verdicts": [_verdict(verdict, purse) for verdict in verdicts],
    }
    if result.reason:
        data["reason"] = purse.text(result.reason, 0.3)
    return data


def _verdict(verdict: Verdict, purse: Purse) -> dict[str, Any]:
    data: dict[str, Any] = {"judge": verdict.judge, "state": verdict_state(verdict)}
    if verdict.value is not None:
        data["value"] = score(verdict.value)
    for name in ("rationale", "error", "detail"):
        text = getattr(verdict, name)
        if text:
            data[name] = purse.text(text, 0.15)
    asked = [*_asked(verdict)]
    if asked:
        data["asked"] = asked
    return data


def _asked(verdict: Verdict) -> Iterator[str]:
    """What asking a model took, and what its samples said."""
    asked = verdict.asked
    if model := asked.get("model"):
        yield str(model)
    if (cost := asked.get("cost_usd")) and isinstance(cost, int | float):
        yield money(cost)
    if isinstance(values := asked.get("values"), list):
        yield "samples " + ", ".join(score(value) for value in values[:20])
    if isinstance(agreement := asked.get("agreement"), int | float):
        yield f"agreement {agreement:.2f}"


def _facts(result: TrialResult) -> Iterator[tuple[str, str]]:
    usage = result.usage
    if result.execution is not None:
        yield "agent", seconds(result.duration_s)
        yield "judging", seconds(result.judging_s)
        yield "cost", "unknown" if usage.cost_usd is None else money(usage.cost_usd)
    if usage.input_tokens is not None or usage.output_tokens is not None:
        yield (
            "tokens",
            f"{tokens(usage.input_tokens or 0)} in, {tokens(usage.output_tokens or 0)} out",
        )
    if usage.num_turns is not None:
        yield "turns", str(usage.num_turns)
    if usage.model:
        yield "model", usage.model[:200]
    if result.timed_out:
        yield "exit", "ran out of time"
    elif result.exit_code is not None:
        yield "exit", str(result.exit_code)
    if result.started:
        yield "started", result.started


def _epoch(started: str) -> float:
    try:
        moment = datetime.fromisoformat(started.replace("Z", "+00:00"))
    except ValueError:
        return float("inf")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()
