from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.evidence.aggregate import JudgeInfo
from pytest_agent_eval.llm.recordings import Recordings
from pytest_agent_eval.llm.request import ModelReply, ModelRequest
from pytest_agent_eval.results import TrialResult, Usage, Verdict

from .conftest import INFO, WORKED, Command, store, trial

SUITE = "dataset: {path: cases}\nrunner: {type: cli, command: 'true'}\n"
WHOLE = replace(INFO, total={"dev": 2, "holdout": 0}, selected={"dev": 2, "holdout": 0})

Stored = Callable[..., str]


@pytest.fixture
def keys(runs: Path) -> list[str]:
    """The keys of four recordings beside a suite, whose file they are relative to."""
    recordings = Recordings(Path("evals", "recordings"))
    found = []
    for number in range(4):
        request = ModelRequest("openai/m", ({"role": "user", "content": str(number)},))
        recordings.store(request, ModelReply("yes", model="m", date="2026-01-01T00:00:00"))
        found.append(recordings.key(request))
    Path("evals", "eval.yaml").write_text(SUITE)
    return found


@pytest.fixture
def stored(runs: Path) -> Stored:
    """Store a run."""

    def stored(name: str, *results: TrialResult, complete: bool = True, **header: Any) -> str:
        info = header.pop("info", WHOLE)
        writer = store(runs, *results, name=name, **{"options": {}, **header})
        writer.close({}, 0, complete, [info.to_dict()])
        return name

    return stored


def judged(case: str, *keys: str, agent: tuple[str, ...] = ()) -> TrialResult:
    verdict = Verdict("polite", True, passed=True, asked={"recordings": list(keys)})
    return trial(case, verdicts=(verdict,), usage=Usage(recordings=agent))


def left() -> set[str]:
    return {path.stem for path in Path("evals/recordings").glob("*/*.json")}


def test_what_no_judge_and_no_agent_used_is_deleted(
    keys: list[str], stored: Stored, command: Command
) -> None:
    stored("new", judged("a", keys[0]), judged("b", agent=(keys[2],)))
    directory = Path("evals/recordings", keys[1][:2])
    (directory / ".recording-abc").write_text("{")
    status, said, _ = command("recordings", "prune", "evals", "--dry-run")
    assert status == 0
    assert said.startswith("evals/recordings: 2 recordings would be deleted (1 kB), 2 used\n")
    assert all(keys[n] in said for n in (1, 3))
    assert left() == {*keys}
    assert command("recordings", "prune", "evals")[0] == 0
    assert left() == {keys[0], keys[2]}
    assert directory.exists() is (directory.name in (keys[0][:2], keys[2][:2]))
    _, said, _ = command("recordings", "prune", "evals")
    assert said == "evals/recordings: 0 recordings deleted (0 kB), 2 used\n"


def test_what_an_earlier_attempt_used_stays(
    keys: list[str], stored: Stored, command: Command
) -> None:
    first = trial("a", value=False, usage=Usage(recordings=(keys[3],)))
    stored("new", first, judged("a", keys[0]), judged("b", keys[1]))
    assert command("recordings", "prune", "evals")[0] == 0
    assert left() == {keys[0], keys[1], keys[3]}


def test_several_runs_together(keys: list[str], stored: Stored, command: Command) -> None:
    info = replace(WHOLE, selected={"dev": 1, "holdout": 0})
    stored("all", judged("a", keys[0]), judged("b", keys[1]))
    stored("part", judged("b", keys[2]), info=info)
    words = ("recordings", "prune", "evals/eval.yaml", "--run", "all", "--run", "part")
    assert command(*words)[0] == 0
    assert left() == {*keys[:3]}


COMPARING = replace(WHOLE, judges=(*WHOLE.judges, JudgeInfo("pairwise", "pairwise")))
NEVER_STARTED = replace(trial("b"), status="error", kind="infrastructure", verdicts=())
NO_VERDICT = replace(trial("b"), verdicts=(Verdict("polite", error="it raised"),))


@pytest.mark.parametrize(
    ("results", "header", "reason"),
    [
        ([], {"info": replace(WHOLE, selected={"dev": 1})}, "greetings, new: 1 of 2 cases ran"),
        ([], {"complete": False}, "greetings, new: it did not end"),
        ([], {"options": {"variants": ["x"]}}, "it ran with --agent-eval-variant"),
        ([], {"options": {"model": "x"}}, "it ran with --agent-eval-model"),
        ([], {"info": COMPARING}, "it ran without --agent-eval-baseline, so that pairwise asked"),
        ([NEVER_STARTED], {}, "1 trial ended before all was asked (b)"),
        ([NO_VERDICT], {}, "1 trial ended before all was asked (b)"),
        ([], {"info": replace(WHOLE, key="other/eval.yaml")}, "eval.yaml did not run in new"),
    ],
)
def test_nothing_is_deleted_by_a_run_that_does_not_tell_all(
    keys: list[str],
    stored: Stored,
    command: Command,
    results: list[TrialResult],
    header: dict[str, Any],
    reason: str,
) -> None:
    stored("new", judged("a", keys[0]), *results, **header)
    status, said, error = command("recordings", "prune", "evals")
    assert (status, said) == (2, "")
    assert reason in error
    assert "nothing was deleted" in error
    assert "--run NAME" in error
    assert left() == {*keys}


def test_every_suite_beside_the_recordings_counts(
    keys: list[str], stored: Stored, command: Command
) -> None:
    Path("evals/other.eval.yaml").write_text(SUITE)
    Path("evals/no-suite.yaml").write_text("a: 1\n")
    stored("new", judged("a", keys[0]))
    status, _, error = command("recordings", "prune", "evals")
    assert status == 2
    assert "other.eval.yaml did not run in new" in error
    assert "no-suite" not in error
    assert left() == {*keys}


def test_a_run_that_read_no_recording(keys: list[str], stored: Stored, command: Command) -> None:
    stored("new", trial("a"), trial("b", execution=WORKED))
    status, _, error = command("recordings", "prune", "evals")
    assert status == 2
    assert "new used none of these recordings" in error
    assert left() == {*keys}


def test_no_such_run(keys: list[str], stored: Stored, command: Command) -> None:
    stored("new", judged("a", keys[0]))
    status, _, error = command("recordings", "prune", "evals", "--run", "old")
    assert status == 2
    assert "no run named old" in error
    assert left() == {*keys}
