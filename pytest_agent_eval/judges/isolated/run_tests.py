"""Runs given tests against produced code and reports on a descriptor the code does not have.

Standard input holds one JSON object: ``tests`` (text), ``entry_point``, ``candidate`` (path),
``module`` (name), ``cwd``, ``token``, ``memory_bytes``, ``cpu_s``, ``shared`` (run both in this one
process). Standard output gets a line of JSON with ``error``, ``detail``, ``unfit``, then the token
if and only if the tests passed, then ``end``. After that the process waits to be killed, so that
whoever started it still finds all its descendants.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import linecache
import os
import signal
import sys
import traceback
import types
import unittest
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agent_eval.judges.isolated.bridge import Bridge, CandidateEnded
else:  # a program under -I, which has no package around it
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from bridge import Bridge, CandidateEnded

    del sys.path[0]

_TESTS = "tests"
_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "serve_candidate.py")


def main() -> None:
    """Read the order, carry it out, report, wait."""
    order = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    _protect(order["memory_bytes"], order["cpu_s"])
    getattr(sys, "set_int_max_str_digits", lambda limit: None)(0)
    # Bound before any foreign code runs: it may replace what a module holds.
    write, encode_text = os.write, json.JSONEncoder().encode
    good = b"\n" + order.pop("token").encode() + b"\nend\n"
    report = carry_out(order)
    write(out, encode_text(report).encode())
    write(out, b"\nend\n" if report["error"] else good)
    signal.pause()


def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Run the tests: ``error`` is empty if they passed; ``unfit``: they cannot be run so."""
    tests = Tests(order["tests"], order["entry_point"])
    try:
        if order["shared"]:
            namespace = _load_here(order["candidate"], order["module"])
            tests.run(namespace, namespace.get(order["entry_point"] or ""))
            return _report("")
        return _over_bridge(tests, order)
    except BaseException as error:
        return _report(tests.describe(error), detail=tests.trace(error))


def _over_bridge(tests: Tests, order: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-I", "-B", _SERVER, order["candidate"], order["module"]]
    try:
        bridge = Bridge(command, order["cwd"])
    except CandidateEnded as error:
        return _report(str(error))
    failure: BaseException | None = None
    try:
        entry = bridge.value(tests.entry_point) if tests.entry_point in bridge.names else None
        tests.run(_namespace(tests, bridge, order["module"]), entry)
    except BaseException as error:
        failure = error
    finally:
        bridge.close()
    if bridge.unfit:
        return _report(bridge.unfit, unfit=True)
    if bridge.fault:
        return _report(f"{bridge.fault}; {bridge.last}".removesuffix("; "))
    if failure is not None:
        said = tests.describe(failure)
        detail = tests.trace(failure)
        return _report(f"{said}; {bridge.last}".removesuffix("; "), detail=detail)
    if not bridge.calls and not tests.names.intersection(bridge.names):
        return _report("the tests do not use the code", unfit=True)
    return _report("")


class Tests:
    """Given tests: asserts in the text itself, ``check(candidate)``, ``test_*``, TestCases."""

    def __init__(self, text: str, entry_point: str | None) -> None:
        self.text = text
        self.entry_point = entry_point or ""
        self.names: set[str] = set()
        """Names that the tests read and do not define at their top level."""
        linecache.cache[_TESTS] = (len(text), None, text.splitlines(keepends=True), _TESTS)

    def parse(self) -> ast.Module:
        """The tests' syntax tree; notes which names they need."""
        tree = ast.parse(self.text, _TESTS)
        self.names = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.names.discard(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.names -= {(item.asname or item.name).partition(".")[0] for item in node.names}
        return tree

    def run(self, namespace: dict[str, Any], entry: Any) -> None:
        """Carry all of them out; raises what they raise."""
        tree = self.parse()
        if self.entry_point and entry is None:
            raise AssertionError(f"the code defines no {self.entry_point}")
        namespace.setdefault("candidate", entry)
        before = dict(namespace)
        exec(compile(tree, _TESTS, "exec"), namespace)
        own = {name: value for name, value in namespace.items() if before.get(name) is not value}
        check = own.get("check")
        if callable(check) and entry is not None:
            check(entry)
        for name, value in own.items():
            if name.startswith("test") and isinstance(value, types.FunctionType):
                value()
            elif isinstance(value, type) and issubclass(value, unittest.TestCase):
                _run_case(value)

    def describe(self, error: BaseException) -> str:
        """``assert f(2) == 4 failed (tests:3)``."""
        line = None
        for frame, number in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == _TESTS:
                line = number
        where = f" ({_TESTS}:{line})" if line else ""
        source = linecache.getline(_TESTS, line).strip() if line else ""
        text = str(error).split("\n", 1)[0][:500]
        if isinstance(error, AssertionError):
            said = f"{source} failed" if source.startswith("assert") else text or "a test failed"
            return f"{said}{where}"
        return f"{type(error).__name__}: {text}{where}".replace(": (", " (")

    def trace(self, error: BaseException) -> str:
        """The lines of the tests that led to an error."""
        lines = []
        for frame, number in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == _TESTS and number is not None:
                source = linecache.getline(_TESTS, number).strip()
                lines.append(f"{_TESTS}:{number}: in {frame.f_code.co_name}\n    {source}")
        return "\n".join(lines[-20:])


def _run_case(case: type[unittest.TestCase]) -> None:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    bad = [*result.failures, *result.errors]
    if bad:
        test, trace = bad[0]
        last = trace.strip().rsplit("\n", 1)[-1]
        raise AssertionError(f"{len(bad)} of {result.testsRun} failed: {test.id()}: {last}")
    if not result.testsRun:
        raise AssertionError(f"{case.__name__} has no tests")


def _namespace(tests: Tests, bridge: Bridge, module: str) -> dict[str, Any]:
    """What the tests see: of the candidate only what they name, and no built-in name."""
    tests.parse()
    wanted = {
        name: bridge.value(name)
        for name in bridge.names
        if name in tests.names and (name == tests.entry_point or not hasattr(builtins, name))
    }
    for alias in {module, "candidate", "solution"}:
        if alias not in sys.stdlib_module_names:
            sys.modules[alias] = _Module(alias, bridge)
    return {"__name__": _TESTS, **wanted}


class _Module(types.ModuleType):
    """``from solution import f`` in the tests."""

    def __init__(self, name: str, bridge: Bridge) -> None:
        super().__init__(name)
        self._bridge = bridge

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._bridge.names:
            raise AttributeError(f"the code defines no {name}")
        return self._bridge.value(name)


def _load_here(path: str, name: str) -> dict[str, Any]:
    module = types.ModuleType(name)
    sys.modules[name] = module
    with open(path, "rb") as stream:
        exec(compile(stream.read(), path, "exec"), module.__dict__)
    return module.__dict__


def _report(error: str, *, unfit: bool = False, detail: str = "") -> dict[str, Any]:
    return {"error": error[:4000], "unfit": unfit, "detail": detail[:10_000]}


def _protect(memory_bytes: int, cpu_s: int) -> None:
    """Limits that children inherit, and no looking into this process by its children."""
    with contextlib.suppress(ImportError):
        import resource

        limits = ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CPU, cpu_s),
                  (resource.RLIMIT_FSIZE, 64 * 1024 * 1024), (resource.RLIMIT_CORE, 0))  # fmt: skip
        for which, limit in limits:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(which, (limit, limit))
    _prctl(4, 0)  # PR_SET_DUMPABLE: /proc/<this>/fd and /mem are closed to the candidate
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans stay below this process


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(Exception):
        import ctypes

        prctl: Callable[..., int] = ctypes.CDLL(None).prctl
        prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
