from __future__ import annotations

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
