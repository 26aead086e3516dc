"""workspace_mode repo: sessions whose agents work in the real checkout."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Project
from .live import Live, until

SUITE = """\
name: in the checkout
dataset: {{path: cases}}
execution: {{prompt: "{{message}}", parallelism: 4}}
runner:
  type: cli
  command: ["sh", "-c", {command}]
  workspace_mode: repo
judges:
  - name: edited
    check: |
      return outputs['modified_files'].get('app.py') == 'x = 2\\n', 'looked at app.py'
"""

EDIT = "\"git stash -u -q; rm -rf evals *.md; echo 'x = 2' > app.py; git commit -qam agent\""


def git(directory: Path, *arguments: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b.c"}
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.fixture
def checkout(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a suite, a case and work that is not committed."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "a")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@b.c")
    root = project.path / "repository"
    project.write("repository/pytest.ini", "[pytest]\nstrict_markers = true\n")
    project.write("repository/evals/eval.yaml", SUITE.format(command=EDIT))
    for name in ("one", "two"):
        project.write(f"repository/evals/cases/{name}/input.yaml", f"message: {name}\n")
    project.write("repository/app.py", "x = 1\n")
    project.write("repository/README.md", "# read\n")
    project.write("repository/.gitignore", ".agent-eval/\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    project.write("repository/README.md", "# being edited\n")
    project.write("repository/todo.md", "not known to git\n")
    return root


def state(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and ".agent-eval" not in path.parts
        and path.name != "cases.holdout.yaml"  # the ledger is the plugin's, as the runs are
    }


@pytest.mark.parametrize("arguments", [(), ("-n", "2")])
def test_the_checkout_is_what_it_was(
    project: Project, checkout: Path, arguments: tuple[str, ...]
) -> None:
    before, log = state(checkout), git(checkout, "log", "--all", "--oneline")
    result = project.subprocess("repository/evals/eval.yaml", "-v", *arguments)
    result.assert_outcomes(passed=2)
    assert state(checkout) == before
    assert git(checkout, "log", "--all", "--oneline") == log
    assert git(checkout, "stash", "list") == ""
    if not arguments:
        result.stdout.fnmatch_lines(["*2 cases (*), one at a time (workspace_mode: repo)*"])
    result.stdout.fnmatch_lines(["*the agent works in the checkout, where it can read*"])


def test_workspaces_that_pytest_would_remove_are_not_the_checkout(
    project: Project, checkout: Path
) -> None:
    before = state(checkout)
    result = project.subprocess(
        "repository/evals/eval.yaml", "-o", "tmp_path_retention_policy=none"
    )
    result.assert_outcomes(passed=2)
    assert state(checkout) == before


WAIT = '"echo agent > README.md; git add -A; touch $AGENTS/$$; sleep 300"'


@pytest.fixture
def live(
    project: Project, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Live]]:
    """Starts a session whose agent has edited the checkout, and works on."""
    monkeypatch.setenv("AGENTS", str(project.path / "agents"))
    project.write("repository/evals/eval.yaml", SUITE.format(command=WAIT))
    sessions: list[Live] = []

    def start() -> Live:
        session = Live(project, "repository/evals/eval.yaml")
        sessions.append(session)
        until(lambda: session.started)
        assert (checkout / "README.md").read_text() == "agent\n"
        return session

    yield start
    for session in sessions:
        session.close()


def test_ctrl_c_sets_the_checkout_back(
    project: Project, checkout: Path, live: Callable[[], Live]
) -> None:
    before = state(checkout)
    session = live()
    session.signal(signal.SIGINT)
    assert session.wait() == pytest.ExitCode.INTERRUPTED
    assert state(checkout) == before
    assert session.left() == []


def test_after_kill_9_nothing_is_lost_and_nobody_goes_on(
    project: Project, checkout: Path, live: Callable[[], Live]
) -> None:
    before = state(checkout)
    session = live()
    session.signal(signal.SIGKILL)
    session.wait()
    until(lambda: session.left() == [])  # no agent outlives the session
    project.write("repository/evals/eval.yaml", SUITE.format(command=EDIT))
    changed = state(checkout)
    result = project.subprocess("repository/evals/eval.yaml")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        ["*the checkout was not set back after the trial cases/one/1*", "*busy.json"]
    )
    assert state(checkout) == changed
    (store,) = (project.path / ".cache" / "agent-eval" / "checkouts").iterdir()
    assert state(store / "saved") == before
    # What the message says.
    subprocess.run(["cp", "-a", f"{store}/saved/.", str(checkout)], check=True)
    (store / "busy.json").unlink()
    project.write("repository/evals/eval.yaml", SUITE.format(command=EDIT))
    project.subprocess("repository/evals/eval.yaml").assert_outcomes(passed=2)
