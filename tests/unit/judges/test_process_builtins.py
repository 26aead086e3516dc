from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_agent_eval.judges.builtin.process import (
    consulted_docs,
    tool_call_validation,
    tools_used,
)

RecordFactory = Callable[..., dict[str, Any]]


def events(*calls: tuple[str, Any] | tuple[str, Any, dict[str, Any]]) -> list[dict[str, Any]]:
    """Events of tool calls ``(name, input, more)``; ``more`` may say is_error and agent."""
    found: list[dict[str, Any]] = [{"type": "message", "agent": "root", "text": "hello"}]
    for number, call in enumerate(calls):
        more: dict[str, Any] = call[2] if len(call) == 3 else {}
        agent = more.get("agent", "root")
        found.append(
            {"type": "tool_call", "name": call[0], "input": call[1], "id": number, "agent": agent}
        )
        found.append(
            {
                "type": "tool_result",
                "id": number,
                "agent": agent,
                "is_error": more.get("is_error", False),
                "text": more.get("text", ""),
            }
        )
    return found


def read(path: str, **more: Any) -> tuple[str, Any, dict[str, Any]]:
    return ("Read", {"file_path": path}, more)


@pytest.mark.parametrize(
    ("expected", "calls", "arguments", "passed", "said"),
    [
        (["docs/a.md"], [read("docs/a.md")], {}, True, "1 of 1"),
        (["docs/a.md"], [read("/ws/docs/a.md")], {}, True, "1 of 1"),
        (["docs/a.md"], [read("a.md")], {}, True, "1 of 1"),
        (["docs/a.md"], [read("./docs//a.md")], {}, True, ""),
        (["docs/a.md"], [read("docs\\a.md")], {}, True, ""),
        (["/docs/a.md"], [read("/ws/docs/a.md")], {}, True, ""),
        # Near misses: whole components, not letters; the right file.
        (["a.md"], [read("docs/aa.md")], {}, False, "not read: a.md"),
        (["docs/a.md"], [read("mydocs/a.md")], {}, False, "not read: docs/a.md"),
        (["docs/a.md"], [read("docs")], {}, False, ""),
        (["docs/a.md"], [read(".")], {}, False, ""),
        (["docs/a.md"], [read("/")], {}, False, ""),
        (["docs/a.md"], [("Write", {"file_path": "docs/a.md"})], {}, False, ""),
        (["docs/a.md"], [read("docs/a.md", is_error=True)], {}, False, "not read: docs/a.md"),
        (["docs/a.md"], [read("docs/a.md", is_error=True), read("docs/a.md")], {}, True, ""),
        ("docs/a.md", [read("docs/a.md")], {}, True, "1 of 1"),
        ("docs/a.md", [], {}, False, "0 of 1"),
        (["a", "b", "c", "d", "e"], [read(x) for x in "abcd"], {}, True, "4 of 5"),
        (["a", "b", "c", "d", "e"], [read(x) for x in "abc"], {}, False, "not read: d, e"),
        (["a", "b"], [read("a")], {"min_coverage": 0.5}, True, "not read: b"),
        (["a", "a"], [read("a")], {"min_coverage": 1}, True, "1 of 1"),
        (["d/a"], [read("d/a")], {"match": "exact"}, True, ""),
        (["d/a"], [read("/nowhere/workspace/d/a")], {"match": "exact"}, True, ""),
        (["d/a"], [read("/else/d/a")], {"match": "exact"}, False, ""),
        (["d/a"], [read("a")], {"match": "exact"}, False, ""),
        (["d/a"], [read("x/a")], {"match": "basename"}, True, ""),
        (["d/a"], [read("x/b")], {"match": "basename"}, False, ""),
        (["./"], [read("a")], {}, False, ""),
        (["a"], [read("a", agent="sub")], {}, True, ""),
        (["a"], [read("a", agent="sub")], {"include_subagents": False}, False, ""),
        (["d/a"], [("Grep", {"pattern": "x", "path": "d/a"})], {}, True, ""),
        (["d/a"], [("Grep", {"path": "d/a"})], {"include_grep": False}, False, ""),
        (["a"], [], {"preloaded_files": ["a"]}, True, ""),
        (["a"], [], {"preloaded_files": "a"}, True, ""),
        (["d/a"], [("mcp__fs__read_file", {"path": "d/a"})], {}, True, ""),
        (["a", "b"], [("read_multiple_files", {"paths": ["a", "b"]})], {}, True, "2 of 2"),
        (["d/a"], [("Bash", {"command": "cd x && cat d/a | head -5"})], {}, True, ""),
        (["d/a"], [("Bash", {"command": "ls\nsed -n '1,5p' d/a"})], {}, True, ""),
        (["d/a"], [("shell", {"cmd": ["bash", "-lc", "cat 'd/a'"]})], {}, True, ""),
        (["d/a"], [("shell", {"command": ["cat", "d/a"]})], {}, True, ""),
        (["d/a"], [("Bash", {"command": "cat 'd/a"})], {}, False, ""),
        (["d/a"], [("Bash", {"command": "grep -n x d/a"})], {}, True, ""),
        (["d/a"], [("Bash", {"command": "grep -n x d/a"})], {"include_grep": False}, False, ""),
        (["d/a"], [("Bash", {"command": "grep d/a index"})], {}, False, ""),
        (["d/a"], [("Bash", {"command": "cat x > d/a"})], {}, False, ""),
        (["d/a"], [("Bash", {"command": "rm d/a"})], {}, False, ""),
        (["d/a"], [("Bash", {"command": 7})], {}, False, ""),
        (["d/a"], [("Read", None)], {}, False, ""),
    ],
)
def test_consulted_docs(
    record: RecordFactory,
    expected: Any,
    calls: list[Any],
    arguments: dict[str, Any],
    passed: bool,
    said: str,
) -> None:
    outputs = record(annotations={"expected_files": expected}, events=events(*calls))
    value, rationale = consulted_docs.judge(outputs, **arguments)
    assert value is passed, rationale
    assert said in rationale


@pytest.mark.parametrize("annotations", [{}, {"expected_files": None}, {"expected_files": []}])
def test_no_expected_files(record: RecordFactory, annotations: dict[str, Any]) -> None:
    value, rationale = consulted_docs.judge(record(annotations=annotations))
    assert value is True
    assert "nothing to verify" in rationale


@pytest.mark.parametrize("expected", [{"a": 1}, 3, ["a", 3]])
def test_expected_files_of_a_wrong_type(record: RecordFactory, expected: Any) -> None:
    with pytest.raises(ValueError, match="expected_files"):
        consulted_docs.judge(record(annotations={"expected_files": expected}))


def test_many_missing_files_are_cut(record: RecordFactory) -> None:
    outputs = record(annotations={"expected_files": [f"f{n}" for n in range(14)]})
    assert "f9 and 4 more" in consulted_docs.judge(outputs)[1]


def test_coverage_must_be_a_share() -> None:
    assert list(consulted_docs.validate(min_coverage=0.5)) == []
    assert list(consulted_docs.validate(min_coverage=80))


def test_tool_calls_are_used_when_there_are_no_events(record: RecordFactory) -> None:
    calls = [{"name": "Read", "input": {"path": "a"}, "result": "x", "is_error": False}]
    outputs = record(annotations={"expected_files": ["a"]}, tool_calls=calls)
    assert consulted_docs.judge(outputs)[0]


def test_tool_call_validation(record: RecordFactory) -> None:
    assert tool_call_validation.judge(record()) == (True, "no tool calls: nothing to verify")
    fine = events(("Bash", {}, {"text": "0 errors found"}), read("a"))
    assert tool_call_validation.judge(record(events=fine))[0]
    broken = events(("Bash", {}, {"is_error": True, "text": "exit 1\nboom"}), read("a"))
    value, rationale = tool_call_validation.judge(record(events=broken))
    assert value is False
    assert rationale == "1 of 2 tool calls ended in an error: Bash: exit 1 boom"


def test_tool_call_validation_of_subagents_and_many(record: RecordFactory) -> None:
    broken = events(*[("X", {}, {"is_error": True, "agent": "sub"})] * 7)
    value, rationale = tool_call_validation.judge(record(events=broken))
    assert value is False
    assert "X: no text" in rationale
    assert rationale.endswith("and 2 more")
    assert tool_call_validation.judge(record(events=broken), include_subagents=False)[0]


CALLS: tuple[tuple[str, Any], ...] = (
    ("Grep", {"pattern": "x"}),
    ("Read", {"file_path": "docs/a.md"}),
    ("Bash", {"command": "pytest -q", "opts": {"n": 1}}),
    ("mcp__git__commit", {}),
)


@pytest.mark.parametrize(
    ("arguments", "passed", "said"),
    [
        ({"required": "Read"}, True, "called: Grep, Read, Bash"),
        ({"required": ["Read", "Write"]}, False, "Write was not called"),
        ({"required": ["read"]}, False, "read was not called"),
        ({"required": ["Rea"]}, False, ""),
        ({"required": ["mcp__git__*"]}, True, ""),
        ({"required": [{"tool": "Bash", "input": {"command": "^pytest"}}]}, True, ""),
        ({"required": [{"tool": "Bash", "input": {"opts": '"n": 1'}}]}, True, ""),
        (
            {"required": [{"tool": "Bash", "input": {"command": "^rm"}}]},
            False,
            "Bash(command=~^rm) was not called",
        ),
        ({"required": [{"tool": "Bash", "input": {"cwd": ".*"}}]}, False, ""),
        ({"required": [{"tool": "Bash"}]}, True, ""),
        ({"forbidden": ["Write", "Web*"]}, True, ""),
        ({"forbidden": ["Bash"]}, False, "Bash is forbidden and was called 1 x"),
        ({"ordered": ["Grep", "Bash"]}, True, ""),
        ({"ordered": ["Bash", "Grep"]}, False, "Grep was not called after Bash"),
        ({"ordered": ["Read", "Read"]}, False, "Read was not called after Read"),
        ({"ordered": ["Write"]}, False, "Write was not called"),
    ],
)
def test_tools_used(
    record: RecordFactory, arguments: dict[str, Any], passed: bool, said: str
) -> None:
    value, rationale = tools_used.judge(record(events=events(*CALLS)), **arguments)
    assert value is passed, rationale
    assert said in rationale


def test_tools_used_without_calls(record: RecordFactory) -> None:
    assert tools_used.judge(record(), required=["X"]) == (
        False,
        "X was not called; called: none",
    )


def test_many_tools_are_cut(record: RecordFactory) -> None:
    calls = events(*[(f"t{n}", {}) for n in range(15)], ("t0", {}))
    assert tools_used.judge(record(events=calls), forbidden="x")[1].endswith("and 3 more")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "at least one"),
        ({"required": []}, "at least one"),
        ({"required": [""]}, "needs a tool's name"),
        ({"ordered": [3]}, "an entry is"),
        ({"forbidden": [{"name": "Bash"}]}, "an entry is"),
        ({"forbidden": [{"tool": "Bash", "inputs": {}}]}, "unknown key 'inputs'"),
        ({"forbidden": [{"tool": "Bash", "input": "x"}]}, "must be a mapping"),
        ({"forbidden": [{"tool": "Bash", "input": {"c": "("}}]}, "does not compile"),
    ],
)
def test_tools_used_refuses(arguments: dict[str, Any], said: str) -> None:
    ((_, message), *_) = list(tools_used.validate(**arguments))
    assert said in message


def test_tools_used_accepts() -> None:
    entries: list[Any] = ["Read", {"tool": "Bash", "input": {"command": "x"}}]
    assert list(tools_used.validate(required=entries, forbidden="Write", ordered=None)) == []
