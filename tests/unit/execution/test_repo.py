from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.execution.collect import Collected, collect
from pytest_agent_eval.execution.repo import (
    Checkout,
    Left,
    checkout_directory,
    take_turn,
)
from pytest_agent_eval.execution.workspace import Contents, Workspace, create_workspace
from pytest_agent_eval.results import Verdict
from pytest_agent_eval.runners import Execution, Task
from tests.unit.execution.execution_bench import Bench as TrialBench


def git(directory: Path, *arguments: str) -> str:
    env = {
        **os.environ,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.c",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout


class Bench:
    """A checkout with uncommitted work, and a case."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repo = root / "project"
        (self.repo / "src").mkdir(parents=True)
        (self.repo / "src" / "app.py").write_text("x = 1\n")
        (self.repo / "README.md").write_text("# Project\n")
        (self.repo / ".gitignore").write_text("build/\n.env\n")
        git(self.repo, "init", "-q")
        git(self.repo, "add", ".")
        git(self.repo, "commit", "-qm", "first")
        (self.repo / "README.md").write_text("# Project, being edited\n")
        (self.repo / "src" / "staged.py").write_text("y = 1\n")
        git(self.repo, "add", "src/staged.py")
        (self.repo / "todo.txt").write_text("untracked\n")
        (self.repo / ".env").write_text("TOKEN=1\n")
        self.case = root / "case"
        self.case.mkdir()
        (self.case / "input.yaml").write_text("prompt: hello\n")
        self.count = 0

    def checkout(self, **options: Any) -> Checkout:
        return Checkout(str(self.repo), cache=str(self.root / "cache"), **options)

    def staged(self) -> Workspace:
        self.count += 1
        return create_workspace(
            str(self.root / f"staged{self.count}"),
            case="case",
            case_directory=str(self.case),
            input_name="input.yaml",
            contents=Contents(),
        )

    def trial(
        self, act: Callable[[Path], object], *outputs: str, **options: Any
    ) -> tuple[Left, Collected, dict[str, str]]:
        """What one trial leaves, what is collected of it, and the collected files."""
        stay = self.checkout(**options).enter(self.staged(), outputs=outputs, trial="cases/case/1")
        try:
            act(Path(stay.directory))
        finally:
            left = stay.leave()
        target = self.root / f"stored{self.count}"
        collected = collect(left.workspace, str(target), outputs)
        files = target / "files"
        found = {
            str(path.relative_to(files)): path.read_text()
            for path in sorted(files.rglob("*"))
            if path.is_file()
        }
        return left, collected, found

    def state(self) -> dict[str, tuple[int, bytes]]:
        found = {}
        for path in sorted(self.repo.rglob("*")):
            content = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(self.repo))] = (path.lstat().st_mode, content)
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def work(repo: Path) -> None:
    assert (repo / "input.yaml").read_text() == "prompt: hello\n"
    (repo / "src" / "app.py").write_text("x = 2\n")
    (repo / "README.md").write_text("# Mine now\n")
    (repo / "src" / "new.py").write_text("z = 1\n")
    (repo / "todo.txt").unlink()
    (repo / "output" / "answer.txt").write_text("42\n")
    (repo / ".env").write_text("TOKEN=gone\n")
    (repo / "build").mkdir()
    (repo / "build" / "x.o").write_text("object")
    (repo / "build" / "two\nlines").write_text("object")


def test_the_checkout_is_set_back_and_what_was_done_is_collected(bench: Bench) -> None:
    before = bench.state()
    status = git(bench.repo, "status", "--porcelain")
    left, collected, files = bench.trial(work)
    assert bench.state() == before
    assert git(bench.repo, "status", "--porcelain") == status
    assert files == {
        "output/answer.txt": "42\n",
        "_modified/src/app.py": "x = 2\n",
        "_modified/README.md": "# Mine now\n",
        "_modified/src/new.py": "z = 1\n",
    }
    assert left.deleted == ("todo.txt",)
    assert (collected.files, collected.modified) == (1, 3)
    aside = Path(f"{left.workspace.directory}.checkout")
    assert left.notes == (
        "the agent deleted todo.txt",
        f"what else was different in the checkout was moved to {aside}",
    )
    assert (aside / ".env").read_text() == "TOKEN=gone\n"


def destroy(repo: Path) -> None:
    git(repo, "reset", "--hard", "-q")
    git(repo, "clean", "-fdxq")


def commit(repo: Path) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "by the agent")
    git(repo, "branch", "other")
    git(repo, "gc", "-q", "--prune=now")


def stash(repo: Path) -> None:
    git(repo, "stash", "-u", "-q")


def remove(repo: Path) -> None:
    subprocess.run(["rm", "-rf", str(repo)], check=True)


@pytest.mark.parametrize("act", [destroy, commit, stash, remove])
def test_nobody_loses_work(bench: Bench, act: Callable[[Path], None]) -> None:
    before, log = bench.state(), git(bench.repo, "log", "--all", "--oneline")
    bench.trial(act)
    assert bench.state() == before
    assert git(bench.repo, "log", "--all", "--oneline") == log
    assert git(bench.repo, "stash", "list") == ""
    git(bench.repo, "fsck", "--strict")


def test_what_is_no_part_of_the_project_is_not_collected(bench: Bench) -> None:
    (bench.repo / "away").symlink_to("src")

    def act(repo: Path) -> None:
        (repo / ":(top)odd.txt").write_text("odd")
        (repo / ".env").write_text("TOKEN=2\n")
        (repo / "away").unlink()
        (repo / "away").mkdir()
        (repo / "away" / "beyond.txt").write_text("not a link any more")
        git(repo, "clone", "-q", str(repo), "cloned")

    before = bench.state()
    _, _, files = bench.trial(act)
    assert bench.state() == before
    assert files["_modified/:(top)odd.txt"] == "odd"
    assert "_modified/away/beyond.txt" in files
    assert "_modified/cloned/README.md" in files
    assert not any(".git/" in path or path.endswith(".env") for path in files)


def test_a_file_in_place_of_a_directory_and_the_other_way_round(bench: Bench) -> None:
    def act(repo: Path) -> None:
        (repo / "output").rmdir()
        (repo / "output").write_text("a file")
        (repo / "input.yaml").unlink()
        (repo / "input.yaml").mkdir()
        (repo / "input.yaml" / "inside.txt").write_text("x")

    before = bench.state()
    _, _, files = bench.trial(act)
    assert bench.state() == before
    assert files == {"output": "a file", "_modified/input.yaml/inside.txt": "x"}


def test_an_agent_that_only_looks(bench: Bench) -> None:
    before = bench.state()
    left, collected, files = bench.trial(lambda repo: None)
    assert bench.state() == before
    assert (collected.files, collected.modified, files) == (0, 0, {})
    assert (left.deleted, left.notes) == ((), ())


def test_what_git_did_is_told(bench: Bench) -> None:
    left, _, _ = bench.trial(commit)
    assert "what the agent did to git's own directory was taken back" in left.notes


def test_output_paths_show_unchanged_files_too(bench: Bench) -> None:
    left, collected, files = bench.trial(
        lambda repo: (repo / "src" / "app.py").write_text("x = 3\n"), "src"
    )
    assert files == {"src/app.py": "x = 3\n", "src/staged.py": "y = 1\n"}
    assert collected.files == 1
    assert left.deleted == ()


def test_metrics_of_somebody_else_are_not_the_agents(bench: Bench) -> None:
    (bench.repo / "output").mkdir()
    (bench.repo / "output" / "metrics.json").write_text('{"cost_usd": 9}')
    _, collected, _ = bench.trial(lambda repo: None)
    assert collected.usage.cost_usd is None


def test_an_input_file_of_the_checkout_stays_its_own(bench: Bench) -> None:
    (bench.repo / "input.yaml").write_text("mine: true\n")

    def look(repo: Path) -> None:
        assert (repo / "input.yaml").read_text() == "mine: true\n"

    left, _, _ = bench.trial(look)
    assert left.notes == (
        "the checkout has a file input.yaml of its own: the case's was not copied",
    )
    assert (bench.repo / "input.yaml").read_text() == "mine: true\n"


def test_an_edited_input_is_an_edit(bench: Bench) -> None:
    _, collected, files = bench.trial(
        lambda repo: (repo / "input.yaml").write_text("prompt: mine\n")
    )
    assert files == {"_modified/input.yaml": "prompt: mine\n"}
    assert collected.modified == 1
    assert not (bench.repo / "input.yaml").exists()


def test_our_own_results_are_left_alone(bench: Bench) -> None:
    ours = bench.repo / ".agent-eval" / "runs" / "r"
    ours.mkdir(parents=True)
    (ours / "results.jsonl").write_text("1\n")

    def write(repo: Path) -> None:
        with open(ours / "results.jsonl", "a") as stream:
            stream.write("2\n")

    bench.trial(write, ours=[str(bench.repo / ".agent-eval")])
    assert (ours / "results.jsonl").read_text() == "1\n2\n"


def test_what_may_be_lost(bench: Bench) -> None:
    (bench.repo / "build").mkdir()
    (bench.repo / "build" / "cache").write_text("1")
    bench.trial(lambda repo: (repo / "build" / "cache").write_text("2"), unprotected=["build/"])
    assert (bench.repo / "build" / "cache").read_text() == "2"


@pytest.mark.parametrize("path", ["..", "/tmp", ".git", "", ".", "a/../..", 3])
def test_wrong_unprotected_paths(bench: Bench, path: Any) -> None:
    with pytest.raises(RunnerError, match=r"runner\.settings\.unprotected lists"):
        bench.checkout(unprotected=[path])


def test_a_killed_trial_is_noticed_and_nothing_is_overwritten(bench: Bench) -> None:
    bench.checkout().enter(bench.staged(), outputs=(), trial="cases/case/1")
    (bench.repo / "README.md").write_text("by the agent\n")
    with pytest.raises(
        RunnerError, match=r"was not set back after the trial cases/case/1"
    ) as raised:
        bench.trial(work)
    assert (bench.repo / "README.md").read_text() == "by the agent\n"
    saved = next((bench.root / "cache").iterdir()) / "saved"
    assert str(saved) in str(raised.value)
    assert (saved / "README.md").read_text() == "# Project, being edited\n"


def test_one_trial_at_a_time(bench: Bench) -> None:
    cache, going = str(bench.root / "cache"), threading.Event()
    first = take_turn(str(bench.repo), going, cache=cache)
    taken = threading.Event()

    def second() -> None:
        os.close(take_turn(str(bench.repo), going, cache=cache))
        taken.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert not taken.wait(0.3)
    os.close(first)
    assert taken.wait(30)
    thread.join()


def test_waiting_ends_when_the_session_does(bench: Bench) -> None:
    cache, cancelled = str(bench.root / "cache"), threading.Event()
    turn = take_turn(str(bench.repo), cancelled, cache=cache)
    cancelled.set()
    with pytest.raises(RunnerError, match="cancelled"):
        take_turn(str(bench.repo), cancelled, cache=cache)
    os.close(turn)


def test_a_checkout_that_cannot_be_set_back_is_entered_by_nobody(bench: Bench) -> None:
    stay = bench.checkout().enter(bench.staged(), outputs=(), trial="1")
    (bench.repo / "README.md").write_text("by the agent\n")
    saved = next((bench.root / "cache").iterdir()) / "saved"
    (saved / "README.md").unlink()
    with pytest.raises(
        RunnerError, match=r"could not be set back: .*README\.md.*\n.*is in .*saved"
    ):
        stay.leave()
    with pytest.raises(RunnerError, match="was not set back"):
        bench.checkout().enter(bench.staged(), outputs=(), trial="2")


def test_what_hooks_do_is_not_the_agents(bench: Bench) -> None:
    before = bench.state()
    stay = bench.checkout().enter(bench.staged(), outputs=(), trial="1")
    (bench.repo / "by_before_each").write_text("1")
    (bench.repo / "todo.txt").unlink()
    (bench.repo / "README.md").write_text("by before_each\n")
    stay.agent_begins()
    (bench.repo / "README.md").write_text("by before_each\nby the agent\n")
    (bench.repo / "by_the_agent").write_text("1")
    stay.agent_ended()
    (bench.repo / "by_after_each").write_text("1")
    left = stay.leave()
    assert bench.state() == before
    files = sorted(path.name for path in Path(left.workspace.directory).iterdir())
    assert files == ["README.md", "by_the_agent", "input.yaml", "output"]
    assert left.deleted == ()


def test_without_git(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    subprocess.run(["rm", "-rf", str(bench.repo / ".git")], check=True)
    before = bench.state()

    def act(repo: Path) -> None:
        work(repo)
        (repo / "src" / "__pycache__").mkdir()
        (repo / "src" / "__pycache__" / "app.pyc").write_text("0")

    _, _, files = bench.trial(act)
    assert bench.state() == before
    assert "_modified/build/x.o" in files
    assert not any("__pycache__" in path for path in files)


# -- where -------------------------------------------------------------------------------------


def test_the_top_of_the_checkout(bench: Bench) -> None:
    inner = bench.repo / "evals"
    inner.mkdir()
    assert checkout_directory(inner, bench.repo / "evals") == str(bench.repo)
    assert checkout_directory(bench.case, bench.root) == str(bench.root)


def test_a_worktree_is_refused(bench: Bench) -> None:
    other = bench.root / "other"
    git(bench.repo, "worktree", "add", "-q", str(other))
    with pytest.raises(RunnerError, match="linked worktree or a submodule"):
        checkout_directory(other, other)


def test_home_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bench.repo))
    with pytest.raises(RunnerError, match="would be the working directory"):
        checkout_directory(bench.repo, bench.repo)


def test_a_cache_inside_is_refused(bench: Bench) -> None:
    with pytest.raises(RunnerError, match="XDG_CACHE_HOME"):
        Checkout(str(bench.repo), cache=str(bench.repo / "cache"))


def test_results_right_in_the_checkout_are_refused(bench: Bench) -> None:
    with pytest.raises(RunnerError, match="--agent-eval-runs"):
        bench.checkout(ours=[str(bench.repo)])


# -- trials ------------------------------------------------------------------------------------


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrialBench:
    """A suite in a git repository of its own, with a case and uncommitted work."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bench = TrialBench(tmp_path)
    bench.add_case()
    bench.config["dataset"] = {"path": "cases"}
    (bench.suite_directory / "app.py").write_text("x = 1\n")
    git(bench.suite_directory, "init", "-q")
    git(bench.suite_directory, "add", ".")
    git(bench.suite_directory, "commit", "-qm", "first")
    (bench.suite_directory / "app.py").write_text("x = 1  # being edited\n")
    return bench


def in_repo(bench: TrialBench, source: str, **execution: Any) -> None:
    bench.command(source, **execution)
    bench.config["runner"]["workspace_mode"] = "repo"


class Look:
    """A judge that passes, and keeps the record."""

    name, gated = "look", False

    def __init__(self) -> None:
        self.seen: Any = None

    def judge(self, record: Any, *, cancelled: threading.Event | None = None) -> Verdict:
        self.seen = record
        return Verdict("look", value=True, passed=True)


def test_a_trial_in_the_checkout(trials: TrialBench) -> None:
    in_repo(
        trials,
        "pwd; cat input.yaml; echo 'x = 2' > app.py; echo 42 > output/answer.txt; rm .git/HEAD;"
        """echo '{"cost_usd": 0.5}' > output/metrics.json""",
    )
    judge = Look()
    runtime = trials.runtime(judges=[judge])
    status = git(trials.suite_directory, "status", "--porcelain")
    result = trials.run(shared=runtime)
    assert (result.status, result.reason) == ("passed", "")
    assert git(trials.suite_directory, "status", "--porcelain") == status
    assert (trials.suite_directory / "app.py").read_text() == "x = 1  # being edited\n"
    assert not (trials.suite_directory / "output").exists()
    where = str(trials.suite_directory)
    assert judge.seen["stdout"] == f"{where}\nprompt: What is 6 x 7?\n"
    assert judge.seen["workspace"] == where
    assert dict(judge.seen["modified_files"]) == {"app.py": "x = 2\n"}
    assert judge.seen["main_content"] == "42\n"
    assert result.usage.cost_usd == 0.5


def test_the_checkout_is_never_a_directory_that_is_cleaned_up(trials: TrialBench) -> None:
    in_repo(trials, "echo done")
    assert trials.run().workspace == ""


@pytest.mark.parametrize(
    ("source", "execution", "kind"),
    [
        ("echo 2 > app.py; exit 3", {}, "agent"),
        ("echo 2 > app.py; sleep 60", {"timeout": 0.5}, "timeout"),
    ],
)
def test_a_failing_agent_leaves_the_checkout_as_it_was(
    trials: TrialBench, source: str, execution: dict[str, Any], kind: str
) -> None:
    in_repo(trials, source, **execution)
    result = trials.run()
    assert (result.status, result.kind) == ("failed", kind), result.reason
    assert (trials.suite_directory / "app.py").read_text() == "x = 1  # being edited\n"
    assert (trials.stored(result) / "files" / "_modified" / "app.py").read_text() == "2\n"


def test_a_runner_that_cannot_start_leaves_the_checkout_as_it_was(trials: TrialBench) -> None:
    in_repo(trials, "true")
    trials.config["runner"]["command"] = "no-such-command-here"
    runtime = trials.runtime()
    before = sorted(path.name for path in trials.suite_directory.iterdir())
    result = trials.run(shared=runtime)
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert sorted(path.name for path in trials.suite_directory.iterdir()) == before
    assert trials.run(trial=2, shared=runtime).reason == result.reason


def test_an_agent_that_only_deletes_has_done_something(trials: TrialBench) -> None:
    in_repo(trials, "rm app.py")
    result = trials.run()
    assert result.status == "passed"
    assert "the agent deleted app.py" in result.notes
    assert (trials.suite_directory / "app.py").exists()


def test_an_agent_that_does_nothing(trials: TrialBench) -> None:
    in_repo(trials, "true")
    assert trials.run().reason.startswith("produced nothing: no output")


def test_companion_files_are_not_copied(trials: TrialBench) -> None:
    trials.config["dataset"]["workspace"] = {"files": ["notes.md"]}
    in_repo(trials, "ls")
    result = trials.run()
    assert "workspace_mode repo: only the input file was copied" in result.notes
    assert "notes.md" not in (trials.stored(result) / "stdout.log").read_text()


def test_without_a_checkout_of_its_own(trials: TrialBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(trials.suite_directory))
    in_repo(trials, "rm -rf *")
    result = trials.run()
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert "would be the working directory" in result.reason
    assert (trials.suite_directory / "app.py").exists()


@dataclass
class Function:
    """A runner that is a function."""

    function: Callable[[Task], Execution]

    def run(self, task: Task) -> Execution:
        return self.function(task)


def test_nobody_enters_after_an_agent_that_could_not_be_ended(trials: TrialBench) -> None:
    in_repo(trials, "true")

    def act(task: Task) -> Execution:
        (task.workspace / "app.py").write_text("x = 2\n")
        return Execution(timed_out=True, failure="timeout", still_running=True)

    runtime = trials.runtime(runner=Function(act))
    result = trials.run(shared=runtime)
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert result.reason == "the agent could not be ended and may still change the checkout"
    assert (trials.suite_directory / "app.py").read_text() == "x = 1  # being edited\n"
    assert trials.run(trial=2, shared=runtime).reason.startswith("the checkout was not set back")


def test_hooks_work_in_the_checkout_too(trials: TrialBench) -> None:
    trials.config["hooks"] = {
        "before_each": [{"command": "test $PWD = $CASE_WORKSPACE && echo 1 > prepared.txt"}],
        "after_each": [{"command": "cp app.py $AGENT_EVAL_PROJECT_ROOT/seen; rm -f prepared.txt"}],
    }
    in_repo(trials, "cat prepared.txt; echo 'x = 2' > app.py")
    judge = Look()
    result = trials.run(judges=[judge])
    assert (result.status, result.notes) == ("passed", ())
    assert judge.seen["stdout"] == "1\n"
    assert dict(judge.seen["modified_files"]) == {"app.py": "x = 2\n"}
    assert (trials.root / "seen").read_text() == "x = 2\n"
    assert (trials.suite_directory / "app.py").read_text() == "x = 1  # being edited\n"
    assert not (trials.suite_directory / "prepared.txt").exists()


def test_a_failing_hook_leaves_the_checkout_as_it_was(trials: TrialBench) -> None:
    trials.config["hooks"] = {"before_each": [{"command": "echo broken > app.py; exit 7"}]}
    in_repo(trials, "true")
    result = trials.run()
    assert (result.status, result.kind) == ("error", "infrastructure")
    assert "exited with status 7" in result.reason
    assert (trials.suite_directory / "app.py").read_text() == "x = 1  # being edited\n"
