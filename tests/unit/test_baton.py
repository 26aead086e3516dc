"""The baton: one at a time, but nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from pytest_agent_eval.baton import Baton

LONG = 60.0


def in_thread(function: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def test_one_thread_at_a_time_holds_it() -> None:
    baton = Baton(LONG)
    at_work, most = 0, 0

    def work() -> None:
        nonlocal at_work, most
        for _ in range(200):
            baton.take()
            at_work += 1
            most = max(most, at_work)
            for _ in range(20):
                pass
            at_work -= 1
            assert baton.give()

    threads = [in_thread(work) for _ in range(8)]
    for thread in threads:
        thread.join(LONG)
    assert most == 1
    assert at_work == 0


def test_who_waits_too_long_goes_on_with_it_and_the_holder_no_longer_has_it() -> None:
    baton = Baton(0.01)
    baton.take()
    holds, done = threading.Event(), threading.Event()

    def take() -> None:
        baton.take()
        holds.set()
        assert done.wait(LONG)
        assert baton.give()

    other = in_thread(take)
    assert holds.wait(LONG)
    assert not baton.held
    assert not baton.give(), "it has been taken away"
    done.set()
    other.join(LONG)
    baton.take()
    assert baton.give(), "it can be had again"


def test_a_thread_that_never_gives_it_back_is_waited_for_once() -> None:
    baton = Baton(0.01)
    in_thread(baton.take).join(LONG)
    baton.take()
    assert baton.held
    assert baton.give()
    assert not baton._lock.locked(), "the next one does not wait"


def test_giving_what_one_does_not_hold_changes_nothing() -> None:
    baton = Baton(LONG)
    assert not baton.give()
    baton.take()
    given: list[bool] = []
    in_thread(lambda: given.append(baton.give())).join(LONG)
    assert given == [False]
    assert baton.held


def test_others_hold_it_while_its_holder_waits() -> None:
    baton = Baton(LONG)
    baton.take()
    with baton.waiting():
        assert not baton.held
        held: list[bool] = []

        def work() -> None:
            baton.take()
            held.append(baton.held)
            baton.give()

        in_thread(work).join(LONG)
        assert held == [True]
    assert baton.held


def test_waiting_without_it_does_not_take_it() -> None:
    baton = Baton(LONG)
    with pytest.raises(KeyError), baton.waiting():
        raise KeyError
    assert not baton.held
