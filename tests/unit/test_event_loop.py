from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from pytest_agent_eval.deadline import AwaitStep, DeadlineExceeded
from pytest_agent_eval.event_loop import AwaitableTimeout, EventLoopThread, complete

LONG = 20.0


class Answers:
    """What the steps came to, by name."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[Any, BaseException | None]] = {}
        self._changed = threading.Condition()

    def of(self, name: str) -> Callable[[Any, BaseException | None], None]:
        def done(answer: Any, error: BaseException | None) -> None:
            with self._changed:
                assert name not in self.found, "said twice"
                self.found[name] = (answer, error)
                self._changed.notify_all()

        return done

    def wait(self, *names: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: set(names) <= set(self.found), LONG)


@pytest.fixture
def loop() -> Iterator[EventLoopThread]:
    made = EventLoopThread()
    yield made
    made.cancel_all()
    made.close()


@pytest.fixture
def answers() -> Answers:
    return Answers()


def step(start: Callable[[], Awaitable[Any]], limit: float = LONG) -> AwaitStep:
    return AwaitStep(lambda: None, limit, start=start, limit=limit, late=lambda: "late")


def test_steps_are_done_with_their_value_or_their_error(
    loop: EventLoopThread, answers: Answers
) -> None:
    async def fail() -> None:
        raise ValueError("no")

    loop.submit(step(lambda: asyncio.sleep(0, "value")), answers.of("value"))
    loop.submit(step(fail), answers.of("error"))
    loop.submit(step(lambda: asyncio.sleep(LONG), 0.02), answers.of("late"))
    answers.wait("value", "error", "late")
    assert answers.found["value"] == ("value", None)
    assert str(answers.found["error"][1]) == "no"
    assert answers.found["late"] == ("late", None)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_one_that_wants_to_end_the_program_ends_alone(
    loop: EventLoopThread, answers: Answers, kind: type[BaseException]
) -> None:
    async def leave() -> None:
        raise kind(3)

    loop.submit(step(leave), answers.of("leaves"))
    answers.wait("leaves")
    assert isinstance(answers.found["leaves"][1], kind)
    loop.submit(step(lambda: asyncio.sleep(0, "there")), answers.of("later"))
    answers.wait("later")
    assert answers.found["later"] == ("there", None)


def test_what_a_step_started_ends_with_it(loop: EventLoopThread, answers: Answers) -> None:
    ended: list[str] = []

    async def child(name: str) -> None:
        try:
            if name != "grandchild":
                kept.append(asyncio.create_task(child("grandchild")))
            await asyncio.sleep(LONG * 10)
        finally:
            ended.append(name)

    kept: list[asyncio.Task[None]] = []

    async def parent() -> str:
        kept.append(asyncio.create_task(child("child")))
        while len(kept) < 2:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "done"

    loop.submit(step(parent), answers.of("parent"))
    answers.wait("parent")
    assert answers.found["parent"] == ("done", None)
    assert sorted(ended) == ["child", "grandchild"]


def test_cancelling_runs_finally_blocks_and_says_so(
    loop: EventLoopThread, answers: Answers
) -> None:
    inside, ended = threading.Barrier(2), []

    async def wait() -> None:
        try:
            inside.wait(LONG)
            await asyncio.sleep(LONG * 10)
        finally:
            ended.append("finally")

    loop.submit(step(wait), answers.of("waits"))
    inside.wait(LONG)
    loop.cancel_all()
    answers.wait("waits")
    error = answers.found["waits"][1]
    assert isinstance(error, DeadlineExceeded)
    assert error.cancelled
    assert ended == ["finally"]


def test_a_loop_that_turns_is_left_alone(loop: EventLoopThread, answers: Answers) -> None:
    loop.submit(step(lambda: asyncio.sleep(0.3, "value")), answers.of("value"))
    assert loop.unblock(0.1)
    answers.wait("value")
    assert answers.found["value"] == ("value", None)


def test_one_that_blocks_is_interrupted_where_it_is(
    loop: EventLoopThread, answers: Answers
) -> None:
    inside = threading.Event()

    async def block() -> None:
        inside.set()
        while True:
            pass

    loop.submit(step(block), answers.of("blocks"))
    assert inside.wait(LONG)
    assert loop.unblock(5)
    answers.wait("blocks")
    error = answers.found["blocks"][1]
    assert isinstance(error, DeadlineExceeded)
    assert error.interrupted
    assert error.where.endswith("in block")
    loop.submit(step(lambda: asyncio.sleep(0, "there")), answers.of("later"))
    answers.wait("later")


def test_a_loop_that_cannot_be_interrupted_says_so_to_everybody(answers: Answers) -> None:
    stuck, inside = threading.Lock(), threading.Event()
    stuck.acquire()
    loop = EventLoopThread()

    async def block() -> None:
        inside.set()
        with stuck:
            pass

    loop.submit(step(lambda: asyncio.sleep(LONG)), answers.of("innocent"))
    loop.submit(step(block), answers.of("blocks"))
    assert inside.wait(LONG)
    assert not loop.unblock(0.2)
    answers.wait("innocent", "blocks")
    assert {error.interrupted for _, error in answers.found.values()} == {False}  # type: ignore[union-attr]
    loop.close()
    stuck.release()


def test_awaiting_in_a_loop_of_its_own() -> None:
    assert complete(asyncio.sleep(0, "value"), LONG) == "value"
    began = time.monotonic()
    with pytest.raises(AwaitableTimeout):
        complete(asyncio.sleep(LONG * 10), 0.02)
    assert time.monotonic() - began < LONG
