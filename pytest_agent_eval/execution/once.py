"""Doing something once for all threads and processes of a session."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from pytest_agent_eval.deadline import Steps
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runs.lock import wait_for_lock

__all__ = ["Done", "forget", "once", "once_steps", "recall", "was_begun"]

_LOCK = ".lock"
_PART = ".part"


class Done(NamedTuple):
    """What was done.

    Attributes:
        value: what the action returned, as JSON keeps it.
        here: it was done by this call, and not by another thread or process.
    """

    value: Mapping[str, Any]
    here: bool


def once(path: str, action: Callable[[], Mapping[str, Any]], *, cancelled: threading.Event) -> Done:
    """Do something unless it has been done, and wait while another one is doing it.

    If the process that is doing it dies, the next one that waits does it again.

    Args:
        path: of the file in which its value is kept, readable for its owner only (absolute).
        action: returns JSON types; what it raises is raised here, and nothing is kept.
        cancelled: ends waiting when set.

    Raises:
        RunnerError: cancelled, or the file cannot be read or written.
    """
    with _alone(path, cancelled) as known:
        if known is not None:
            return Done(known, here=False)
        value = action()
        _keep(path, value)
        return Done(value, here=True)


def once_steps(
    path: str, action: Callable[[], Steps[Mapping[str, Any]]], *, cancelled: threading.Event
) -> Steps[Done]:
    """:func:`once` for what has parts with a time limit."""
    with _alone(path, cancelled) as known:
        if known is not None:
            return Done(known, here=False)
        value = yield from action()
        _keep(path, value)
        return Done(value, here=True)


@contextmanager
def _alone(path: str, cancelled: threading.Event) -> Iterator[Mapping[str, Any] | None]:
    """Hold the lock of a value; what is kept of it already."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        lock = os.open(path + _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RunnerError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        if not wait_for_lock(lock, cancelled):
            raise RunnerError("cancelled: the session stops")
        yield recall(path)
    finally:
        os.close(lock)


def recall(path: str) -> Mapping[str, Any] | None:
    """The kept value; None when there is none.

    Raises:
        RunnerError: the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RunnerError(f"{path}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise RunnerError(f"{path}: cannot be read: not a mapping")
    return value


def was_begun(path: str) -> bool:
    """Whether somebody has done it, or has begun to."""
    return os.path.exists(path + _LOCK)


def forget(path: str) -> None:
    """Remove what is kept; nobody may be doing it any more."""
    for name in (path, path + _PART, path + _LOCK):
        try:
            os.unlink(name)
        except OSError:  # never written, or the directory is gone
            continue


def _keep(path: str, value: Mapping[str, Any]) -> None:
    part = path + _PART
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as stream:
            json.dump(value, stream, default=str)
        os.replace(part, path)
    except OSError as error:
        raise RunnerError(f"{path}: cannot be written: {error.strerror}") from None
