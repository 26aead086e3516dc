"""The produced Python code passes given unit tests."""

from __future__ import annotations

import ast
import json
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pytest_agent_eval.judges.content import below, content_of, place_in
from pytest_agent_eval.judges.subprocesses import Reply, bwrap_prefix, run_program
from pytest_agent_eval.results import Verdict

_RUN_TESTS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "isolated",
    "run_tests.py",
)
_FENCE = re.compile(r"^```(?:python|py|python3)?[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PLACE = re.compile(r"(?:annotations|input)(?:\.[A-Za-z_]\w*)+")


def judge(
    outputs: Mapping[str, Any],
    file: str | None = None,
    tests: str | None = None,
    tests_file: str | None = None,
    entry_point: str | None = None,
    prompt: str = "",
    timeout: float = 10.0,
    isolation: Literal["separate", "shared"] = "separate",
    memory_mb: int = 4096,
) -> Verdict:
    """Pass if the tests pass against the produced code.

    The tests are asserts, a function ``check(candidate)`` (HumanEval), functions ``test_*`` or
    ``unittest`` classes. The code is copied, alone, to a new directory and runs there with
    ``python -I``: nothing else that the agent left can take part. With ``separate`` isolation the
    code runs in a process of its own that only answers calls, with values of built-in types; it
    sees neither the tests nor the report. Tests that need its classes take ``shared``, where
    code and tests run in one process: fine for code that is wrong, weaker against code that
    cheats. In bubblewrap where that is usable.

    Args:
        outputs: the record.
        file: the output file with the code; default: the main content. Of a text that is no
            ``.py`` file the first fenced block is used, if there is one.
        tests: the tests, or a dotted place such as ``annotations.test`` (the default) that holds
            them.
        tests_file: a file with the tests below the case's directory.
        entry_point: the name ``check`` is called with; default: ``annotations.entry_point``.
        prompt: code that the produced code continues, or a dotted place such as ``input.prompt``.
        timeout: seconds of the whole run. Keep it below the judge's own ``timeout``.
        isolation: see above.
        memory_mb: limit of each process's address space.

    Raises:
        ValueError: the case has no tests, or tests that cannot be run so.
    """
    text = _tests(outputs, tests, tests_file)
    if entry_point is None:
        entry_point = outputs["annotations"].get("entry_point")
    content = content_of(outputs, file)
    if content.fault:
        return Verdict("", False, content.fault)
    stem = os.path.splitext(os.path.basename(content.name))[0]
    token = secrets.token_hex(32)
    order: dict[str, Any] = {
        "tests": text,
        "entry_point": entry_point,
        "module": stem if stem.isidentifier() else "candidate",
        "memory_bytes": memory_mb * 1024 * 1024,
        "cpu_s": int(timeout) + 5,
        "shared": isolation == "shared",
        "token": token,
    }
    hidden = [os.path.dirname(str(outputs["case_dir"])), str(outputs["workspace"])]
    reply, how = _run(
        order, _text_of(prompt, outputs) + _code(content.text, content.name), timeout, hidden
    )
    return _verdict(reply, token, timeout, how)


def validate(**arguments: Any) -> Iterator[tuple[str, str]]:
    """Arguments that contradict each other or cannot work, as (argument, message)."""
    if arguments.get("tests") is not None and arguments.get("tests_file") is not None:
        yield "tests_file", "tests and tests_file exclude each other"
    if arguments.get("timeout", 1) <= 0:
        yield "timeout", "timeout must be more than 0 seconds"
    if arguments.get("memory_mb", 64) < 64:
        yield "memory_mb", "memory_mb must be at least 64"


def _run(order: dict[str, Any], code: str, timeout: float, hidden: list[str]) -> tuple[Reply, str]:
    with tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as place:
        place = os.path.realpath(place)
        work = os.path.join(place, "work")
        os.mkdir(work)
        order["cwd"] = work
        order["candidate"] = os.path.join(place, "code.py")
        with open(order["candidate"], "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(code)
        prefix = bwrap_prefix(place, [path for path in hidden if path])
        command = [*prefix, sys.executable, "-I", "-B", _RUN_TESTS]
        reply = run_program(command, json.dumps(order).encode(), cwd=place, timeout=timeout)
    return reply, "in bubblewrap" if prefix else "without bubblewrap, which is not usable here"


def _verdict(reply: Reply, token: str, timeout: float, how: str) -> Verdict:
    detail = f"run {how}"
    lines = reply.output.split(b"\n")
    # The token is the only sign of a pass: no exit status and no text of the code can be one.
    if token.encode() in lines:
        return Verdict("", True, "the tests passed", detail=detail)
    report = _report(lines)
    if report is not None:
        if report["unfit"]:
            advice = "isolation: shared runs the tests in one process with the code"
            raise ValueError(f"{report['error']}; {advice}")
        return Verdict("", False, report["error"], detail=f"{report['detail']}\n{detail}".strip())
    if reply.timed_out:
        return Verdict("", False, f"the tests did not finish within {timeout:g} s", detail=detail)
    return Verdict(
        "", False, "the code ended the process before the tests were done", detail=detail
    )


def _report(lines: list[bytes]) -> dict[str, Any] | None:
    """The first line that is a report of a failure."""
    for line in lines:
        if line.startswith(b"{"):
            try:
                report = json.loads(line)
            except ValueError:
                continue
            if report.get("error") and isinstance(report.get("unfit"), bool):
                return {**report, "error": str(report["error"]), "detail": str(report["detail"])}
    return None


def _tests(outputs: Mapping[str, Any], tests: str | None, tests_file: str | None) -> str:
    if tests_file is not None:
        with open(below(outputs["case_dir"], tests_file), encoding="utf-8-sig") as stream:
            text = stream.read()
    else:
        text = _text_of(tests if tests is not None else "annotations.test", outputs)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"the tests are no Python: {error}") from None
    if not tree.body:
        raise ValueError("the tests are empty")
    return text


def _text_of(text: str, outputs: Mapping[str, Any]) -> str:
    """The text, or the one at the dotted place that it names."""
    if not _PLACE.fullmatch(text.strip()):
        return text
    found = place_in(outputs, text.strip())
    if not isinstance(found, str):
        raise ValueError(f"{text.strip()} must be a text, not {type(found).__name__}")
    return found


def _code(text: str, name: str) -> str:
    """The code in an answer: all of a ``.py`` file, else the first fenced block if there is one.

    The text is not parsed here: a hostile one could take this process down with it.
    """
    block = None if name.endswith(".py") else _FENCE.search(text)
    return text if block is None else block.group(1)
