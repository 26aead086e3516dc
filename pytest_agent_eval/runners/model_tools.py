"""Tools that a model may call: files of its workspace, and commands in it.

What a tool says goes into the next question, which is recorded. So it says the same in every
workspace: paths are relative, and the workspace's own is replaced.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.llm import ToolCall
from pytest_agent_eval.runners.base import Task
from pytest_agent_eval.runners.capped_log import read_tail
from pytest_agent_eval.runners.environment import agent_environment
from pytest_agent_eval.runners.interaction import Question
from pytest_agent_eval.runners.process import ProcessOutcome, run_process
from pytest_agent_eval.runners.sandbox import Sandbox, may_pass
from pytest_agent_eval.runners.starting import cannot_start

__all__ = [
    "ASK",
    "MAX_RESULT_BYTES",
    "SKILL_TOOLS",
    "Shell",
    "ToolResult",
    "WorkspaceTools",
    "tool_descriptions",
]

MAX_RESULT_BYTES = 100_000
"""Of what a tool says; more is cut, with a marker."""

SKILL_TOOLS = ("read", "write", "list")
"""What a model that follows a skill can use where the suite names no tools."""

ASK = "ask_user_question"
"""The tool for questions, which there is where a handler answers them."""

_TEXT: Mapping[str, Any] = {"type": "string"}
_DESCRIPTIONS: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "read": (
        "Read a text file of the workspace.",
        {"path": {**_TEXT, "description": "relative to the workspace"}},
        ("path",),
    ),
    "write": (
        "Write a text file of the workspace, over an existing one; directories are made.",
        {
            "path": {**_TEXT, "description": "relative to the workspace"},
            "content": {**_TEXT, "description": "the whole content"},
        },
        ("path", "content"),
    ),
    "list": (
        "List a directory of the workspace; names of directories end with a slash.",
        {"path": {**_TEXT, "description": "relative to the workspace; . is the workspace"}},
        (),
    ),
    "bash": (
        "Run a command with bash in the workspace, and get its output.",
        {"command": {**_TEXT, "description": "a command line of bash"}},
        ("command",),
    ),
    ASK: (
        "Ask the user a question, and get the answer.",
        {
            "question": _TEXT,
            "options": {
                "type": "array",
                "items": _TEXT,
                "description": "the answers to choose from; leave it out for a free answer",
            },
            "multi": {"type": "boolean", "description": "whether several options may be chosen"},
        },
        ("question",),
    ),
}

_GATED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "read": ("Read", {"path": "file_path"}),
    "write": ("Write", {"path": "file_path"}),
    "list": ("LS", {}),
    "bash": ("Bash", {}),
}
"""Under which names, of tools and of arguments, handlers know the tools: Claude Code's."""


def tool_descriptions(names: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    """The tools of these names, in the form of OpenAI's chat completions."""
    found = []
    for name in names:
        description, properties, required = _DESCRIPTIONS[name]
        parameters = {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        }
        function = {"name": name, "description": description, "parameters": parameters}
        found.append({"type": "function", "function": function})
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call.

    Attributes:
        text: what the model is told.
        is_error: the call failed; a command that ended with another status than 0 did.
        input: the arguments; as they were written where they are no JSON object.
        outcome: of the command's process, or None.
    """

    text: str
    is_error: bool = False
    input: Any = None
    outcome: ProcessOutcome | None = None


@dataclass(frozen=True, slots=True)
class Shell:
    """How commands are run, for all tasks of a suite.

    Attributes:
        base: of the caller's environment.
        env: ``runner.env``, resolved.
        sandbox: for each command.
        cap: bytes of output that are kept of a command.
    """

    base: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    sandbox: Sandbox = field(default_factory=Sandbox)
    cap: int = MAX_RESULT_BYTES


class _Refused(Exception):
    """A call that fails, and why; the model is told."""


class WorkspaceTools:
    """The tools of one task. A call never raises for what the model does wrong.

    Args:
        task: the task.
        names: of the tools that there are.
        shell: for ``bash``.
        hidden: directories that are not there for the file tools, also where the workspace holds
            them (absolute).
        deadline: of the task, on the monotonic clock.
    """

    def __init__(
        self,
        task: Task,
        names: Sequence[str],
        *,
        shell: Shell,
        hidden: Sequence[str],
        deadline: float,
    ) -> None:
        self._task = task
        self._shell = shell
        self._deadline = deadline
        self._root = os.path.realpath(task.workspace)
        self._hidden = tuple(map(os.path.realpath, hidden))
        every: Mapping[str, Callable[..., ToolResult]] = {
            "read": self._read,
            "write": self._write,
            "list": self._list,
            "bash": self._bash,
            ASK: self._ask,
        }
        self._call = ""
        self._tools = {name: every[name] for name in names}

    def call(self, call: ToolCall) -> ToolResult:
        """Carry out a call.

        Raises:
            RunnerError: no command can be run here.
        """
        arguments: Any = call.arguments
        try:
            tool = self._tools.get(call.name)
            arguments = _arguments(call.arguments)
            if tool is None:
                known = ", ".join(self._tools) or "none"
                raise _Refused(f"there is no tool {call.name!r}; there are {known}")
            _check(call.name, arguments)
            self._call = call.id
            self._gate(call.name, arguments)
            result = tool(**arguments)
        except _Refused as refused:
            result = ToolResult(f"error: {refused}", is_error=True)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            result = ToolResult(f"error: {reason}", is_error=True)
        text = _cut(self._stable(self._task.secrets.text(result.text)))
        return ToolResult(text, result.is_error, arguments, result.outcome)

    def text(self, path: str) -> str | None:
        """The text of a file of the workspace, as ``read`` says it; None when there is none."""
        try:
            return _cut(self._stable(self._task.secrets.text(self._read(path).text)))
        except (_Refused, OSError):
            return None

    def _stable(self, text: str) -> str:
        """The text without what is another one in each trial."""
        for path in dict.fromkeys((str(self._task.workspace), self._root)):
            text = text.replace(path, "<workspace>")
        if self._task.trial_id:
            text = text.replace(self._task.trial_id, "<trial>")
        return text

    def _gate(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Let the suite's handlers deny a call."""
        if name not in _GATED:
            return
        tool, names = _GATED[name]
        decision = self._task.interaction.check_tool(
            tool,
            {names.get(key, key): value for key, value in arguments.items()},
            call=self._call,
            environment=agent_environment(self._task, self._shell.base, self._shell.env),
        )
        if not decision.allowed:
            raise _Refused(decision.reason)

    # -- questions -------------------------------------------------------------------------

    def _ask(self, question: str, options: Sequence[str] = (), multi: bool = False) -> ToolResult:
        asked = Question(question, tuple(options), multi)
        return ToolResult(self._task.interaction.ask(asked, call=self._call))

    # -- files -----------------------------------------------------------------------------

    def _inside(self, path: str) -> str:
        """The real path of a file or directory of the workspace, whether it exists or not."""
        real = os.path.realpath(os.path.join(self._root, path))
        if not _is_below(real, self._root):
            raise _Refused(f"{path} is outside of the workspace")
        if any(_is_below(real, hidden) for hidden in self._hidden):
            raise _Refused(f"{path}: no such file or directory")
        return real

    def _read(self, path: str) -> ToolResult:
        real = self._inside(path)
        status = _status(real, path)
        if not stat.S_ISREG(status.st_mode):
            raise _Refused(f"{path} is {_kind(status)}, not a file")
        with open(real, "rb") as stream:
            data = stream.read(MAX_RESULT_BYTES)
        if b"\0" in data:
            raise _Refused(f"{path} is no text: a binary file of {status.st_size} bytes")
        text = data.decode("utf-8", "replace")
        left = status.st_size - len(data)
        return ToolResult(f"{text}{_marker(left)}" if left > 0 else text)

    def _write(self, path: str, content: str) -> ToolResult:
        real = self._inside(path)
        if os.path.lexists(real) and not stat.S_ISREG(os.stat(real).st_mode):
            raise _Refused(f"{path} is {_kind(os.stat(real))}, not a file")
        data = content.encode("utf-8", "replace")
        os.makedirs(os.path.dirname(real), exist_ok=True)
        with open(real, "wb") as stream:
            stream.write(data)
        return ToolResult(f"wrote {len(data)} bytes to {path}")

    def _list(self, path: str = ".") -> ToolResult:
        real = self._inside(path)
        status = _status(real, path)
        if not stat.S_ISDIR(status.st_mode):
            raise _Refused(f"{path} is {_kind(status)}, not a directory")
        names = []
        with os.scandir(real) as entries:
            for entry in entries:
                if os.path.join(real, entry.name) not in self._hidden:
                    names.append(entry.name + ("/" if entry.is_dir(follow_symlinks=False) else ""))
        return ToolResult("\n".join(map(_printable, sorted(names))) or "(empty)")

    # -- commands --------------------------------------------------------------------------

    def _bash(self, command: str) -> ToolResult:
        task, shell = self._task, self._shell
        if "\0" in command:
            raise _Refused("a command cannot hold a NUL character")
        workspace = str(task.workspace)
        env = agent_environment(task, shell.base, shell.env)
        # One stream, so that errors stand where they happened.
        argv = ["bash", "-c", f"exec 2>&1\n{command}"]
        if shell.sandbox:
            try:
                argv = shell.sandbox.wrap(
                    argv,
                    workspace=workspace,
                    log_dir=str(task.log_dir),
                    path=env.get("PATH", ""),
                )
            except OSError as error:
                raise cannot_start(error, argv, workspace, env) from None
        with tempfile.TemporaryDirectory(prefix="agent-eval-bash-") as directory:
            stdout, stderr = (os.path.join(directory, name) for name in ("stdout", "stderr"))
            outcome = run_process(
                argv,
                cwd=workspace,
                env=env,
                timeout=max(self._deadline - time.monotonic(), 0.001),
                stdout_path=stdout,
                stderr_path=stderr,
                cap=shell.cap,
                trial_id=task.trial_id,
                cancelled=task.cancelled,
                secrets=task.secrets,
                wrapped=bool(shell.sandbox),
            )
            said = read_tail(stdout, 2 * shell.cap)
            aside = read_tail(stderr, 2 * shell.cap)
        if shell.sandbox and outcome.exit_code == 1 and not outcome.stdout_bytes:
            problem = shell.sandbox.failure(aside)
            if problem:
                raise RunnerError(problem, lasting=not may_pass(problem))
        text = said + aside
        if outcome.exit_code:
            text += f"{'' if not text or text.endswith(chr(10)) else chr(10)}{_status_of(outcome)}"
        return ToolResult(text or "(no output)", outcome.exit_code != 0, outcome=outcome)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise _Refused(f"the arguments are no JSON: {error}") from None
    if not isinstance(value, dict):
        raise _Refused("the arguments are no JSON object")
    return value


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    _, properties, required = _DESCRIPTIONS[name]
    for key in required:
        if key not in arguments:
            raise _Refused(f"{name} needs the argument {key}")
    for key, value in arguments.items():
        if key not in properties:
            raise _Refused(f"{name} has no argument {key!r}; there are {', '.join(properties)}")
        kind = properties[key]["type"]
        if kind == "boolean" and not isinstance(value, bool):
            raise _Refused(f"{key} must be true or false")
        if kind == "string" and not isinstance(value, str):
            raise _Refused(f"{key} must be a string")
        if kind == "array" and not _are_texts(value):
            raise _Refused(f"{key} must be a list of strings")
        if key == "path" and "\0" in value:
            raise _Refused("a path cannot hold a NUL character")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(os.path.join(directory, ""))


def _status(real: str, path: str) -> os.stat_result:
    try:
        return os.stat(real)
    except OSError as error:
        raise _Refused(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _kind(status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return "a directory"
    return "a file" if stat.S_ISREG(status.st_mode) else "a special file"


def _status_of(outcome: ProcessOutcome) -> str:
    code = outcome.exit_code or 0
    return f"[killed by signal {-code}]" if code < 0 else f"[exit status {code}]"


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode("utf-8")


def _marker(left: int) -> str:
    return f"\n[... {left} bytes more]"


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_RESULT_BYTES + 200:  # the markers of those who cut before
        return text
    kept = data[:MAX_RESULT_BYTES].decode("utf-8", "ignore")
    return kept + _marker(len(data) - len(kept.encode()))
