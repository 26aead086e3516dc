from __future__ import annotations

import threading

import pytest

from pytest_agent_eval.deadline import Step, Steps
from pytest_agent_eval.execution.engine import Engine, Job, Stopped
from pytest_agent_eval.results import TrialResult


def passed(case: str) -> TrialResult:
    return TrialResult(suite="eval.yaml", case=case, split="dev", status="passed")


def test_results_come_from_another_thread_and_again_when_asked_again() -> None:
    threads: list[int] = []

    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        threads.append((yield Step(threading.get_ident, 5)))
        return passed(f"case-{len(threads)}")

    engine = Engine()
    engine.plan([Job("a", steps)])
    assert engine.result("a").case == "case-1"
    assert engine.result("a").case == "case-2"
    assert threading.get_ident() not in threads
    engine.stop()


def test_errors_of_a_job_are_raised_where_its_result_is_asked_for() -> None:
    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        yield Step(lambda: None, 5)
        raise OSError("no space left")

    engine = Engine()
    engine.plan([Job("a", steps)])
    with pytest.raises(OSError, match="no space left"):
        engine.result("a")


def test_nothing_starts_after_stop_and_unplanned_jobs_are_unknown() -> None:
    engine = Engine()
    with pytest.raises(KeyError):
        engine.result("never planned")
    engine.plan([Job("a", lambda cancelled: iter(()))])  # type: ignore[arg-type, return-value]
    engine.stop()
    engine.stop()
    with pytest.raises(Stopped):
        engine.result("a")
