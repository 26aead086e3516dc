from __future__ import annotations

import pytest

from pytest_agent_eval.execution.outcome import Outcome, decide
from pytest_agent_eval.results import Verdict

WORKED = Verdict("execution", True, passed=True)


def ok(name: str) -> Verdict:
    return Verdict(name, True, passed=True)


def bad(name: str) -> Verdict:
    return Verdict(name, False, "no", passed=False)


def error(name: str, text: str = "KeyError: 'x' (eval.yaml:14)") -> Verdict:
    return Verdict(name, error=text)


def skipped(name: str) -> Verdict:
    return Verdict(name, rationale="not judged: input.lang == 'de'", skipped=True)


def number(name: str, passed: bool | None = None) -> Verdict:
    return Verdict(name, 3.5, passed=passed)


@pytest.mark.parametrize(
    ("verdicts", "gated", "expected"),
    [
        ([], [], Outcome("passed", "", "")),
        ([ok("a"), ok("b")], [], Outcome("passed", "", "")),
        (
            [ok("a"), bad("tone"), bad("schema"), ok("b"), ok("c")],
            [],
            Outcome("failed", "verdict", "2 of 5 judges failed: tone, schema"),
        ),
        ([bad("tone")], [], Outcome("failed", "verdict", "1 of 1 judge failed: tone")),
        (
            [ok("a"), bad("tone")],
            ["tone"],
            Outcome("tolerated", "verdict", "1 of 2 judges failed: tone"),
        ),
        (
            [bad("schema"), bad("tone")],
            ["tone"],
            Outcome("failed", "verdict", "2 of 2 judges failed: schema, tone"),
        ),
        ([number("n")], [], Outcome("passed", "", "")),
        ([number("n", True)], [], Outcome("passed", "", "")),
        ([number("n", False)], [], Outcome("failed", "verdict", "1 of 1 judge failed: n")),
        ([number("n", False)], ["n"], Outcome("tolerated", "verdict", "1 of 1 judge failed: n")),
        ([ok("a"), skipped("b")], [], Outcome("passed", "", "")),
        (
            [bad("a"), skipped("b")],
            [],
            Outcome("failed", "verdict", "1 of 1 judge failed: a"),
        ),
        (
            [skipped("a"), skipped("b")],
            [],
            Outcome(
                "skipped",
                "",
                "every judge was skipped: a (not judged: input.lang == 'de'), "
                "b (not judged: input.lang == 'de')",
            ),
        ),
        (
            [ok("a"), error("tone")],
            [],
            Outcome("failed", "judge", "judge error: tone: KeyError: 'x' (eval.yaml:14)"),
        ),
        (
            [ok("a"), error("tone")],
            ["tone"],
            Outcome("tolerated", "judge", "judge error: tone: KeyError: 'x' (eval.yaml:14)"),
        ),
        (
            [error("a", "one\ntwo"), error("b")],
            [],
            Outcome("failed", "judge", "2 judge errors: a, b (a: one)"),
        ),
        (
            [bad("a"), error("b", "boom")],
            [],
            Outcome("failed", "verdict", "1 of 2 judges failed: a; judge error: b: boom"),
        ),
        (
            [bad("gated"), error("b", "boom")],
            ["gated"],
            Outcome("failed", "judge", "1 of 2 judges failed: gated; judge error: b: boom"),
        ),
        (
            [bad("a"), error("gated", "boom")],
            ["gated"],
            Outcome("failed", "verdict", "1 of 2 judges failed: a; judge error: gated: boom"),
        ),
        (
            [bad("a"), error("b", "boom")],
            ["a", "b"],
            Outcome("tolerated", "verdict", "1 of 2 judges failed: a; judge error: b: boom"),
        ),
    ],
)
def test_table(verdicts: list[Verdict], gated: list[str], expected: Outcome) -> None:
    assert decide(WORKED, verdicts, gated) == expected
    # Without an execution verdict the judges alone decide.
    assert decide(None, verdicts, gated) == expected


@pytest.mark.parametrize("kind", ["agent", "timeout", "budget"])
@pytest.mark.parametrize("verdicts", [[], [ok("a")], [bad("a")], [skipped("a")], [error("a")]])
def test_agent_failure_comes_first(kind: str, verdicts: list[Verdict]) -> None:
    execution = Verdict("execution", False, "the agent exited with status 3\nmore", passed=False)
    outcome = decide(execution, verdicts, ["a"], execution_kind=kind)  # type: ignore[arg-type]
    assert outcome == Outcome("failed", kind, "the agent exited with status 3")  # type: ignore[arg-type]


def test_infrastructure_is_an_error_of_the_case() -> None:
    execution = Verdict("execution", error="rate limited")
    outcome = decide(execution, [ok("a")], [], execution_kind="infrastructure")
    assert outcome == Outcome("error", "infrastructure", "rate limited")


def test_an_execution_that_says_nothing_still_has_a_reason() -> None:
    outcome = decide(Verdict("execution", False, passed=False), [], [])
    assert outcome == Outcome("failed", "agent", "the execution failed (agent)")


def test_many_names_are_cut() -> None:
    outcome = decide(WORKED, [bad(f"j{n}") for n in range(9)], [])
    assert outcome.reason == "9 of 9 judges failed: j0, j1, j2, j3, j4, j5 and 3 more"
    outcome = decide(WORKED, [skipped(f"j{n}") for n in range(9)], [])
    assert outcome.status == "skipped"
    assert outcome.reason.endswith("and 3 more")
