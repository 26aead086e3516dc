from __future__ import annotations

import contextlib
import contextvars
import gc
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from pytest_agent_eval.baton import BATON
from pytest_agent_eval.deadline import DeadlineExceeded, DeadlineThread, Step, Steps

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE")


@pytest.fixture
def deadline() -> Iterator[DeadlineThread]:
    thread = DeadlineThread(grace=0.5)
    yield thread
    thread.close()


def count_for_ever() -> None:
    number = 0
    while True:
        number += 1


def test_the_result_is_handed_back(deadline: DeadlineThread) -> None:
    assert deadline.call(lambda: 6 * 7, 5) == 42


def test_an_exception_is_raised_in_the_caller_with_the_users_frame(
    deadline: DeadlineThread,
) -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing") as caught:
        deadline.call(fail, 5)
    assert caught.traceback[-1].name == "fail"


def test_idle_threads_are_reused(deadline: DeadlineThread) -> None:
    identities = {deadline.call(threading.get_ident, 5) for _ in range(20)}
    assert len(identities) == 1
    assert threading.get_ident() not in identities


def test_a_python_loop_is_interrupted(deadline: DeadlineThread) -> None:
    threads: list[threading.Thread] = []

    def count() -> None:
        threads.append(threading.current_thread())
        count_for_ever()

    with pytest.raises(DeadlineExceeded) as caught:
        deadline.call(count, 0.05)
    assert caught.value.interrupted
    assert not caught.value.cancelled
    assert "test_deadline.py" in caught.value.where
    assert "count_for_ever" in caught.value.where
    assert deadline.call(lambda: "still usable", 5) == "still usable"
    threads[0].join(10)
    assert not threads[0].is_alive()


def test_except_exception_does_not_stop_the_interruption(deadline: DeadlineThread) -> None:
    def stubborn() -> None:
        while True:
            try:
                count_for_ever()
            except Exception:
                continue

    with pytest.raises(DeadlineExceeded) as caught:
        deadline.call(stubborn, 0.05)
    assert caught.value.interrupted


def test_a_swallowed_interruption_is_repeated(deadline: DeadlineThread) -> None:
    swallowed = []

    def swallow_once() -> None:
        try:
            count_for_ever()
        except BaseException as error:
            swallowed.append(type(error).__name__)
        count_for_ever()

    with pytest.raises(DeadlineExceeded) as caught:
        deadline.call(swallow_once, 0.05)
    assert caught.value.interrupted
    assert swallowed == ["Interruption"]


def test_a_call_that_cannot_be_interrupted_is_abandoned(deadline: DeadlineThread) -> None:
    lock = threading.Lock()
    lock.acquire()
    with pytest.raises(DeadlineExceeded) as caught:
        deadline.call(lock.acquire, 0.05)
    assert not caught.value.interrupted
    assert deadline.call(lambda: 1, 5) == 1
    lock.release()


def test_a_set_event_ends_the_call(deadline: DeadlineThread) -> None:
    cancelled = threading.Event()
    timer = threading.Timer(0.05, cancelled.set)
    timer.start()
    with pytest.raises(DeadlineExceeded) as caught:
        deadline.call(count_for_ever, 60, cancelled=cancelled)
    timer.join()
    assert caught.value.cancelled
    assert caught.value.interrupted


def test_an_event_that_is_not_set_changes_nothing(deadline: DeadlineThread) -> None:
    never = threading.Event()
    assert deadline.call(lambda: never.wait(0.15), 60, cancelled=never) is False


def test_a_deadline_also_holds_beside_an_event(deadline: DeadlineThread) -> None:
    with pytest.raises(DeadlineExceeded) as caught:
        deadline.call(count_for_ever, 0.05, cancelled=threading.Event())
    assert not caught.value.cancelled


def test_no_time_at_all_is_exceeded_without_waiting(deadline: DeadlineThread) -> None:
    with pytest.raises(DeadlineExceeded) as caught:
        deadline.call(count_for_ever, 0)
    assert caught.value.interrupted


def test_context_variables_are_seen_and_not_changed(deadline: DeadlineThread) -> None:
    VARIABLE.set("caller")

    def change() -> str:
        seen = VARIABLE.get()
        VARIABLE.set("changed")
        return seen

    assert deadline.call(change, 5) == "caller"
    assert VARIABLE.get() == "caller"


def test_concurrent_calls_run_at_the_same_time(deadline: DeadlineThread) -> None:
    barrier = threading.Barrier(4)
    results: list[int] = []

    def meet() -> None:
        results.append(deadline.call(lambda: barrier.wait(10), 10))

    threads = [threading.Thread(target=meet) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 1, 2, 3]


def test_a_result_is_not_kept_alive(deadline: DeadlineThread) -> None:
    class Thing:
        pass

    result = deadline.call(Thing, 5)
    reference = weakref.ref(result)
    del result
    gc.collect()
    assert reference() is None


def test_dropping_the_owner_ends_its_threads() -> None:
    owner = DeadlineThread(name="dropped")
    thread = owner.call(threading.current_thread, 5)
    del owner
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_ctrl_c_in_the_waiting_thread_interrupts_the_function(deadline: DeadlineThread) -> None:
    threads: list[threading.Thread] = []

    def count() -> None:
        threads.append(threading.current_thread())
        count_for_ever()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            deadline.call(count, 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    threads[0].join(10)
    assert not threads[0].is_alive()


def test_traced_threads_go_on_while_another_one_cannot_be_interrupted(
    deadline: DeadlineThread,
) -> None:
    lock = threading.Lock()
    lock.acquire()
    tracing = sys.gettrace()
    sys.settrace(tracing or (lambda *_: None))
    try:
        with pytest.raises(DeadlineExceeded):
            deadline.call(lock.acquire, 0.05)
        assert deadline.call(lambda: 1, 5) == 1
    finally:
        sys.settrace(tracing)
        lock.release()


def test_a_generator_and_its_steps_share_one_thread(deadline: DeadlineThread) -> None:
    def steps() -> Steps[list[object]]:
        seen: list[object] = [threading.get_ident()]
        seen.append((yield Step(threading.get_ident, 5)))
        try:
            yield Step(lambda: dict[str, int]()["nowhere"], 5)
        except KeyError as error:
            seen.append(error.args[0])
        return seen

    here, inside, error = deadline.drive(steps())
    assert here == inside != threading.get_ident()
    assert error == "nowhere"


def test_what_a_step_worked_on_is_gone_when_the_generator_goes_on(
    deadline: DeadlineThread,
) -> None:
    """What an agent printed may be a megabyte, and the next step may take a minute."""

    class Record:
        def judge(self) -> str:
            return "judged"

    def steps() -> Steps[list[object]]:
        record = Record()
        reference = weakref.ref(record)
        step = Step(record.judge, 5)
        del record
        answer = yield step
        del step
        return [answer, reference()]

    assert deadline.drive(steps()) == ["judged", None]


def test_what_a_generator_raises_is_raised_here(deadline: DeadlineThread) -> None:
    def steps() -> Steps[None]:
        yield Step(lambda: None, 5)
        raise ValueError("between two steps")

    with pytest.raises(ValueError, match="between two steps"):
        deadline.drive(steps())


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_generator_goes_on_after_a_step_whose_time_was_up(
    deadline: DeadlineThread, stubborn: bool
) -> None:
    release = threading.Event()
    lock = threading.Lock()
    lock.acquire()

    def for_ever() -> None:
        if stubborn:
            lock.acquire()  # sits in C: no interruption reaches it
        while True:
            pass

    def steps() -> Steps[list[object]]:
        seen: list[object] = []
        for _ in range(2):
            try:
                yield Step(for_ever, 0.05)
            except DeadlineExceeded as exceeded:
                seen.append(exceeded.interrupted)
        seen.append((yield Step(lambda: "after", 5)))
        return seen

    try:
        assert deadline.drive(steps()) == [not stubborn, not stubborn, "after"]
    finally:
        release.set()
        lock.release()


def test_a_step_that_swallows_its_interruption_does_not_reach_the_generator(
    deadline: DeadlineThread,
) -> None:
    def swallow() -> str:
        with contextlib.suppress(BaseException):
            count_for_ever()
        return "swallowed"

    def steps() -> Steps[str]:
        try:
            return str((yield Step(swallow, 0.05)))
        except DeadlineExceeded:
            return "exceeded"

    assert deadline.drive(steps()) == "exceeded"


def test_cancelling_ends_the_step_under_way(deadline: DeadlineThread) -> None:
    cancelled = threading.Event()

    def steps() -> Steps[bool]:
        cancelled.set()
        try:
            yield Step(count_for_ever, 60)
        except DeadlineExceeded as exceeded:
            return exceeded.cancelled
        return False

    assert deadline.drive(steps(), cancelled=cancelled)


def test_ctrl_c_between_two_steps_lets_the_generator_end(deadline: DeadlineThread) -> None:
    begun, ended = threading.Event(), threading.Event()

    def steps() -> Steps[None]:
        begun.set()
        time.sleep(0.5)  # such as a command runner that ends its process
        ended.set()
        yield Step(lambda: None, 5)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            deadline.drive(steps())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert begun.is_set()
    deadline.settle(10)
    assert ended.is_set()


def test_a_generator_holds_the_baton_between_its_steps_and_not_in_them(
    deadline: DeadlineThread,
) -> None:
    held: list[tuple[str, bool]] = []

    def note(where: str) -> None:
        held.append((where, BATON.held))

    def fail() -> None:
        note("failing step")
        raise ZeroDivisionError

    def steps() -> Steps[None]:
        note("before")
        yield Step(lambda: note("step"), 10)
        note("between")
        with contextlib.suppress(ZeroDivisionError):
            yield Step(fail, 10)
        note("after")

    deadline.drive(steps())
    assert held == [
        ("before", True),
        ("step", False),
        ("between", True),
        ("failing step", False),
        ("after", True),
    ]
    assert not BATON._lock.locked()
