"""Claude Code's tool calls, seen before they happen: its ``PreToolUse`` hook asks this process.

The hook is a program in the agent's environment. It knows a socket and a token, sends the call, and
is told what to do with it; what the answers are made of stays here.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import math
import os
import re
import secrets
import shlex
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners import claude_hook
from pytest_agent_eval.runners.base import Task
from pytest_agent_eval.runners.interaction import Question
from pytest_agent_eval.suite.tool_names import QUESTION_TOOL

__all__ = ["Interception", "with_hook"]

_LONGEST_PATH = 100
"""Bytes that the path of a socket may have; systems take little more."""

_MOST = 32 * 1024 * 1024
"""Bytes of one call; more is denied."""

_SLACK_S = 60.0
"""How much longer than its task a hook may take: the task ends it."""


class Interception:
    """Serves the hook of one task; a context manager.

    Args:
        task: its ``interaction`` decides.
        environment: of the agent.

    Attributes:
        command: what the hook runs; in a shell.
        ends: set when the agent is to be ended, because the session wants it or a question could
            not be answered.
        error: why it could not; None where it could.
    """

    def __init__(self, task: Task, environment: Mapping[str, str]) -> None:
        self._task = task
        self._environment = environment
        self._token = secrets.token_hex(16)
        self._directory = ""
        self._socket: socket.socket | None = None
        self.command = ""
        self.ends: threading.Event = _Either(task.cancelled)
        self.error: RunnerError | None = None
        self._denied: set[str] = set()

    def __enter__(self) -> Interception:
        """Begin to serve.

        Raises:
            RunnerError: no socket can be made.
        """
        try:
            self._directory = _private_directory()
            path = os.path.join(self._directory, "s")
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.bind(path)
            self._socket.listen(64)
        except OSError as error:
            self.close()
            raise RunnerError(f"no socket for Claude Code's hook: {error}") from None
        words = (sys.executable, "-I", "-S", claude_hook.__file__, path, self._token)
        # With any other status than 2 Claude Code would let the call pass.
        self.command = f"{shlex.join(words)} || exit 2"
        threading.Thread(target=self._serve, name="agent-eval-hook", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def denied(self) -> frozenset[str]:
        """Ids of the calls that were denied."""
        return frozenset(self._denied)

    def close(self) -> None:
        """Serve no more."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            self._socket.close()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _serve(self) -> None:
        assert self._socket is not None
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(
                target=self._answer, args=(connection,), name="agent-eval-hook-call", daemon=True
            ).start()

    def _answer(self, connection: socket.socket) -> None:
        """One call; whatever fails here is no answer, and so a denial."""
        with contextlib.suppress(OSError), connection:
            token, _, call = _received(connection).partition(b"\n")
            if not hmac.compare_digest(token, self._token.encode()):
                return
            try:
                said = self._decided(json.loads(call))
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
                return  # no call
            text = "" if said is None else json.dumps(said)
            connection.sendall(b"ok\n" + text.encode())

    def _decided(self, call: Any) -> dict[str, Any] | None:
        """What Claude Code is told; None: nothing, so that its own permissions decide."""
        name, input = call["tool_name"], call["tool_input"]
        identity = str(call.get("tool_use_id") or "")
        try:
            if name == QUESTION_TOOL and self._task.interaction.answers_questions:
                return _allowed({**input, "answers": self._answers(input, identity)})
            decision = self._task.interaction.check_tool(
                name, input, call=identity, environment=self._environment
            )
        except RunnerError as error:
            self._denied.add(identity)
            self.error = self.error or error
            self.ends.set()  # nothing that the agent does from here on is of any use
            return _denied(str(error))
        if not decision.handled:
            return None
        if decision.allowed:
            return _allowed(None)
        self._denied.add(identity)
        return _denied(decision.reason)

    def _answers(self, input: Any, identity: str) -> dict[str, str]:
        answers = {}
        for asked in input["questions"]:
            listed = [one for one in asked.get("options") or () if one.get("label")]
            question = Question(
                str(asked["question"]),
                tuple(str(one["label"]) for one in listed),
                bool(asked.get("multiSelect")),
                {str(one["label"]): str(one.get("description") or "") for one in listed},
            )
            answer = self._task.interaction.ask(question, call=identity, input=input)
            answers[question.text] = answer
        return answers


class _Either(threading.Event):
    """Set when it is set itself, or the other one is."""

    def __init__(self, other: threading.Event) -> None:
        super().__init__()
        self._other = other

    def is_set(self) -> bool:
        return super().is_set() or self._other.is_set()


def with_hook(settings: Mapping[str, Any], command: str, task: Task) -> dict[str, Any]:
    """Claude Code's settings with the hook besides those that are there.

    Args:
        settings: of the suite.
        command: of the hook.
        task: says for which tools it is, and how long.
    """
    timeout = math.ceil(task.timeout + _SLACK_S)
    hook = {"type": "command", "command": command, "timeout": timeout}
    hooks = dict(_mapping(settings.get("hooks")))
    before = hooks.get("PreToolUse")
    ours = {"matcher": _matcher(task.interaction.patterns), "hooks": [hook]}
    hooks["PreToolUse"] = [*(before if isinstance(before, list | tuple) else ()), ours]
    # Settings in the workspace could switch hooks off; these here come before them.
    return {**settings, "disableAllHooks": False, "hooks": hooks}


def _matcher(patterns: Sequence[str]) -> str:
    """A regular expression for the names of the tools."""
    parts = [
        f"{re.escape(one[:-1])}.*" if one.endswith("*") else re.escape(one) for one in patterns
    ]
    return f"^(?:{'|'.join(parts)})$"


def _allowed(input: Mapping[str, Any] | None) -> dict[str, Any]:
    changed = {} if input is None else {"updatedInput": dict(input)}
    return _output({"permissionDecision": "allow", **changed}, "inputs.tools")


def _denied(reason: str) -> dict[str, Any]:
    return _output({"permissionDecision": "deny"}, reason)


def _output(decision: Mapping[str, Any], reason: str) -> dict[str, Any]:
    said = {"hookEventName": "PreToolUse", **decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": said}


def _received(connection: socket.socket) -> bytes:
    data = bytearray()
    while part := connection.recv(1 << 16):
        data += part
        if len(data) > _MOST:
            raise OSError("too much")
    return bytes(data)


def _private_directory() -> str:
    """A directory that only this user can open, with a path short enough for a socket."""
    directory = tempfile.mkdtemp(prefix="agent-eval-")
    if len(os.fsencode(directory)) <= _LONGEST_PATH:
        return directory
    os.rmdir(directory)
    return tempfile.mkdtemp(prefix="agent-eval-", dir="/tmp")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
