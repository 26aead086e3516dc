from __future__ import annotations

import os
import select
import threading

import pytest

from pytest_agent_eval.cancellation import Cancellation


def _readable(cancellation: Cancellation, milliseconds: int = 0) -> bool:
    poll = select.poll()
    poll.register(cancellation.fileno(), select.POLLIN)
    return bool(poll.poll(milliseconds))


@pytest.mark.parametrize("asked_before", [True, False])
def test_its_descriptor_is_readable_once_it_is_set(asked_before: bool) -> None:
    cancellation = Cancellation()
    if asked_before:
        assert not _readable(cancellation)
    cancellation.set()
    cancellation.set()
    assert cancellation.is_set()
    assert _readable(cancellation)
    assert _readable(cancellation), "for everybody who waits, not only for the first"


def test_all_who_poll_are_woken() -> None:
    cancellation = Cancellation()
    woken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: woken.append(_readable(cancellation, 60_000)))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    cancellation.set()
    for thread in threads:
        thread.join(30)
    assert woken == [True] * 5


def test_it_is_final() -> None:
    cancellation = Cancellation()
    cancellation.set()
    with pytest.raises(NotImplementedError, match="final"):
        cancellation.clear()


def test_what_is_closed_can_still_be_set() -> None:
    cancellation = Cancellation()
    descriptor = cancellation.fileno()
    cancellation.close()
    cancellation.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    cancellation.set()
    assert cancellation.is_set()
    with pytest.raises(ValueError, match="closed"):
        cancellation.fileno()


def test_one_that_is_set_in_a_forked_child_wakes_the_child_alone() -> None:
    cancellation = Cancellation()
    cancellation.fileno()
    child = os.fork()
    if child == 0:
        os._exit(0 if _set_and_readable(cancellation) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not _readable(cancellation)
    assert not cancellation.is_set()


def _set_and_readable(cancellation: Cancellation) -> bool:
    cancellation.set()
    return _readable(cancellation)
