"""What an agent judge asks of its agent, and what it gets back.

Judges know no runner. Whoever makes judges and knows both hands in something that runs errands.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pytest_agent_eval.deadline import Steps
from pytest_agent_eval.results import Usage

__all__ = ["Errand", "ErrandResult", "JudgingAgent"]


@dataclass(frozen=True, slots=True)
class Errand:
    """One judgement to be made.

    Attributes:
        workspace: the staged directory (absolute); ``output/`` in it is empty.
        log_dir: for logs (absolute; outside of the workspace).
        prompt: the whole question.
        short_prompt: says in which file of the workspace the whole question stands, for agents
            that cannot be given a long one.
        timeout: seconds.
        sample: 0-based.
        case: name of the case, for messages; the agent is not told.
        cancelled: ends it early when set.
    """

    workspace: Path
    log_dir: Path
    prompt: str
    short_prompt: str
    timeout: float
    sample: int = 0
    case: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class ErrandResult:
    """What came of an errand.

    Attributes:
        output: the agent's final message.
        error: why nothing it said counts, in one sentence; empty when it worked.
        detail: more about that.
        started: it was started, and may have cost something.
        usage: tokens and cost; a cost is that of calls that were made now.
        recorded: calls of its models that were read from recordings.
    """

    output: str = ""
    error: str = ""
    detail: str = ""
    started: bool = True
    usage: Usage = field(default_factory=Usage)
    recorded: int = 0


class JudgingAgent(Protocol):
    """An agent that judges. Used from several threads at once."""

    def steps(self, errand: Errand) -> Steps[ErrandResult]:
        """Run one errand; raises nothing for what the agent does wrong."""
        ...
