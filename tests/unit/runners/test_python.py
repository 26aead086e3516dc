from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.results import Usage
from pytest_agent_eval.runners import Execution, Runner, Task

MakeRunner = Callable[..., Runner]
MakeTask = Callable[..., Task]
Run = Callable[..., Execution]


@pytest.fixture
def run(make_runner: MakeRunner, make_task: MakeTask) -> Run:
    """Run a callable that comes from a fixture."""

    def call(function: Any, **options: Any) -> Execution:
        runner = make_runner({"agent": function}, type="python", function="fixture:agent")
        return runner.run(make_task(**options))

    return call


def module(tmp_path: Path, name: str, source: str, *, place: str = "project/evals") -> None:
    path = tmp_path / place / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)


def test_a_string_is_the_final_message(run: Run) -> None:
    execution = run(lambda task: task.input["prompt"] + " 42")
    assert execution.output == "What is 6 x 7? 42"
    assert execution.exit_code == 0
    assert execution.failure is None
    assert not execution.timed_out
    assert execution.duration_s > 0


def test_a_mapping_is_its_json_text(run: Run) -> None:
    execution = run(lambda task: {"answer": 42, "why": "ä"})
    assert execution.output == '{"answer": 42, "why": "ä"}'


def test_none_is_empty(run: Run) -> None:
    assert run(lambda task: None).output == ""


def test_an_execution_is_taken_as_it_is(run: Run) -> None:
    given = Execution(output="x", exit_code=3, usage=Usage(cost_usd=1.0), duration_s=9.0)
    assert run(lambda task: given) is given
    execution = run(lambda task: Execution(output="x"))
    assert execution.duration_s > 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (42, "returned int; expected a string, a mapping, an Execution or None"),
        (b"x", "returned bytes; expected"),
        (["x"], "returned list; expected"),
        ({"x": object()}, "returned a mapping that is not JSON: Object of type object"),
    ],
)
def test_other_values_are_a_failure_of_the_agent(run: Run, value: Any, expected: str) -> None:
    execution = run(lambda task: value)
    assert execution.failure == "agent"
    assert execution.exit_code is None
    assert execution.error.startswith(expected)


def fail(task: Task) -> str:
    return str(json.loads("{"))


def test_an_exception_is_a_failure_with_the_users_frames(run: Run) -> None:
    execution = run(fail)
    first, *rest = execution.error.splitlines()
    assert execution.failure == "agent"
    assert first.startswith("raised json.decoder.JSONDecodeError: Expecting property name")
    assert rest[0] == "Traceback (most recent call last):"
    assert 'test_python.py", line' in rest[1]
    assert "pytest_agent_eval/runners" not in execution.error
    assert "deadline.py" not in execution.error


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), GeneratorExit()])
def test_exceptions_that_are_no_errors_are_failures_too(run: Run, error: BaseException) -> None:
    def leave(task: Task) -> None:
        raise error

    execution = run(leave)
    assert execution.failure == "agent"
    assert type(error).__name__ in execution.error.splitlines()[0]


def test_an_async_function_is_awaited(run: Run) -> None:
    async def agent(task: Task) -> str:
        await asyncio.sleep(0.01)
        return "awaited"

    assert run(agent).output == "awaited"


def test_an_async_exception_has_the_users_frames(run: Run) -> None:
    async def agent(task: Task) -> str:
        await asyncio.sleep(0)
        raise ValueError("no")

    execution = run(agent)
    assert execution.error.startswith("raised ValueError: no\nTraceback")
    assert "asyncio" not in execution.error
    assert "in agent" in execution.error


def test_an_async_function_behind_another_callable(run: Run) -> None:
    class Agent:
        async def __call__(self, task: Task) -> str:
            return "called"

    async def agent(task: Task) -> str:
        return "returned"

    assert run(Agent()).output == "called"
    assert run(lambda task: agent(task)).output == "returned"


def count(task: Task) -> None:
    number = 0
    while True:
        number += 1


def test_a_loop_is_interrupted_at_the_timeout(run: Run) -> None:
    execution = run(count, timeout=0.1)
    assert execution.timed_out
    assert execution.failure == "timeout"
    assert execution.exit_code is None
    first, second = execution.error.splitlines()
    assert first == "timed out after 0.1 s"
    assert second.startswith("it was at test_python.py:")
    assert execution.notes == ()


def test_a_coroutine_is_cancelled_at_the_timeout(run: Run) -> None:
    ended = []

    async def agent(task: Task) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    execution = run(agent, timeout=0.1)
    assert execution.timed_out
    assert execution.duration_s < 10
    assert ended == [True]


def test_a_coroutine_that_blocks_its_loop_is_interrupted(run: Run) -> None:
    async def agent(task: Task) -> None:
        count(task)

    execution = run(agent, timeout=0.1)
    assert execution.timed_out
    assert execution.duration_s < 10


def test_a_coroutine_that_will_not_be_cancelled_is_interrupted(run: Run) -> None:
    async def agent(task: Task) -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    execution = run(agent, timeout=0.1)
    assert execution.timed_out
    assert execution.duration_s < 20


def test_a_call_that_cannot_be_interrupted_is_abandoned(run: Run) -> None:
    lock = threading.Lock()
    lock.acquire()
    execution = run(lambda task: lock.acquire(), timeout=0.1)
    lock.release()
    assert execution.timed_out
    assert execution.notes == ("the function could not be interrupted and may still be running",)


def test_cancelled_is_infrastructure(run: Run) -> None:
    cancelled = threading.Event()
    timer = threading.Timer(0.1, cancelled.set)
    timer.start()
    execution = run(count, cancelled=cancelled)
    timer.join()
    assert execution.failure == "infrastructure"
    assert execution.error == "cancelled before it ended"
    assert not execution.timed_out


def test_several_tasks_run_at_once(make_runner: MakeRunner, make_task: MakeTask) -> None:
    barrier = threading.Barrier(3)

    def agent(task: Task) -> str:
        barrier.wait(10)
        return task.prompt

    runner = make_runner({"agent": agent}, type="python", function="fixture:agent")
    outputs: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: outputs.append(runner.run(make_task(prompt=n)).output))
        for n in "abc"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outputs) == ["a", "b", "c"]


@pytest.mark.parametrize("place", ["project/evals", "project"])
def test_a_module_is_found_beside_the_suite_and_in_the_root(
    tmp_path: Path, make_runner: MakeRunner, make_task: MakeTask, place: str
) -> None:
    name = f"agent_in_{place.replace('/', '_')}"
    module(tmp_path, name, "def run(task):\n    return 'found'\n", place=place)
    before = list(sys.path)
    runner = make_runner(type="python", function=f"{name}:run")
    assert sys.path == before
    assert runner.run(make_task()).output == "found"


def test_a_method_is_reached_by_dots(
    tmp_path: Path, make_runner: MakeRunner, make_task: MakeTask
) -> None:
    source = "class Agent:\n    @staticmethod\n    def run(task):\n        return 'dotted'\n"
    module(tmp_path, "agent_with_class", source)
    runner = make_runner(type="python", function="agent_with_class:Agent.run")
    assert runner.run(make_task()).output == "dotted"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("agent_sum:run", "there is no module 'agent_sum' in "),
        ("agent_sum:run", "did you mean 'agent_some'?"),
        ("agent_some.part:run", "there is no module 'agent_some.part'"),
        ("agent_some:rnu", "has no 'rnu'; did you mean 'run'?"),
        ("agent_some:qqqqqq", "has no 'qqqqqq'; there is NAME, run"),
        ("agent_some:NAME", "is of type str and cannot be called"),
        ("agent_needs:run", "importing agent_needs failed: there is no module 'not_installed'"),
        ("agent_broken:run", "importing agent_broken raised ZeroDivisionError: division by zero"),
        ("agent_syntax:run", "importing agent_syntax raised"),
        ("fixture:agnet", "there is no fixture 'agnet'; did you mean 'agent'?"),
        ("fixture:number", "fixture:number is of type int and cannot be called"),
    ],
)
def test_what_cannot_be_called_is_told(
    tmp_path: Path, make_runner: MakeRunner, function: str, expected: str
) -> None:
    module(tmp_path, "agent_some", "NAME = 'x'\ndef run(task): ...\n")
    module(tmp_path, "agent_needs", "import not_installed\n")
    module(tmp_path, "agent_broken", "1 / 0\n")
    module(tmp_path, "agent_syntax", "def run(:\n")
    with pytest.raises(RunnerError) as caught:
        make_runner({"agent": print, "number": 3}, type="python", function=function)
    assert expected in str(caught.value)
    assert str(caught.value).startswith("runner.function: ")


def test_there_may_be_no_fixture_at_all(make_runner: MakeRunner) -> None:
    with pytest.raises(RunnerError, match="no fixture 'x'; there is none"):
        make_runner(type="python", function="fixture:x")


def test_a_call_costs_little(run: Run, make_runner: MakeRunner, make_task: MakeTask) -> None:
    runner = make_runner({"agent": lambda task: "x"}, type="python", function="fixture:agent")
    task = make_task()
    runner.run(task)
    started = time.thread_time()
    for _ in range(200):
        runner.run(task)
    assert (time.thread_time() - started) / 200 < 0.005
