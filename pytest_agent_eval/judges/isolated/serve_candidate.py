"""Holds the produced code and calls its functions on request. Started by ``run_tests.py``.

It knows neither the tests nor how a pass is reported: whatever the code does here, it can only
answer calls. Requests and replies are lines of JSON on standard input and output.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from pytest_agent_eval.judges.isolated.codec import Unfit, decode, encode
else:  # a program under -I, which has no package around it
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from codec import Unfit, decode, encode

    del sys.path[0]


def main() -> None:
    """Load the file named by the first argument as a module named by the second, then serve."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    getattr(sys, "set_int_max_str_digits", lambda limit: None)(0)
    serve(sys.argv[1], sys.argv[2], requests, replies)


def serve(path: str, name: str, requests: BinaryIO, replies: BinaryIO) -> None:
    """Load the code, say which names it defines, answer calls until the requests end."""
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    try:
        with open(path, "rb") as stream:
            exec(compile(stream.read(), path, "exec"), module.__dict__)
    except BaseException as error:
        _send(replies, {"raised": _raised(error, path)})
        return
    _send(replies, {"names": _names(module)})
    for line in requests:
        _send(replies, _answer(module, json.loads(line), path))


def _answer(module: types.ModuleType, request: dict[str, Any], path: str) -> dict[str, Any]:
    args = decode(request["args"])
    try:
        result = getattr(module, request["call"])(*args, **decode(request["kwargs"]))
        # The arguments too: a function may be meant to change them in place.
        return {"result": encode(result), "args": encode(args)}
    except Unfit as error:
        return {"unfit": str(error)}
    except BaseException as error:
        return {"raised": _raised(error, path)}


def _names(module: types.ModuleType) -> dict[str, Any]:
    """Name -> what it is: a function, a class, a module, or a value."""
    names: dict[str, Any] = {}
    for name, value in list(vars(module).items()):
        if name.startswith("__"):
            continue
        if isinstance(value, types.ModuleType):
            names[name] = {"module": value.__name__}
        elif isinstance(value, type):
            names[name] = {"class": [value.__module__, value.__qualname__]}
        elif callable(value):
            names[name] = {"function": None}
        else:
            try:
                names[name] = {"value": encode(value)}
            except Exception:
                names[name] = {"unfit": type(value).__name__}
    return names


def _raised(error: BaseException, path: str) -> dict[str, Any]:
    """The names of its classes, its text, and the last line of the candidate in its traceback."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        text = str(error)[:2000]
    except BaseException:
        text = ""
    return {"classes": [kind.__name__ for kind in type(error).__mro__], "text": text, "line": line}


def _send(replies: BinaryIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message).encode() + b"\n")
    replies.flush()


if __name__ == "__main__":
    main()
