"""Our end of the process that asks models: started when it is first needed, ended with us."""

from __future__ import annotations

import contextlib
import itertools
import json
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import IO, Any

from pytest_agent_eval.llm.child import Child, start
from pytest_agent_eval.llm.errors import ProviderError
from pytest_agent_eval.llm.request import ModelReply, Protocol, ToolCall
from pytest_agent_eval.results import Usage

__all__ = ["ModelProcess"]

_SLICE_S = 0.1
"""A thread that waits can be interrupted between two of these."""

_GRACE_S = 2.0
"""Longer than its timeout that a call may take to say so."""


class _Call:
    """A call under way."""

    __slots__ = ("ended", "said")

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.said: Mapping[str, Any] = {}


class ModelProcess:
    """Asks models in another process. Used from several threads at once, by several suites."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Child | None = None
        self._log: IO[bytes] | None = None
        self._calls: dict[int, _Call] = {}
        self._numbers = itertools.count(1)
        self._closed = False

    def start(self) -> None:
        """Start it, if it does not run: it is ready some seconds later."""
        with self._lock:
            if not self._closed:
                self._running()

    def call(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        timeout: float,
        api_base: str = "",
        parameters: Mapping[str, Any],
        protocol: Protocol = "chat",
    ) -> ModelReply:
        """Ask a model once, without any retry; the arguments are those of ``provider.call``.

        Raises:
            ProviderError: no reply came.
        """
        asked = {
            "model": model,
            "messages": [dict(message) for message in messages],
            "timeout": timeout,
            "api_base": api_base,
            "parameters": dict(parameters),
            "protocol": protocol,
        }
        number, call = self._send(asked)
        end = time.monotonic() + timeout + _GRACE_S
        try:
            while not call.ended.wait(_SLICE_S):
                if time.monotonic() > end:
                    raise ProviderError(f"no reply within {timeout:.3g} s", transient=True)
        finally:
            with self._lock:
                self._calls.pop(number, None)
        error = call.said.get("error")
        if error is not None:
            raise ProviderError(**error)
        return _reply(call.said["reply"])

    def close(self) -> None:
        """End it. Calls under way fail. May be called twice; nothing may be asked afterwards."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()  # the thread that reads closes what is left

    def _send(self, asked: Mapping[str, Any]) -> tuple[int, _Call]:
        with self._lock:
            if self._closed:
                raise ProviderError("the session has ended")
            process = self._running()
            number, call = next(self._numbers), _Call()
            self._calls[number] = call
            try:
                process.stdin.write(json.dumps({"id": number, **asked}) + "\n")
                process.stdin.flush()
            except (OSError, ValueError):  # it has just ended, which its reader tells
                pass
            return number, call

    def _running(self) -> Child:
        """The process, started if need be; with the lock held.

        Raises:
            ProviderError: it cannot be started.
        """
        if self._process is not None and self._process.running():
            return self._process
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the last reference
        try:
            process = start(self._log)
        except OSError as error:
            raise ProviderError(f"no process for models: {error.strerror or error}") from None
        self._process = process
        weakref.finalize(self, process.kill)
        threading.Thread(
            target=_read, args=(process, self._lock, self._calls, self._log), daemon=True
        ).start()
        return process


def _read(
    process: Child,
    lock: threading.Lock,
    calls: dict[int, _Call],
    log: IO[bytes],
) -> None:
    """Hand the answers out until the process ends; not a method, so that it keeps nobody alive."""
    with contextlib.suppress(OSError, ValueError):  # closed by us
        for line in process.stdout:
            said = json.loads(line)
            with lock:
                call = calls.pop(said.pop("id"), None)
            if call is not None:
                call.said = said
                call.ended.set()
    status = process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()
    log.seek(0)
    last = log.read().decode(errors="replace").strip().rpartition("\n")[2]
    log.close()
    message = f"the process that asks models ended with status {status}"
    with lock:
        for call in calls.values():
            call.said = {"error": {"message": f"{message}: {last}" if last else message}}
            call.ended.set()
        calls.clear()


def _reply(said: Mapping[str, Any]) -> ModelReply:
    usage = said["usage"]
    return ModelReply(
        **{
            **said,
            "tool_calls": tuple(ToolCall(**one) for one in said["tool_calls"]),
            "parts": tuple(said["parts"]),
            "usage": Usage(
                **{**usage, "models_used": tuple(usage["models_used"]), "recordings": ()}
            ),
        }
    )
