"""The judging part of a trial: the judges of a suite on one stored execution."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter

from pytest_agent_eval.deadline import Steps
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.evidence.reward import Reward, reward_of
from pytest_agent_eval.execution.outcome import decide
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.runtime import SuiteRuntime
from pytest_agent_eval.judges.bound import BoundJudge
from pytest_agent_eval.results import TrialResult, Verdict

__all__ = ["judge_steps"]


def judge_steps(
    shared: SuiteRuntime,
    executed: TrialResult,
    record: Record,
    *,
    cancelled: threading.Event,
    kept: Mapping[str, Verdict] | None = None,
) -> Steps[TrialResult]:
    """Ask every judge about a record, and decide what the trial came to.

    Args:
        shared: of the suite.
        executed: the trial's result as far as the agent goes; an earlier judging of it is
            replaced.
        record: of that trial.
        cancelled: ends a judgement early when set.
        kept: verdicts by judge that hold, so that these judges are not asked again.
    """
    kept = kept or {}
    verdicts: list[Verdict] = []
    notes = executed.notes
    started = perf_counter()
    if record.produced or not executed.timed_out:
        asked = [judge for judge in shared.judges if judge.name not in kept]
        if asked and shared.hooks is not None:
            try:
                shared.hooks.begin_scoring(cancelled)
            except RunnerError as error:
                return _unjudged(executed, str(error), lasting=error.lasting)
            notes = (*notes, *shared.hooks.notes())
        stepwise = {judge.name: judge.step for judge in shared.config.judges if judge.step}
        for judge in shared.judges:
            step = stepwise.get(judge.name)
            seen = record if step is None else record["steps"].get(step)
            if judge.name in kept:
                verdicts.append(kept[judge.name])
            elif seen is None:
                why = f"not judged: step {step} did not run"
                verdicts.append(Verdict(judge.name, rationale=why, skipped=True))
            elif isinstance(judge, BoundJudge):
                verdicts.append((yield from judge.steps(seen, cancelled=cancelled)))
            else:
                verdicts.append(judge.judge(seen, cancelled=cancelled))
        if _set_back(shared.directory):
            notes = (*notes, "a judge changed the working directory; it was set back")
    else:
        why = "not judged: the agent ran out of time and produced nothing"
        verdicts = [
            Verdict(judge.name, rationale=why, skipped=True, digest=getattr(judge, "digest", ""))
            for judge in shared.judges
        ]
    outcome = decide(
        executed.execution, verdicts, shared.gated, execution_kind=executed.kind or "agent"
    )
    reward = reward_of(shared.reward, verdicts) if shared.reward else Reward(None)
    return replace(
        executed,
        status=outcome.status,
        kind=outcome.kind,
        reason=outcome.reason,
        verdicts=tuple(verdicts),
        judging_s=perf_counter() - started,
        notes=notes,
        reward=reward.value,
        reward_reason=reward.reason,
    )


def _unjudged(executed: TrialResult, why: str, *, lasting: bool) -> TrialResult:
    """A trial that cannot be judged, for a reason that is not the agent's."""
    summary, _, detail = why.partition("\n")
    notes = (*executed.notes, detail) if detail else executed.notes
    return replace(
        executed,
        status="error",
        kind="infrastructure",
        reason=summary,
        verdicts=(),
        notes=notes,
        lasting=lasting,
        reward=None,
        reward_reason="",
    )


def _set_back(directory: str) -> bool:
    """The working directory is the process's: what one judge does to it, all would feel."""
    try:
        if os.getcwd() == directory:
            return False
    except FileNotFoundError:
        pass
    os.chdir(directory)
    return True
