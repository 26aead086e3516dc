"""The ledger of looks at the holdout half, and what the summary says of it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
import yaml

from pytest_agent_eval.cases import Split
from pytest_agent_eval.runs.ledger import read_ledger

from .conftest import ECHO, Project

ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def git(project: Project, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.invalid", *words],
        cwd=project.path,
        env={**os.environ, **ENVIRONMENT},
        check=True,
        capture_output=True,
    )
    return done.stdout.decode()


@pytest.fixture
def halves(project: Project) -> Project:
    """Two cases of each half."""
    project.suite(ECHO)
    project.write("other.eval.yaml", ECHO.replace("name: echo", "name: other"))
    left = {"dev": 2, "holdout": 2}
    for number in range(100):
        half = Split().half(name := f"case-{number}")
        if left[half]:
            left[half] -= 1
            project.case(name)
    return project


def test_each_run_that_looks_adds_a_line(halves: Project) -> None:
    project, ledger = halves, halves.path / "cases.holdout.yaml"
    git(project, "init", "-q")
    project.write(".gitignore", ".agent-eval\n__pycache__\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")

    for arguments in (["--agent-eval-split=dev"], ["--collect-only"], ["-m", "dev"]):
        assert project.run("eval.yaml", *arguments).ret == 0
    assert not ledger.exists()
    assert "holdout:" not in project.run("eval.yaml", "-m", "dev").stdout.str()

    result = project.run("eval.yaml")
    result.stdout.fnmatch_lines(
        ["  holdout: looked at for the first time for this suite, see cases.holdout.yaml"]
    )
    (first,), _ = read_ledger(ledger)
    assert (first.run, first.suite) == (project.latest.name, "eval.yaml")
    assert (first.cases, first.counts) == (2, {"passed": 2})
    assert (first.commit, first.dirty) == (git(project, "rev-parse", "HEAD").strip(), False)
    git(project, "add", ".")
    git(project, "commit", "-qm", "second")

    # The same run goes on, then is judged again, which is a look of its own.
    project.run("eval.yaml", "--agent-eval-resume=latest")
    assert len(read_ledger(ledger)[0]) == 1
    result = project.run("eval.yaml", "--agent-eval-rescore=latest", "-m", "holdout")
    today = first.date[:10]
    said = (
        f"  holdout: looked at twice for this suite (last {today}), twice with this version of it"
    )
    result.stdout.fnmatch_lines([said])

    # The ledger has changed, and that alone makes a checkout dirty for no run.
    project.suite(ECHO + "# another version\n")
    git(project, "add", "eval.yaml")
    git(project, "commit", "-qm", "third")
    result = project.run("eval.yaml", "other.eval.yaml")
    printed = " ".join(result.stdout.str().split())
    assert f"looked at 3 times for this suite (last {today}), once with this version" in printed
    assert "looked at for the first time for this suite" in printed, "the other suite"
    entries, notes = read_ledger(ledger)
    assert notes == ()
    assert [entry.suite for entry in entries] == ["eval.yaml"] * 3 + ["other.eval.yaml"]
    assert [entry.dirty for entry in entries] == [False] * 4
    assert len({entry.version for entry in entries}) == 3
    assert len({entry.dataset for entry in entries}) == 1
    assert project.summary()["suites"]["eval.yaml"]["holdout"] == {
        "sealed": False,
        "looks": 3,
        "looks_with_this_version": 1,
        "last_look": today,
        "ledger": "cases.holdout.yaml",
    }
    header = json.loads((project.latest / "run.json").read_text())
    assert header["suites"][0]["ledger"] == "cases.holdout.yaml"
    assert all(isinstance(entry, dict) for entry in yaml.safe_load(ledger.read_text()))


def test_a_ledger_that_is_broken_or_off(halves: Project) -> None:
    ledger = halves.path / "cases.holdout.yaml"
    ledger.write_text("what is this\n")
    result = halves.run("eval.yaml", "-q")
    assert result.ret == 0
    result = halves.run("eval.yaml")
    result.stdout.fnmatch_lines(
        ["note: cases.holdout.yaml, line 1: no entry of a ledger, not counted"]
    )
    assert "looked at twice" in result.stdout.str()
    ledger.unlink()
    ledger.mkdir()
    result = halves.run("eval.yaml")
    assert result.ret == 0
    assert "this look at the holdout half is not recorded" in " ".join(result.stdout.str().split())
    ledger.rmdir()
    halves.suite(ECHO.replace("path: cases", "path: cases, split: {ledger: false}"))
    result = halves.run("eval.yaml")
    assert not ledger.exists()
    assert "holdout:" not in result.stdout.str()


def test_workers_add_one_line(halves: Project) -> None:
    halves.suite(ECHO + "variants: {a: {}, b: {}}\n")
    result = halves.subprocess("eval.yaml", "-n2")
    assert result.ret == 0
    (entry,), _ = read_ledger(halves.path / "cases.holdout.yaml")
    assert (entry.cases, entry.counts) == (2, {"passed": 4})
    assert result.stdout.str().count("looked at for the first time") == 1
    assert halves.summary()["holdout"]["looks"] == 1
