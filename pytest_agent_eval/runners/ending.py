"""What the end of a process says about a task."""

from __future__ import annotations

from pytest_agent_eval.runners.base import Failure
from pytest_agent_eval.runners.process import ProcessOutcome

__all__ = ["ended_early", "notes_of"]


def ended_early(outcome: ProcessOutcome, timeout: float) -> tuple[Failure | None, str]:
    """The failure of a process that was ended, and one sentence about it; (None, "") for others.

    Args:
        outcome: of the process.
        timeout: seconds it was given.
    """
    if outcome.timed_out:
        return "timeout", f"timed out after {timeout:g} s"
    if outcome.cancelled:
        return "infrastructure", "cancelled before it ended"
    return None, ""


def notes_of(outcome: ProcessOutcome) -> tuple[str, ...]:
    """What is worth storing about the processes that an agent started."""
    notes = []
    if outcome.leftovers:
        notes.append(f"ended {_count(outcome.leftovers)} that the agent left running")
    if outcome.survivors:
        notes.append(f"{_count(outcome.survivors)} of the agent could not be ended")
    if outcome.unwatched:
        notes.append(outcome.unwatched)
    return tuple(notes)


def _count(number: int) -> str:
    return f"{number} process" if number == 1 else f"{number} processes"
