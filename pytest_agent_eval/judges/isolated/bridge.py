"""The tests' side of the candidate's process: functions that call over, and their faults."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agent_eval.judges.isolated.codec import Unfit, decode, encode
else:  # a program under -I: its directory is put on the path by run_tests.py
    from codec import Unfit, decode, encode

__all__ = ["Bridge", "CandidateEnded", "CandidateUnfit"]

_MAX_REPLY = 16 * 1024 * 1024


class CandidateEnded(BaseException):
    """The candidate's process ended or said something else than a reply."""


class CandidateUnfit(BaseException):
    """The tests need something that cannot cross between processes: not the candidate's fault."""


class Bridge:
    """Talks with one candidate's process.

    Attributes:
        fault: the first thing that went wrong with the process itself, also if the tests
            swallowed it.
        unfit: the first thing that cannot cross, also if the tests swallowed it.
        calls: how many calls were made.
        last: the last call and what it came to, for messages.
    """

    def __init__(self, command: Sequence[str], cwd: str) -> None:
        self.fault = ""
        self.unfit = ""
        self.calls = 0
        self.last = ""
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            self.names: dict[str, dict[str, Any]] = self._loaded(self._reply())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the candidate's process."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not written yet cannot be any more
                    stream.close()
        self._process.wait()

    def _loaded(self, hello: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Which names the code defines."""
        if "raised" not in hello:
            names: dict[str, dict[str, Any]] = hello["names"]
            return names
        raised = hello["raised"]
        where = f" (line {raised['line']})" if raised["line"] else ""
        raise self._end(f"the code cannot be loaded: {_sentence(raised)}{where}")

    def value(self, name: str) -> Any:
        """What stands for a name of the candidate.

        Raises:
            KeyError: the candidate has no such name.
            CandidateUnfit: it has, but it cannot cross.
        """
        ((kind, inner),) = self.names[name].items()
        if kind == "function":
            return self._function(name)
        if kind == "value":
            return decode(inner)
        if kind in ("module", "class"):
            found = _from_stdlib(inner if kind == "class" else [inner, ""])
            if found is not None:
                return found
        what = f"of type {inner}" if kind == "unfit" else f"a {kind}"
        raise self._unfit(f"the tests use {name}, {what}")

    def _function(self, name: str) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, args, kwargs)

        function.__name__ = function.__qualname__ = name
        return function

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.calls += 1
        words = [_show(value) for value in args]
        words += [f"{key}={_show(value)}" for key, value in kwargs.items()]
        shown = f"{name}({', '.join(words)})"
        self.last = f"{shown} did not return"
        try:
            request = {"call": name, "args": encode(list(args)), "kwargs": encode(kwargs)}
        except Unfit as error:
            raise self._unfit(f"the tests give {name} a value of type {error}") from None
        reply = self._ask(request)
        if "unfit" in reply:
            raise self._unfit(f"{name} returned a value of type {reply['unfit']}")
        if "raised" in reply:
            self.last = f"{shown} raised {_sentence(reply['raised'])}"
            raise _rebuilt(reply["raised"])
        try:
            result = decode(reply["result"])
            _copy_back(args, decode(reply["args"]))
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
            raise self._end("the candidate's process gave an answer that is none") from None
        self.last = f"{shown} returned {_show(result)}"
        return result

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._end(self._how_it_ended()) from None
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline(_MAX_REPLY)
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            reply = None
        if isinstance(reply, dict):
            return reply
        if line.strip():
            raise self._end("the candidate's process gave an answer that is too long or none")
        raise self._end(self._how_it_ended())

    def _how_it_ended(self) -> str:
        status = self._process.wait()
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"the candidate's process ended with {how}"

    def _end(self, said: str) -> CandidateEnded:
        self.fault = self.fault or said
        return CandidateEnded(said)

    def _unfit(self, said: str) -> CandidateUnfit:
        self.unfit = self.unfit or said
        return CandidateUnfit(said)


def _from_stdlib(place: list[str]) -> Any:
    """A module of the standard library, or a class in one; None for anything else."""
    module, qualname = place
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names or top in ("antigravity", "this", "__main__"):
        return None
    try:
        found: Any = importlib.import_module(module)
        for part in filter(None, qualname.split(".")):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found


def _rebuilt(raised: dict[str, Any]) -> Exception:
    """The exception as the nearest class that is built in."""
    for name in raised["classes"]:
        kind = getattr(builtins, str(name), None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(raised["text"])
            except TypeError:  # UnicodeDecodeError wants five arguments
                continue
    return RuntimeError(_sentence(raised))


def _sentence(raised: dict[str, Any]) -> str:
    text = str(raised["text"])
    return f"{raised['classes'][0]}: {text}" if text else str(raised["classes"][0])


def _copy_back(args: tuple[Any, ...], changed: list[Any]) -> None:
    """What the function changed in its arguments, into those the tests hold."""
    for mine, theirs in zip(args, changed, strict=True):
        if type(mine) is not type(theirs) or mine == theirs:
            continue
        if isinstance(mine, list):
            mine[:] = theirs
        elif isinstance(mine, (dict, set)):
            mine.clear()
            mine.update(theirs)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
