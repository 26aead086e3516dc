from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pytest_agent_eval.runs.header import git_state, make_header

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *words], cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_commit_and_dirty_flag(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    assert git_state(checkout) == {"commit": commit, "dirty": False}
    (checkout / "new").touch()
    assert git_state(checkout) == {"commit": commit, "dirty": False}
    (checkout / "file").write_text("two")
    assert git_state(checkout) == {"commit": commit, "dirty": True}


def test_outside_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(tmp_path) is None


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) is None


def test_git_that_takes_too_long(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = checkout / "bin"
    commands.mkdir()
    script = commands / "git"
    script.write_text('#!/bin/sh\ncase "$*" in *rev-parse*) echo abc;; *) exec sleep 30;; esac\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    assert git_state(checkout) == {"commit": "abc", "dirty": None}


def test_a_header_is_json_without_paths_of_this_machine(checkout: Path) -> None:
    header = make_header(
        suites=[{"name": "s", "file": "evals/eval.yaml", "digest": "00"}],
        options={"split": "dev"},
        rootdir=checkout,
        packages=("pytest", "no-such-distribution"),
    )
    text = json.dumps(header)
    assert str(checkout) not in text
    assert str(Path.home()) not in text
    assert header["versions"]["pytest"]
    assert header["versions"]["no-such-distribution"] is None
    assert header["git"]["dirty"] is False


def test_git_can_be_left_out() -> None:
    assert make_header(suites=[], options={})["git"] is None
