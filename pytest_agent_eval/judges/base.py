"""The contract of a judge: a record in, a raw answer out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pytest_agent_eval.deadline import Steps
    from pytest_agent_eval.judges.errand import JudgingAgent
    from pytest_agent_eval.llm import Gateway
    from pytest_agent_eval.suite import JudgeConfig, Suite

__all__ = ["Judge", "JudgeContext", "JudgeKind", "SteppedJudge"]


class Judge(Protocol):
    """Judges records; called from several threads at once, so it keeps no state of a record.

    It may have an attribute ``definition``, anything YAML can hold: what makes it the judge it is
    besides its entry in eval.yaml and the files that this names (a model, a version of a prompt).
    Verdicts of a judge whose definition is another one are asked for again on a resumed run.
    """

    def __call__(self, record: Mapping[str, Any]) -> Any:
        """Judge one record.

        Returns:
            A bool or a number, ``(value, rationale)``, or an object with ``value`` and
            ``rationale`` such as a :class:`~pytest_agent_eval.results.Verdict`.

        May raise anything: the verdict is a judge error then.
        """
        ...


class SteppedJudge(Judge, Protocol):
    """A judge that watches its own time, because what takes time in it is no code of ours."""

    def judging_steps(self, record: Mapping[str, Any], cancelled: threading.Event) -> Steps[Any]:
        """What a call does, with code of the suite's author as steps that have a time limit.

        Args:
            record: the record.
            cancelled: ends the judgement early when set.
        """
        ...


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """What a judge kind gets to make one judge of a suite.

    Attributes:
        config: the judge's own entry.
        suite: the suite it belongs to.
        rootdir: importable beside the suite's directory.
        builtin_dirs: the project's own directories of builtin judges.
        place: the entry's path in the suite's file, such as ``judges[2]``.
        gateway: by which models are asked; None for one of the suite alone.
        agents: makes the agent of an agent judge; None where no agent can be had.
    """

    config: JudgeConfig
    suite: Suite
    rootdir: Path
    builtin_dirs: tuple[Path, ...] = ()
    place: str = ""
    gateway: Gateway | None = None
    agents: Callable[[JudgeContext], JudgingAgent] | None = None


JudgeKind = Callable[[JudgeContext], Judge]
"""Makes a judge. Raises SuiteError, with the path of the offending key, when it cannot be made."""
