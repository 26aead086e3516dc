"""Sessions whose judges ask a model, live and recorded."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_agent_eval.cli import main
from tests.provider import Answer, Asked, Provider, provider, submit

from .conftest import Project
from .live import LONG, Live

SUITE = """\
dataset: {path: cases}
runner: {type: python, function: "agent:run"}
models: {judge: openai/some-model}
judges:
  - {name: polite, llm_rubric: Is it polite?, feedback_type: bool}
"""

AGENT = """\
import os

def run(task):
    return "Good morning, " + task.input["message"] + os.environ.get("SHOP_TOKEN", "")
"""


def polite(asked: Asked) -> Answer:
    refused = "case-002" in str(asked["messages"])
    return submit(asked, passed=not refused, rationale="rude" if refused else "kind")


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    project.suite(SUITE)
    project.write("agent.py", AGENT)
    project.cases(3)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
    monkeypatch.delenv("CI", raising=False)
    with provider(polite) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        yield server


def recordings(project: Project) -> list[Path]:
    return sorted(project.path.glob("recordings/*/*.json"))


def verdicts(project: Project) -> list[dict[str, Any]]:
    """Of all cases, sorted by their names."""
    stored = sorted(project.results().values(), key=lambda result: result.case)
    return [verdict.to_dict() for result in stored for verdict in result.verdicts]


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["here", "xdist"])
def test_recorded_once_replayed_without_network_or_key(
    project: Project,
    server: Provider,
    monkeypatch: pytest.MonkeyPatch,
    workers: list[str],
) -> None:
    run: Callable[..., pytest.RunResult] = project.subprocess if workers else project.run
    first = run("--agent-eval", *workers)
    first.assert_outcomes(passed=2, failed=1)
    assert "rude" in first.stdout.str()
    assert "3 calls of judges' models (cost unknown)" in first.stdout.str()
    assert len(server.asked) == 3
    assert len(recordings(project)) == 3
    judged = verdicts(project)
    server.stop()
    monkeypatch.delenv("OPENAI_API_BASE")
    monkeypatch.delenv("OPENAI_API_KEY")
    for more in (["--agent-eval-llm", "replay"], []):
        if not more:
            monkeypatch.setenv("CI", "true")
        again = run("--agent-eval", *workers, *more)
        again.assert_outcomes(passed=2, failed=1)
        assert "3 calls of judges' models (all recorded)" in again.stdout.str()
    replayed = verdicts(project)
    for before, after in zip(judged, replayed, strict=True):
        assert (before["asked"]["recorded"], after["asked"]["recorded"]) == (0, 1)
        for key in ("judge", "value", "rationale", "passed"):
            assert before[key] == after[key]


def test_a_deleted_recording_is_an_error_that_names_case_judge_and_command(
    project: Project, server: Provider
) -> None:
    project.run("--agent-eval")
    (gone,) = [file for file in recordings(project) if "case-001" in file.read_text()]
    gone.unlink()
    server.stop()
    result = project.run("--agent-eval", "--agent-eval-llm", "replay")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = " ".join(result.stdout.str().split())
    assert "case case-001, judge polite" in said
    assert "pytest --agent-eval --agent-eval-llm record" in said
    assert "Traceback" not in said
    assert [verdict["value"] for verdict in verdicts(project)] == [None, False, True]


def test_no_key_is_a_clear_error(
    project: Project, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    result = project.run("--agent-eval")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = result.stdout.str()
    assert "openai/some-model could not be asked: " in said
    assert "OPENAI_API_KEY" in said
    assert "Traceback" not in said
    assert not server.asked


def test_why_judges_of_a_gate_failed_is_said(project: Project, server: Provider) -> None:
    project.suite(SUITE + "thresholds: {polite: {min_pass_rate: 0.5}}\n")
    server.reply = lambda asked: Answer(status=401, error="wrong key")
    for more in ([], ["-q"]):
        result = project.run("--agent-eval", *more)
        said = " ".join(result.stdout.str().split())
        assert "judge error: polite: openai/some-model could not be asked: " in said
        assert said.count("wrong key") == 1
        assert "and 2 more cases)" in said


def test_no_secret_reaches_recordings_or_reports(
    project: Project, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-4711-0815-42")
    monkeypatch.setattr(
        server, "reply", lambda asked: submit(asked, passed=False, rationale="key-of-the-test")
    )
    result = project.run("--agent-eval", "--junitxml", "report.xml")
    result.assert_outcomes(failed=3)
    written = [path for path in project.path.rglob("*") if path.is_file() and path.suffix != ".py"]
    for secret in ("tok-4711-0815-42", "key-of-the-test"):
        assert secret not in result.stdout.str()
        for path in written:
            assert secret.encode() not in path.read_bytes(), path
    assert "***SHOP_TOKEN***" in recordings(project)[0].read_text()


def test_the_server_of_a_suite(
    project: Project, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    text = SUITE.replace("openai/some-model}", f"openai/some-model, api_base: '{server.url}'}}")
    project.suite(text)
    project.run("--agent-eval").assert_outcomes(passed=2, failed=1)
    assert len(server.asked) == 3
    stored = json.loads(recordings(project)[0].read_text())
    assert server.url not in json.dumps(stored)


def test_ctrl_c_waits_for_no_model(
    project: Project, server: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_TESTRUNUID", raising=False)  # a process for this session alone
    asked, released = threading.Event(), threading.Event()

    def reply(question: Asked) -> Answer:
        asked.set()
        return Answer(content="late", before=lambda: released.wait(LONG))

    server.reply = reply
    session = Live(project, "--agent-eval")
    try:
        assert asked.wait(LONG)
        workers = [
            child
            for child in psutil.Process(session.process.pid).children(recursive=True)
            if "pytest_agent_eval.llm.worker" in child.cmdline()
        ]
        assert len(workers) == 1
        session.signal(signal.SIGINT, group=True)
        assert session.wait() == pytest.ExitCode.INTERRUPTED
        psutil.wait_procs(workers, timeout=LONG)
        assert not any(worker.is_running() for worker in workers)
        assert "Traceback" not in session.printed
    finally:
        released.set()
        session.close()


def test_what_a_changed_rubric_no_longer_asks_is_pruned(
    project: Project, server: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run("--agent-eval").assert_outcomes(passed=2, failed=1)
    old = {*recordings(project)}
    project.suite(SUITE.replace("Is it polite?", "Is it friendly?"))
    project.run("--agent-eval").assert_outcomes(passed=2, failed=1)
    used = [key for one in verdicts(project) for key in one["asked"]["recordings"]]
    assert {path.stem for path in {*recordings(project)} - old} == {*used}
    assert main(["recordings", "prune", str(project.path)]) == 0
    assert "3 recordings deleted" in capsys.readouterr().out
    assert {path.stem for path in recordings(project)} == {*used}
    project.run("--agent-eval", "--agent-eval-llm=replay").assert_outcomes(passed=2, failed=1)
