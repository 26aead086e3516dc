from __future__ import annotations

import asyncio
import itertools
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agent_eval.deadline import AwaitStep, DeadlineExceeded, Released, Step, Steps
from pytest_agent_eval.execution.engine import Engine, Job, Lane, Stopped
from pytest_agent_eval.results import TrialResult

LONG = 20.0
"""Seconds after which something that should have happened has not: only a failing test waits."""


def passed(case: object) -> TrialResult:
    return TrialResult(suite="eval.yaml", case=str(case), split="dev", status="passed")


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


class Gauge:
    """How many are inside at once, now and at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = 0
        self.most = 0

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


def job(key: Any, function: Callable[[], object], timeout: float = LONG, **values: Any) -> Job:
    """One step of a job, whose result is named by its key."""

    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        yield Step(function, timeout)
        return passed(key)

    return Job(key, steps, name=str(key), **values)


@pytest.fixture
def engines() -> Iterator[Callable[..., Engine]]:
    made: list[Engine] = []

    def make(*args: Any, **options: Any) -> Engine:
        made.append(Engine(*args, **options))
        return made[-1]

    yield make
    for engine in made:
        engine.stop()


Engines = Callable[..., Engine]


# -- results -------------------------------------------------------------------------------


def test_results_come_from_another_thread_and_again_when_asked_again(engines: Engines) -> None:
    threads: list[int] = []

    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        threads.append((yield Step(threading.get_ident, LONG)))
        return passed(f"case-{len(threads)}")

    engine = engines()
    engine.plan([Job("a", steps)])
    assert engine.result("a").case == "case-1"
    assert engine.result("a").case == "case-2"
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("kind", [OSError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_errors_of_a_job_are_raised_where_its_result_is_asked_for(
    engines: Engines, kind: type[BaseException]
) -> None:
    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        yield Step(lambda: None, LONG)
        raise kind("no space left")

    engine = engines()
    engine.plan([Job("a", steps), job("b", lambda: None)])
    with pytest.raises(kind, match="no space left"):
        engine.result("a")
    assert engine.result("b").case == "b", "the engine goes on"


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
def test_errors_of_a_step_are_raised_in_the_job(
    engines: Engines, kind: type[BaseException]
) -> None:
    def fail() -> None:
        raise kind("by the agent")

    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        try:
            yield Step(fail, LONG)
        except kind as error:
            return passed(error)
        raise AssertionError("not raised")

    engine = engines()
    engine.plan([Job("a", steps)])
    assert engine.result("a").case == "by the agent"


def test_nothing_starts_after_stop_and_unplanned_jobs_are_unknown(engines: Engines) -> None:
    engine = engines()
    with pytest.raises(KeyError):
        engine.result("never planned")
    engine.plan([job("a", lambda: pytest.fail("it started"))])
    engine.stop()
    engine.stop()
    with pytest.raises(Stopped):
        engine.result("a")
    with pytest.raises(Stopped):
        engine.begin(["a"])


def test_who_waits_is_called_meanwhile(engines: Engines) -> None:
    called = threading.Event()
    engine = engines()
    engine.plan([job("a", lambda: called.wait(LONG))])
    assert engine.result("a", waiting=called.set).case == "a"
    assert called.is_set()


# -- how many, and in which order ------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 2, 7, 32])
def test_as_many_as_allowed_run_at_once_and_never_more(engines: Engines, parallelism: int) -> None:
    meeting = threading.Barrier(parallelism)
    gauge = Gauge()

    def work() -> None:
        with gauge:
            meeting.wait(LONG)

    engine = engines(parallelism, window=None)
    lane = Lane(parallelism)
    keys = range(parallelism * 3)
    engine.plan(job(key, work, lane=lane) for key in keys)
    assert [engine.result(key).case for key in keys] == [str(key) for key in keys]
    assert gauge.most == parallelism


def test_each_lane_has_its_limit_and_all_share_that_of_the_engine(engines: Engines) -> None:
    wide, narrow, whole = Gauge(), Gauge(), Gauge()
    meeting = threading.Barrier(3)

    def work(gauge: Gauge) -> None:
        with gauge, whole:
            meeting.wait(LONG)

    lanes = {"wide": (Lane(2), wide), "narrow": (Lane(1), narrow)}
    engine = engines(8, window=None)
    keys = [(("wide", "wide", "narrow")[n % 3], n) for n in range(18)]
    engine.plan(job(key, partial(work, lanes[key[0]][1]), lane=lanes[key[0]][0]) for key in keys)
    for key in keys:
        engine.result(key)
    assert (wide.most, narrow.most, whole.most) == (2, 1, 3)


def test_what_is_asked_for_comes_before_what_is_only_planned(engines: Engines) -> None:
    order: list[str] = []
    go = threading.Event()

    def work(name: str) -> None:
        order.append(name)
        go.wait(LONG)

    engine = engines(1, window=None)
    lane = Lane(1)
    engine.plan(job(name, partial(work, name), lane=lane) for name in "abcde")
    engine.begin(["a"])
    until(lambda: order == ["a"])
    engine.begin(["d"])
    engine.begin(["d"])
    go.set()
    for name in "abcde":
        engine.result(name)
    assert order == ["a", "d", "b", "c", "e"]


@pytest.mark.parametrize("window", [0, 1, 3])
def test_no_job_starts_further_ahead_than_the_window(engines: Engines, window: int) -> None:
    asked = 0
    started: list[int] = []
    too_early: list[int] = []

    def work(index: int) -> None:
        if index > asked + window:
            too_early.append(index)
        started.append(index)

    def reached(count: int) -> bool:
        return len(started) == count

    engine = engines(8, window=window)
    lane = Lane(8)
    engine.plan(job(index, partial(work, index), lane=lane) for index in range(12))
    for index in range(12):
        asked = index
        engine.result(index)
        until(partial(reached, min(12, index + window + 1)))
    assert not too_early
    assert sorted(started) == list(range(12))


def test_without_a_window_all_may_be_ahead_of_what_is_asked_for(engines: Engines) -> None:
    everybody = threading.Barrier(10)
    engine = engines(10, window=None)
    lane = Lane(10)
    engine.plan(job(index, lambda: everybody.wait(LONG), lane=lane) for index in range(10))
    assert engine.result(0).case == "0"
    until(lambda: len(engine.unasked()) == 9)


@pytest.mark.parametrize("how", ["job", "lane", "closed"])
def test_what_may_not_run_ahead_starts_when_it_is_asked_for(engines: Engines, how: str) -> None:
    asked: set[str] = set()
    too_early: list[str] = []

    def work(name: str) -> None:
        if name not in asked:
            too_early.append(name)

    lane = Lane(4, ahead=how != "lane", open=how != "closed")
    engine = engines(4, window=None)
    other = Lane(4)
    names = ["a", "b", "c"]
    engine.plan(job(name, partial(work, name), lane=lane, ahead=how != "job") for name in names)
    engine.plan(job(f"free-{n}", lambda: None, lane=other) for n in range(3))
    for n in range(3):
        engine.result(f"free-{n}")
    if how == "closed":
        engine.begin(["a"])
        assert engine.snapshot().running == ()
        asked.update(names)  # once the lane is open, its jobs may run ahead
        lane.open = True
    for name in names:
        asked.add(name)
        assert engine.result(name).case == name
    assert not too_early


def test_jobs_may_be_planned_later(engines: Engines) -> None:
    engine = engines(2, window=None)
    lane = Lane(2)
    engine.plan([job("a", lambda: None, lane=lane)])
    engine.result("a")
    engine.plan([job("b", lambda: None, lane=lane)])
    assert engine.result("b").case == "b"


# -- judging ---------------------------------------------------------------------------------


def judged(
    key: Any, agent: Callable[[], object], judge: Callable[[], object], **values: Any
) -> Job:
    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        yield Step(agent, LONG)
        yield Released()
        yield Released()  # a second sign says nothing new
        yield Step(judge, LONG)
        return passed(key)

    return Job(key, steps, name=str(key), **values)


def test_agents_go_on_while_trials_are_judged(engines: Engines) -> None:
    agents = Counter[str]()
    everybody = threading.Event()

    def agent() -> None:
        agents["ended"] += 1  # one at a time
        if agents["ended"] == 3:  # two that are judged, and one that waits for it
            everybody.set()

    engine = engines(1, judging=2, window=None)
    lane = Lane(1)
    engine.plan(judged(n, agent, lambda: everybody.wait(LONG), lane=lane) for n in range(6))
    for n in range(6):
        engine.result(n)
    assert everybody.is_set()


def test_no_agent_starts_while_too_many_wait_to_be_judged(engines: Engines) -> None:
    """What agents printed is in memory until it is judged: that must have a bound."""
    started: list[int] = []
    done = threading.Event()
    engine = engines(2, judging=1, window=None)
    lane = Lane(2)
    engine.plan(
        judged(n, partial(started.append, n), lambda: done.wait(LONG), lane=lane) for n in range(40)
    )
    engine.begin([0])
    until(lambda: len(started) >= 3)
    done.wait(0.3)  # time in which all of them would have started
    assert len(started) <= 1 + 2 + 2, "one is judged, two wait, two were at work by then"
    done.set()
    assert [engine.result(n).case for n in range(40)] == [str(n) for n in range(40)]


@pytest.mark.parametrize("limit", [1, 3])
def test_judging_has_its_own_limit(engines: Engines, limit: int) -> None:
    gauge = Gauge()
    meeting = threading.Barrier(limit)

    def judge() -> None:
        with gauge:
            meeting.wait(LONG)

    engine = engines(6, judging=limit, window=None)
    lane = Lane(6)
    engine.plan(judged(n, lambda: None, judge, lane=lane) for n in range(12))
    for n in range(12):
        engine.result(n)
    assert gauge.most == limit


# -- awaited steps ---------------------------------------------------------------------------


def awaited(
    key: Any,
    start: Callable[[], Any],
    *,
    limit: float = LONG,
    grace: float = 1.0,
    **values: Any,
) -> Job:
    """A job whose agent is awaited; the result's case is its answer, or ``late`` or an error."""

    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        step = AwaitStep(
            lambda: pytest.fail("not awaited"),
            limit + grace,
            start=start,
            limit=limit,
            late=lambda: "late",
        )
        try:
            answer = yield step
        except DeadlineExceeded as exceeded:
            answer = "cancelled" if exceeded.cancelled else f"blocked at {exceeded.where}"
        except Exception as error:
            answer = f"raised {error}"
        yield Released()
        yield Step(lambda: None, LONG)
        return passed(answer)

    return Job(key, steps, name=str(key), **values)


@pytest.mark.parametrize("known", [True, False], ids=["known to be async", "found out"])
def test_hundreds_wait_at_once_in_a_few_threads(engines: Engines, known: bool) -> None:
    before = threading.active_count()
    inside: list[int] = []
    threads: list[int] = []
    everybody = asyncio.Event()

    async def agent() -> str:
        inside.append(1)
        threads.append(threading.active_count())
        if len(inside) == 300:
            everybody.set()
        await everybody.wait()
        return "met the others"

    engine = engines(300, window=None)
    lane = Lane(300, is_async=known)
    engine.plan(awaited(n, agent, lane=lane) for n in range(300))
    assert {engine.result(n).case for n in range(300)} == {"met the others"}
    assert max(threads) - before <= (12 if known else 40)


def test_an_awaited_step_that_raises_or_is_late(engines: Engines) -> None:
    ended: list[str] = []

    async def fail() -> None:
        raise ValueError("by the agent")

    async def sleep() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("finally")

    engine = engines(2, window=None)
    engine.plan([awaited("a", fail), awaited("b", sleep, limit=0.05)])
    assert engine.result("a").case == "raised by the agent"
    assert engine.result("b").case == "late"
    assert ended == ["finally"]


def test_one_that_blocks_the_loop_is_interrupted_and_the_others_go_on(engines: Engines) -> None:
    blocking = threading.Event()

    async def block() -> str:
        blocking.set()
        while True:
            pass

    async def wait() -> str:
        while not blocking.is_set():
            await asyncio.sleep(0)
        return "fine"

    engine = engines(2, window=None)
    lane = Lane(2)
    engine.plan(
        [
            awaited("innocent", wait, lane=lane),
            awaited("guilty", block, limit=0.2, grace=0.2, lane=lane),
        ]
    )
    assert engine.result("guilty").case.startswith("blocked at")
    assert engine.result("innocent").case == "fine"


def test_a_loop_that_is_stuck_in_a_call_to_c_is_given_up(engines: Engines) -> None:
    stuck = threading.Lock()
    stuck.acquire()

    async def block() -> None:
        with stuck:
            pass

    async def fine() -> str:
        return "fine"

    engine = engines(1, window=None)
    engine.plan([awaited("guilty", block, limit=0.1, grace=0.1), awaited("later", fine)])
    assert engine.result("guilty").case.startswith("blocked at")
    assert engine.result("later").case == "fine", "in a new loop"
    stuck.release()


# -- deadlines -------------------------------------------------------------------------------


def limited(key: Any, function: Callable[[], object], timeout: float) -> Job:
    """A job whose result is named by how its step ended."""

    def steps(cancelled: threading.Event) -> Steps[TrialResult]:
        try:
            yield Step(function, timeout)
        except DeadlineExceeded as exceeded:
            how = "interrupted" if exceeded.interrupted else "abandoned"
            yield Step(lambda: None, LONG)  # it goes on, with a thread of its own
            return passed(f"{how} {exceeded.where}".strip())
        return passed("ended")

    return Job(key, steps, name=str(key))


def test_a_step_that_loops_is_interrupted_where_it_is(engines: Engines) -> None:
    def endless() -> None:
        for _ in itertools.count():
            pass

    engine = engines()
    engine.plan([limited("a", endless, 0.05), limited("b", lambda: None, LONG)])
    found = engine.result("a").case
    assert found.startswith("interrupted test_engine.py:")
    assert found.endswith("in endless")
    assert engine.result("b").case == "ended"


def test_a_step_that_cannot_be_interrupted_is_abandoned(engines: Engines) -> None:
    stuck = threading.Lock()
    stuck.acquire()
    engine = engines()
    engine.plan([limited("a", stuck.acquire, 0.05), limited("b", lambda: None, LONG)])
    assert engine.result("a").case.startswith("abandoned")
    assert engine.result("b").case == "ended"
    stuck.release()


def test_deadlines_of_many_are_watched_at_once(engines: Engines) -> None:
    def endless() -> None:
        while True:
            pass

    engine = engines(6, window=None)
    engine.plan(limited(n, endless, 0.3 - n / 25) for n in range(6))
    for n in range(6):
        assert engine.result(n).case.startswith("interrupted")


# -- the end ---------------------------------------------------------------------------------


def test_stop_ends_what_runs_waits_and_is_paused_and_starts_nothing(engines: Engines) -> None:
    ended: dict[str, str] = {}
    at_work = Counter[str]()
    judge_is_busy = threading.Event()

    def recorded(key: str, *steps_: Step, after: Step | None = None) -> Job:
        def steps(cancelled: threading.Event) -> Steps[TrialResult]:
            try:
                for step in steps_:  # noqa: UP028 -- something is sent
                    yield step
            except DeadlineExceeded as exceeded:
                ended[key] = "cancelled" if exceeded.cancelled else "exceeded"
                raise Stopped from None
            return passed(key)

        return Job(key, steps, name=key, lane=lane)

    def endless() -> None:
        at_work["loop"] += 1
        while True:
            pass

    def judge() -> None:
        judge_is_busy.set()
        while True:
            pass

    async def forever() -> None:
        at_work["await"] += 1
        await asyncio.sleep(LONG * 10)

    lane = Lane(3)
    engine = engines(3, judging=1, window=None)
    engine.plan(
        [
            recorded("done", Step(lambda: None, LONG)),
            recorded("judged", Step(lambda: None, LONG), Released(), Step(judge, LONG)),
            recorded(
                "waits to be judged",
                Step(lambda: judge_is_busy.wait(LONG), LONG),
                Released(),
                Step(lambda: pytest.fail("judged after the end"), LONG),
            ),
            recorded("loops", Step(endless, LONG)),
            recorded(
                "awaited",
                AwaitStep(endless, LONG, start=forever, limit=LONG, late=lambda: None),
            ),
            recorded("fills the lane", Step(endless, LONG)),
            recorded("never", Step(lambda: pytest.fail("started after the end"), LONG)),
        ]
    )
    engine.begin(["done"])
    until(lambda: at_work == {"loop": 2, "await": 1} and judge_is_busy.is_set())
    assert engine.snapshot().running[0].name == "judged"
    engine.stop()
    assert ended == dict.fromkeys(
        ("judged", "waits to be judged", "loops", "awaited", "fills the lane"), "cancelled"
    )
    assert [result.case for result in engine.unasked()] == ["done"]
    assert engine.snapshot().running == ()


def test_stop_gives_up_waiting_for_what_does_not_end(engines: Engines) -> None:
    stuck = threading.Lock()
    stuck.acquire()
    inside = threading.Event()

    def work(cancelled: threading.Event) -> Steps[TrialResult]:
        inside.set()
        stuck.acquire()  # no step: a runner that does not look at ``cancelled``
        yield Released()
        return passed("a")

    engine = engines()
    engine.plan([Job("a", work)])
    engine.begin(["a"])
    assert inside.wait(LONG)
    engine.stop(0.05)
    assert len(engine.snapshot().running) == 1
    stuck.release()


def test_cancelled_coroutines_run_their_finally_blocks_before_stop_returns(
    engines: Engines,
) -> None:
    running: list[int] = []
    ended: list[int] = []

    async def agent(n: int) -> None:
        running.append(n)
        try:
            await asyncio.sleep(LONG * 10)
        finally:
            await asyncio.sleep(0.01)
            ended.append(n)

    engine = engines(20, window=None)
    lane = Lane(20)
    engine.plan(awaited(n, partial(agent, n), lane=lane) for n in range(20))
    engine.begin([0])
    until(lambda: len(running) == 20)
    engine.stop()
    assert sorted(ended) == list(range(20))
    assert engine.unasked() == []


def test_the_snapshot_tells_what_is_planned_done_and_running(engines: Engines) -> None:
    go, inside = threading.Event(), threading.Barrier(3)

    def work() -> None:
        inside.wait(LONG)
        go.wait(LONG)

    engine = engines(2, window=None)
    lane = Lane(2)
    engine.plan([job("first", lambda: None, lane=lane)])
    engine.result("first")
    engine.plan(job(name, work, lane=lane) for name in ("a", "b"))
    engine.plan([job("c", lambda: None, lane=lane)])
    engine.begin(["a"])
    inside.wait(LONG)
    snapshot = engine.snapshot()
    assert snapshot.total == 4
    assert [result.case for result in snapshot.done] == ["first"]
    assert [one.name for one in snapshot.running] == ["a", "b"]
    assert snapshot.running[0].since <= snapshot.running[1].since
    go.set()


def test_an_engine_that_is_done_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    engine = Engine(4, window=None)
    engine.plan(awaited(n, lambda: asyncio.sleep(0, "x")) for n in range(8))
    for n in range(8):
        assert engine.result(n).case == "x"
    engine.stop()
    until(lambda: not [t for t in threading.enumerate() if t not in before])


# -- any of them -------------------------------------------------------------------------------


class Releaser:
    """Lets steps end one at a time, in an order drawn by a seed: durations without a clock."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._changed = threading.Condition()
        self._held: list[Callable[[], object]] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def hold(self) -> None:
        released = threading.Event()
        self._add(released.set)
        assert released.wait(LONG)

    async def hold_async(self) -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._add(partial(loop.call_soon_threadsafe, future.set_result, None))
        await future

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _add(self, release: Callable[[], object]) -> None:
        with self._changed:
            self._held.append(release)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._held and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                release = self._held.pop(self._random.randrange(len(self._held)))
            release()


kinds = st.sampled_from(["plain", "async", "judged", "async judged", "raises"])


@settings(max_examples=60)
@given(
    jobs=st.lists(st.tuples(st.integers(0, 2), kinds, st.booleans()), max_size=25),
    limits=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)),
    parallelism=st.integers(1, 6),
    judging=st.integers(1, 3),
    window=st.one_of(st.none(), st.integers(0, 6)),
    seed=st.integers(0, 2**32),
)
def test_any_jobs_within_any_limits_each_exactly_once(
    jobs: list[tuple[int, str, bool]],
    limits: tuple[int, int, int],
    parallelism: int,
    judging: int,
    window: int | None,
    seed: int,
) -> None:
    releaser = Releaser(seed)
    lanes = [Lane(limit, is_async=index == 1) for index, limit in enumerate(limits)]
    of_lane, agents, judges = [Gauge() for _ in lanes], Gauge(), Gauge()
    runs = Counter[int]()

    def make(index: int, lane: int, kind: str, ahead: bool) -> Job:
        def agent() -> str:
            with of_lane[lane], agents:
                releaser.hold()
            return "agent"

        async def coroutine() -> str:
            with of_lane[lane], agents:
                await releaser.hold_async()
            return "agent"

        def judge() -> str:
            with judges:
                releaser.hold()
            return "judge"

        def steps(cancelled: threading.Event) -> Steps[TrialResult]:
            runs[index] += 1
            step = Step(agent, LONG)
            if "async" in kind:
                step = AwaitStep(agent, LONG, start=coroutine, limit=LONG, late=lambda: "late")
            said = [(yield step)]
            if "judged" in kind:
                yield Released()
                said.append((yield Step(judge, LONG)))
            if kind == "raises":
                raise ValueError(index)
            return passed(f"{index} {' '.join(said)}")

        return Job(index, steps, lane=lanes[lane], ahead=ahead)

    engine = Engine(parallelism, judging=judging, window=window)
    engine.plan(make(index, *one) for index, one in enumerate(jobs))
    try:
        for index, (_, kind, _) in enumerate(jobs):
            if kind == "raises":
                with pytest.raises(ValueError, match=f"^{index}$"):
                    engine.result(index)
            else:
                said = "agent judge" if "judged" in kind else "agent"
                assert engine.result(index).case == f"{index} {said}"
    finally:
        engine.stop()
        releaser.close()
    assert runs == Counter(range(len(jobs)))
    assert agents.most <= parallelism
    assert judges.most <= judging
    assert all(gauge.most <= limit for gauge, limit in zip(of_lane, limits, strict=True))
    assert not engine.unasked()


def test_ctrl_c_at_any_moment_of_waiting_leaves_the_engine_whole(engines: Engines) -> None:
    """An exception may be raised anywhere in the main thread, also while it waits for a result."""
    engine = engines(3, window=2)
    keys = list(range(400))
    engine.plan(job(key, lambda: time.sleep(0.0003)) for key in keys)
    interrupted = 0
    got: set[int] = set()

    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    def ask(key: int) -> None:
        got.add(int(engine.result(key).case))

    before = signal.signal(signal.SIGALRM, ctrl_c)
    try:
        for key in keys:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.001))
                ask(key)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for key in keys:
        ask(key)
    assert got == set(keys)
    assert interrupted, "not one was interrupted"
    engine.stop()
    with pytest.raises(Stopped):
        engine.result(0)


def test_stopping_can_be_interrupted_and_asked_for_again(engines: Engines) -> None:
    engine = engines(2, window=None)
    gauge, released = Gauge(), threading.Event()

    def wait() -> None:
        with gauge:
            released.wait(LONG)

    engine.plan(job(key, wait) for key in range(2))
    engine.begin((0, 1))
    until(lambda: gauge.now == 2)

    def ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ctrl_c)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        with pytest.raises(KeyboardInterrupt):
            engine.stop()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    engine.stop()
    assert not engine.snapshot().running
