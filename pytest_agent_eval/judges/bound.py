"""A judge of a suite, ready to judge records: with its condition, its time limit and its name."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.deadline import DeadlineExceeded, DeadlineThread, Step, Steps
from pytest_agent_eval.errors import AgentEvalError, ConditionError
from pytest_agent_eval.judges.base import Judge
from pytest_agent_eval.judges.frames import describe
from pytest_agent_eval.judges.verdict import error_verdict, to_verdict
from pytest_agent_eval.results import Verdict

if TYPE_CHECKING:
    from pytest_agent_eval.cases.conditions import Condition
    from pytest_agent_eval.suite import JudgeConfig

__all__ = ["DEFAULT_TIMEOUT", "BoundJudge"]

DEFAULT_TIMEOUT = 60.0
"""Seconds of one judgement by Python code."""
MODEL_TIMEOUT = 120.0
"""Seconds of one judgement by a model."""


class BoundJudge:
    """One judge of one suite. Used from several threads at once.

    Attributes:
        name: unique in the suite.
        gated: it has a threshold, so its failures are the gate's business.
        kind: ``check``, ``function``, ``builtin`` or a kind that a plugin registered.
        digest: of its definition; every verdict of it carries it.
    """

    __slots__ = (
        "_condition",
        "_feedback_type",
        "_judge",
        "_pass_if",
        "_range",
        "_threads",
        "_timeout",
        "digest",
        "gated",
        "kind",
        "name",
    )

    def __init__(
        self,
        config: JudgeConfig,
        judge: Judge,
        *,
        gated: bool,
        condition: Condition | None,
        pass_if: Condition | None,
        threads: DeadlineThread,
        digest: str = "",
    ) -> None:
        self.digest = digest
        self.name: str = config.name
        self.kind: str = config.kind
        self.gated = gated
        self._judge = judge
        self._condition = condition
        self._pass_if = pass_if
        self._threads = threads
        usual = MODEL_TIMEOUT if getattr(judge, "asks_a_model", False) else DEFAULT_TIMEOUT
        self._timeout = usual if config.timeout is None else float(config.timeout)
        self._feedback_type = config.feedback_type
        self._range = config.score_range

    def judge(
        self, record: Mapping[str, Any], *, cancelled: threading.Event | None = None
    ) -> Verdict:
        """The verdict on one record. A judge's fault is a verdict with ``error``, never a raise.

        Args:
            record: if it has a method ``view``, the judge gets what that returns, so that what
                it writes into it reaches no other judge.
            cancelled: ends the judgement early when set; the verdict is a judge error then.
        """
        return self._threads.drive(self.steps(record, cancelled=cancelled), cancelled=cancelled)

    def steps(
        self, record: Mapping[str, Any], *, cancelled: threading.Event | None = None
    ) -> Steps[Verdict]:
        """What :meth:`judge` does, for a caller that watches the time itself."""
        started = time.perf_counter()
        verdict = self._refusal(record)
        if verdict is None:
            own = getattr(self._judge, "judging_steps", None)
            view = getattr(record, "view", None)
            seen = view() if callable(view) else record
            if own is None:
                verdict = yield from self._verdict(seen)
            else:
                verdict = yield from self._own_verdict(own(seen, cancelled or threading.Event()))
        return replace(verdict, duration_s=time.perf_counter() - started, digest=self.digest)

    def _refusal(self, record: Mapping[str, Any]) -> Verdict | None:
        """The verdict when the judge's ``if`` is false or cannot be evaluated."""
        condition = self._condition
        if condition is None:
            return None
        try:
            scope = {name: _scope_value(record, name) for name in condition.reads}
            if condition.evaluate(scope):
                return None
        except (ConditionError, AgentEvalError) as error:
            return error_verdict(self.name, f"if: {error}")
        except Exception as error:
            sentence, detail = describe(error)
            return error_verdict(self.name, f"if: {sentence}", detail=detail)
        return Verdict(self.name, rationale=f"not judged: {condition.source}", skipped=True)

    def _verdict(self, seen: Mapping[str, Any]) -> Steps[Verdict]:
        def judgement() -> Verdict:
            try:
                return self._meant(self._judge(seen))
            except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit) as error:
                # Here and not around the call: Ctrl-C in the waiting thread is not the judge's.
                return self._raised(error)

        try:
            verdict: Verdict = yield Step(judgement, self._timeout)
        except DeadlineExceeded as error:
            return self._too_late(error)
        except GeneratorExit:
            raise
        except BaseException as error:  # a class of its own that is no Exception
            return self._raised(error)
        return verdict

    def _own_verdict(self, steps: Steps[Any]) -> Steps[Verdict]:
        """The verdict of a judge that watches its own time."""
        try:
            return self._meant((yield from steps))
        except DeadlineExceeded as error:
            return self._too_late(error)
        except Exception as error:
            return self._raised(error)

    def _meant(self, answer: Any) -> Verdict:
        return to_verdict(
            answer,
            name=self.name,
            feedback_type=self._feedback_type,
            score_range=self._range,
            pass_if=self._pass_if,
        )

    def _raised(self, error: BaseException) -> Verdict:
        sentence, detail = describe(error, check=self.kind == "check")
        return error_verdict(self.name, sentence, detail=detail)

    def _too_late(self, error: DeadlineExceeded) -> Verdict:
        if error.cancelled:
            return error_verdict(self.name, "cancelled: the session ended")
        where = f", at {error.where}" if error.where else ""
        how = "" if error.interrupted else "; it could not be interrupted and was left behind"
        return error_verdict(self.name, f"did not return within {self._timeout:g} s{where}{how}")


def _scope_value(record: Mapping[str, Any], name: str) -> Any:
    """What a condition's name means for a record."""
    if name == "outputs":
        return record
    if name == "name":
        return record["case"]
    return record[name]
