"""How often a holdout half has been looked at: what a run adds to the ledger, and its count. Pure.

Each look at a holdout half that is followed by a change makes it a little more like the dev half.
The ledger does not prevent that; it lets everybody see it.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xxhash

from pytest_agent_eval.runs.ledger import Look

if TYPE_CHECKING:
    from pytest_agent_eval.evidence.outcomes import CaseOutcome
    from pytest_agent_eval.evidence.summary import SuiteInfo

__all__ = ["Looks", "count_looks", "look_at"]

_JUDGED = ("passed", "failed", "tolerated")


@dataclass(frozen=True, slots=True)
class Looks:
    """How often the holdout half has been looked at for a suite, this run included.

    Attributes:
        total: runs.
        version: those of them with the same file of the suite.
        last: date of the last look before this run, ``2026-01-03``; empty if there was none.
        ledger: the file that says so, relative to the root directory.
    """

    total: int
    version: int
    last: str
    ledger: str

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types: what summary.yaml shows of it."""
        return {
            "looks": self.total,
            "looks_with_this_version": self.version,
            "last_look": self.last or None,
            "ledger": self.ledger,
        }


def look_at(
    info: SuiteInfo,
    cases: Iterable[CaseOutcome],
    *,
    date: str,
    run: str,
    git: Mapping[str, Any] | None = None,
) -> Look | None:
    """What a run has to say in the ledger; None where no holdout case has a result.

    Errors of the infrastructure and what was skipped say nothing about the agent: a run that came
    to nothing else is no look.

    Args:
        info: the suite, or any of its variants.
        cases: of all of its variants.
        date: UTC, ISO 8601.
        run: its name.
        git: ``{commit, dirty}``, or None.
    """
    held = [case for case in cases if case.split == "holdout"]
    counts: Counter[str] = Counter(case.status for case in held)
    if not info.ledger or not any(counts[status] for status in _JUDGED):
        return None
    contents = {trial.case: trial.case_digest for case in held for trial in case.trials}
    lines = "".join(f"{name}\0{contents[name]}\n" for name in sorted(contents))
    return Look(
        date=date,
        run=run,
        suite=posixpath.relpath(info.file, posixpath.dirname(info.ledger) or "."),
        version=info.digest,
        dataset=xxhash.xxh3_128_hexdigest(lines.encode("utf-8", "surrogatepass")),
        cases=len(contents),
        counts=dict(sorted(counts.items())),
        commit=(git or {}).get("commit"),
        dirty=(git or {}).get("dirty"),
        revealed=tuple(sorted(contents)) if info.revealed else (),
    )


def count_looks(entries: Sequence[Look], look: Look, ledger: str) -> Looks:
    """Count the runs that looked, ``look`` among them whether it is in ``entries`` or not."""
    own = [entry for entry in entries if entry.suite == look.suite]
    dates = [entry.date for entry in own if entry.run != look.run]
    same = {entry.run for entry in own if entry.version == look.version}
    return Looks(
        total=len({entry.run for entry in own} | {look.run}),
        version=len(same | {look.run}),
        last=max(dates, default="")[:10],
        ledger=ledger,
    )
