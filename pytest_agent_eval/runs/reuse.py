"""Whether a stored trial still stands: carry it out again, keep it, or ask some judges. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_agent_eval.results import TrialResult, Verdict

__all__ = ["Reuse", "combined_verdicts", "decide_reuse"]


@dataclass(frozen=True, slots=True)
class Reuse:
    """What is to be done about one trial.

    Attributes:
        action: ``run``: carry it out; ``keep``: the stored result stands as it is; ``judge``: the
            execution stands, and its verdicts are to be completed and its status decided anew.
        reason: why it is not simply kept, one sentence; empty for ``keep``.
        ask: with ``judge``, the judges to ask, in the suite's order; may be empty, where judges
            were only removed or reordered.
        kept: with ``judge``, the stored verdicts that stand, in the suite's order.
    """

    action: Literal["run", "keep", "judge"]
    reason: str = ""
    ask: tuple[str, ...] = ()
    kept: tuple[Verdict, ...] = ()


def decide_reuse(
    stored: TrialResult | None,
    *,
    case_digest: str,
    execution_digest: str,
    judges: Mapping[str, str],
    recorded: bool = True,
    rescore: bool = False,
) -> Reuse:
    """What is to be done about a trial of which this result is stored.

    Args:
        stored: the last stored result, or None.
        case_digest: of the case as it is now.
        execution_digest: of the suite (or variant) as it is now.
        judges: name -> digest of the judges there are now, in the suite's order; those that
            judge single trials.
        recorded: the trial's record is still there, so that judges can be asked about it.
        rescore: ask every judge again; what cannot be judged then (``run``) has to be left out
            by the caller, who runs no agent.

    A digest that is empty is unknown, and what is unknown is not the same.
    """
    if stored is None:
        return Reuse("run", "no result is stored")
    reason = _outdated(stored, case_digest, execution_digest)
    if reason:
        return Reuse("run", reason)
    names = [verdict.judge for verdict in stored.verdicts]
    by_name = {verdict.judge: verdict for verdict in stored.verdicts}
    ask: list[str] = []
    reasons: list[str] = []
    for name, digest in judges.items():
        why = "judged again" if rescore else _asked_again(by_name.get(name), digest)
        if why:
            ask.append(name)
            reasons.append(f"{name}: {why}")
    if not ask and names == list(judges):
        return Reuse("keep")
    if ask and not recorded:
        return Reuse("run", f"the record to judge is no longer there ({'; '.join(reasons)})")
    reasons += [f"{name}: no longer a judge" for name in by_name if name not in judges]
    kept = tuple(by_name[name] for name in judges if name not in ask)
    return Reuse("judge", "; ".join(reasons) or "the judges' order changed", tuple(ask), kept)


def _outdated(stored: TrialResult, case_digest: str, execution_digest: str) -> str:
    """Why the execution does not stand; empty if it does."""
    if stored.status == "error":
        return f"it could not be carried out: {stored.reason or stored.kind or 'error'}"
    if stored.execution is None:
        return f"it was not started: {stored.reason or stored.kind or stored.status}"
    if not stored.case_digest or stored.case_digest != case_digest:
        return "the case changed"
    if not stored.execution_digest:
        return "it is not stored with what configuration it was carried out"
    if stored.execution_digest != execution_digest:
        return "the configuration of its execution changed"
    return ""


def _asked_again(verdict: Verdict | None, digest: str) -> str:
    """Why a judge is to be asked; empty if its stored verdict stands."""
    if verdict is None:
        return "a new judge"
    if verdict.error:
        return "it gave an error"
    if not digest or verdict.digest != digest:
        return "its definition changed"
    return ""


def combined_verdicts(
    kept: Iterable[Verdict], given: Iterable[Verdict], judges: Sequence[str]
) -> tuple[Verdict, ...]:
    """Stored and new verdicts in the suite's order; a new one wins. Others are left out."""
    found = {verdict.judge: verdict for verdict in (*kept, *given)}
    return tuple(found[name] for name in judges if name in found)
