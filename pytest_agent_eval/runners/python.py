"""``runner.type: python``: the agent is a callable of this process."""

from __future__ import annotations

import asyncio
import difflib
import functools
import importlib.machinery
import inspect
import json
import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from pytest_agent_eval.deadline import AwaitStep, DeadlineExceeded, DeadlineThread, Step, Steps
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.event_loop import AwaitableTimeout, complete
from pytest_agent_eval.importing import import_module
from pytest_agent_eval.interruptible import Interruption
from pytest_agent_eval.runners.base import Execution, RunnerContext, Task

__all__ = ["PythonRunner"]

FIXTURE = "fixture:"

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_ASYNCIO = os.path.dirname(asyncio.__file__) + os.sep
_BLOCKING_S = 2.0
"""How much later than its own timeout a coroutine that blocks its loop is interrupted."""


class PythonRunner:
    """Calls ``runner.function`` with the task, in a thread of this process.

    The callable returns its final message as a string, or a mapping (stored as JSON text), or an
    :class:`Execution`, or None when its output is in files. It may be ``async def``: the trials of
    a session share one event loop, so that a thousand of them can wait at once, and one that
    blocks holds up the others. What it raises is a failure of the agent, with the traceback.

    A callable that does not return in time is interrupted where it is; one that sits in a C call
    is abandoned. What it prints is not captured, as several tasks run in this process at once.
    Files are written relative to ``task.workspace``: the working directory belongs to the process
    and is not changed.

    Attributes:
        is_async: the callable is sure to be a coroutine function.

    Raises:
        RunnerError: no such module, attribute or fixture, or it is not callable.
    """

    def __init__(self, context: RunnerContext) -> None:
        self._function = _resolve(context)
        self.is_async = _is_async(self._function)
        self._thread = DeadlineThread("agent-eval-python")

    def run(self, task: Task) -> Execution:
        """Call the function once; never raises for what the function does."""
        return self._thread.drive(self.steps(task), cancelled=task.cancelled)

    def steps(self, task: Task) -> Steps[Execution]:
        """What :meth:`run` does, for a caller that watches the time itself."""
        started = time.monotonic()
        try:
            result, error = yield self._step(task)
        except DeadlineExceeded as exceeded:
            return _ended(exceeded, task, time.monotonic() - started)
        duration = time.monotonic() - started
        if isinstance(error, AwaitableTimeout):
            return _ended(DeadlineExceeded(True), task, duration)
        if error is not None:
            return Execution(
                exit_code=None, failure="agent", error=describe(error), duration_s=duration
            )
        return _execution(result, duration)

    def _step(self, task: Task) -> Step:
        def here() -> _Attempt:
            return _attempt(self._function, task)

        if not self.is_async:
            return Step(here, task.timeout)
        return AwaitStep(
            here,
            task.timeout + _BLOCKING_S,
            start=lambda: _attempted(self._function, task),
            limit=task.timeout,
            late=lambda: (None, AwaitableTimeout()),
        )


def _is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it is sure to give a coroutine and do nothing else."""
    while isinstance(function, functools.partial):
        function = function.func
    called = getattr(type(function), "__call__", None)  # noqa: B004 -- an object with an async call
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


_Attempt = tuple[Any, BaseException | None]
"""What the function returned, or what it raised."""


async def _attempted(function: Callable[[Task], Any], task: Task) -> _Attempt:
    """As :func:`_attempt`, for a coroutine function in a running event loop."""
    try:
        return await function(task), None
    except (asyncio.CancelledError, Interruption):
        raise
    except BaseException as error:
        return None, error


def _attempt(function: Callable[[Task], Any], task: Task) -> _Attempt:
    """Call the function.

    Also ``sys.exit()`` and the outcomes of test frameworks are the function's doing. Swallowing
    the interruption of a deadline does no harm: the result of this call is not looked at then.
    """
    try:
        result = function(task)
        if hasattr(result, "__await__"):
            result = complete(result, task.timeout)
    except BaseException as error:
        return None, error
    return result, None


def _execution(result: Any, duration: float) -> Execution:
    if result is None:
        return Execution(duration_s=duration)
    if isinstance(result, str):
        return Execution(output=result, duration_s=duration)
    if isinstance(result, Execution):
        return result if result.duration_s else replace(result, duration_s=duration)
    if isinstance(result, Mapping):
        try:
            text = json.dumps(dict(result), ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            return _unusable(f"returned a mapping that is not JSON: {error}", duration)
        return Execution(output=text, duration_s=duration)
    kind = type(result).__name__
    return _unusable(
        f"returned {kind}; expected a string, a mapping, an Execution or None", duration
    )


def _unusable(error: str, duration: float) -> Execution:
    return Execution(exit_code=None, failure="agent", error=error, duration_s=duration)


def _ended(exceeded: DeadlineExceeded, task: Task, duration: float) -> Execution:
    notes, alive = [], not exceeded.interrupted
    if alive:
        notes.append("the function could not be interrupted and may still be running")
    if exceeded.cancelled:
        return Execution(
            exit_code=None,
            failure="infrastructure",
            error="cancelled before it ended",
            duration_s=duration,
            notes=tuple(notes),
            still_running=alive,
        )
    where = f"\nit was at {exceeded.where}" if exceeded.where else ""
    if duration < task.timeout:
        return Execution(
            exit_code=None,
            failure="infrastructure",
            error=f"the event loop that async agents share was blocked by one of them{where}",
            duration_s=duration,
        )
    return Execution(
        exit_code=None,
        timed_out=True,
        failure="timeout",
        error=f"timed out after {task.timeout:g} s{where}",
        duration_s=duration,
        notes=tuple(notes),
        still_running=alive,
    )


def describe(error: BaseException) -> str:
    """``raised ValueError: why`` and, below it, the traceback without frames of this package."""
    summary = "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_PACKAGE, _ASYNCIO))
    ]
    lines = [f"raised {summary}"]
    if frames:
        lines.append("Traceback (most recent call last):")
        lines.append("".join(traceback.format_list(frames)).rstrip())
        lines.append(summary)
    return "\n".join(lines)


def _resolve(context: RunnerContext) -> Callable[[Task], Any]:
    source = context.suite.config.runner.function
    if not source:
        raise RunnerError("runner.function is missing: runner.type python needs it", lasting=True)
    if source.startswith(FIXTURE):
        found = _fixture(source[len(FIXTURE) :], context.fixtures)
    else:
        directories = (str(context.suite.directory), str(context.rootdir))
        found = _imported(source, directories)
    if not callable(found):
        raise RunnerError(
            f"runner.function: {source} is of type {type(found).__name__} and cannot be called; "
            "it needs to be a function of one task",
            lasting=True,
        )
    return found  # type: ignore[no-any-return]


def _fixture(name: str, fixtures: Mapping[str, Any]) -> Any:
    if name not in fixtures:
        raise RunnerError(
            f"runner.function: there is no fixture {name!r}" + _nearest(name, list(fixtures)),
            lasting=True,
        )
    return fixtures[name]


def _imported(source: str, directories: tuple[str, ...]) -> Any:
    name, _, attribute = source.partition(":")
    module = _module(name, directories)
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            names = [item for item in dir(found) if not item.startswith("_")]
            raise RunnerError(
                f"runner.function: {name} ({module.__file__}) has no {attribute!r}"
                + _nearest(part, names),
                lasting=True,
            ) from None
    return found


def _module(name: str, directories: tuple[str, ...]) -> ModuleType:
    try:
        return import_module(name, directories)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            message = f"runner.function: importing {name} failed: there is no module {missing!r}"
            raise RunnerError(message, lasting=True) from None
        places = " or ".join(dict.fromkeys(directories))
        raise RunnerError(
            f"runner.function: there is no module {missing!r} in {places}"
            + _nearest(missing, _modules_in(directories)),
            lasting=True,
        ) from None
    except (Exception, SystemExit) as error:
        said = describe(error)
        raise RunnerError(f"runner.function: importing {name} {said}", lasting=True) from None


def _modules_in(directories: tuple[str, ...]) -> list[str]:
    names = []
    for directory in directories:
        for entry in os.listdir(directory) if os.path.isdir(directory) else ():
            stem, suffix = os.path.splitext(entry)
            if suffix in importlib.machinery.SOURCE_SUFFIXES and stem.isidentifier():
                names.append(stem)
    return sorted(set(names))


def _nearest(name: str, known: list[str]) -> str:
    """``; did you mean 'run'?``, or what there is, or nothing."""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    if not known:
        return "; there is none"
    shown = ", ".join(sorted(known)[:8])
    return f"; there is {shown}" + (" and more" if len(known) > 8 else "")
