"""Real agents in a real sandbox: what they see, what they can do, and how they are ended."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners import RunnerContext, Task
from pytest_agent_eval.runners.base import Execution
from pytest_agent_eval.runners.command import CommandRunner
from pytest_agent_eval.runners.sandbox import find_bubblewrap, sandbox_of
from pytest_agent_eval.suite import load_suite
from tests.unit.runners.processes import marked

_BUBBLEWRAP = find_bubblewrap()
needs_bubblewrap = pytest.mark.skipif(bool(_BUBBLEWRAP.problem), reason=_BUBBLEWRAP.problem)

SECRET = "the-answer-is-6x7"


class Project:
    """A checkout with a suite, and a directory of runs in it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.evals = self.root / "evals"
        self.case = self.evals / "cases" / "a-case"
        self.workspaces = root / "workspaces"
        # Agents of another process that runs these tests must not be taken for ours.
        self.trial_id = uuid.uuid4().hex[:16]
        self.workspace = self.workspaces / self.trial_id
        self.logs = self.root / ".agent-eval/runs/one/cases/a-case/0"
        for directory in (self.case, self.workspace / "output", self.logs, self.root / ".git"):
            directory.mkdir(parents=True)
        (self.root / ".agent-eval/runs/one/run.json").write_text("{}")
        (self.root / ".agent-eval/runs/one/results.jsonl").write_text(SECRET)
        (self.root / ".git/objects").write_text(SECRET)
        (self.case / "input.yaml").write_text("prompt: 6 x 7?\n")
        (self.case / "annotations.yaml").write_text(f"expected: {SECRET}\n")
        (self.case / "answers.yaml").write_text(f"answer: {SECRET}\n")
        (self.evals / "rubric.md").write_text(SECRET)
        (self.evals / "other.eval.yaml").write_text(
            f"dataset: {{path: cases}}\njudges: [{{name: a, check: '{SECRET}'}}]\n"
        )
        (self.evals / "labels.yaml").write_text(f"{SECRET}: true\n")
        (self.evals / "how.md").write_text(SECRET)
        (self.evals / "tool_handlers.yaml").write_text(
            f"handlers: [{{match: questions, prompt_file: how.md}}]\ncase_overrides: {{a: {SECRET}}}\n"
        )
        (self.evals / "scored.yaml").write_text(f"a-case: {{value: true, output: {SECRET}}}\n")
        (self.evals / "helper.txt").write_text("helpful\n")

    def runner(self, *command: str, dataset: str = "cases", **runner: Any) -> CommandRunner:
        config = {
            "dataset": {"path": dataset},
            "runner": {"type": "cli", "command": list(command), "sandbox": "bubblewrap", **runner},
            "judges": [
                {
                    "name": "nice",
                    "prompt_file": "rubric.md",
                    "feedback_type": "bool",
                    "examples": {"source": "scored.yaml"},
                }
            ],
            "variants": {
                "v": {
                    "judges": [{"name": "kind", "check": "return 1 > 0", "labels": "labels.yaml"}]
                }
            },
        }
        (self.evals / "eval.yaml").write_text(yaml.safe_dump(config))
        suite = load_suite(self.evals / "eval.yaml", rootdir=self.root)
        return CommandRunner(RunnerContext(suite=suite, rootdir=self.root))

    def task(self, **options: Any) -> Task:
        return Task(
            input={},
            workspace=self.workspace,
            output_dir=self.workspace / "output",
            log_dir=self.logs,
            trial_id=self.trial_id,
            **{"timeout": 60.0, **options},
        )

    def shell(self, script: str, **options: Any) -> Execution:
        return self.runner("sh", "-c", script, **options).run(self.task())

    def stderr(self) -> str:
        file = self.logs / "stderr.log"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def server() -> Iterator[int]:
    """Port of a server on the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@needs_bubblewrap
@pytest.mark.parametrize(
    "file",
    [
        "evals/cases/a-case/annotations.yaml",
        "evals/cases/a-case/answers.yaml",
        "evals/eval.yaml",
        "evals/other.eval.yaml",
        "evals/rubric.md",
        "evals/labels.yaml",
        "evals/tool_handlers.yaml",
        "evals/how.md",
        "evals/scored.yaml",
        ".agent-eval/runs/one/results.jsonl",
        ".git/objects",
    ],
)
def test_the_answers_cannot_be_read(project: Project, file: str) -> None:
    path = project.root / file
    ran = project.shell(f"cat {path}; cd {path.parent} && cat ./*; true")
    assert ran.exit_code == 0
    assert (project.root / file).exists()
    assert SECRET not in ran.output + project.stderr()
    assert "cat: " in project.stderr()


@needs_bubblewrap
def test_neither_can_they_through_the_processes_of_the_machine(project: Project) -> None:
    answers = project.case / "answers.yaml"
    ran = project.shell(
        f"for root in /proc/*/root /proc/*/cwd; do cat $root{answers}; done; ls /proc"
    )
    assert SECRET not in ran.output
    assert str(os.getpid()) not in ran.output.split()


@needs_bubblewrap
def test_other_workspaces_and_temporary_files_are_hidden(project: Project) -> None:
    other = project.workspaces / "fedcba9876543210"
    other.mkdir()
    (other / "result").write_text(SECRET)
    mine = f"/tmp/written-{os.getpid()}"
    ran = project.shell(f"cat {other}/result; ls -A {project.workspaces} /tmp/; echo x > {mine}")
    assert ran.exit_code == 0
    assert SECRET not in ran.output
    assert other.name not in ran.output
    assert not os.path.exists(mine)


@needs_bubblewrap
def test_the_home_is_an_empty_one_of_its_own(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text(SECRET)
    monkeypatch.setenv("HOME", str(home))
    ran = project.shell("cat ~/.netrc; touch ~/mine && ls -A ~")
    assert ran.output == "mine\n"
    assert sorted(path.name for path in home.iterdir()) == [".netrc"]


@needs_bubblewrap
def test_only_the_workspace_can_be_written(project: Project) -> None:
    places = [project.root, project.evals, project.case, project.logs, Path("/usr"), Path("/etc")]
    script = "".join(f"echo x > {place}/written; " for place in places)
    ran = project.shell(script + "echo mine > output/result.txt; echo x > here; echo done")
    assert ran.output == "done\n"
    assert [place for place in places if (place / "written").exists()] == []
    assert (project.workspace / "output/result.txt").read_text() == "mine\n"
    assert (project.workspace / "here").exists()


@needs_bubblewrap
def test_what_hides_cannot_be_taken_away(project: Project) -> None:
    dataset = project.evals / "cases"
    ran = project.shell(
        f"umount {dataset}; umount -l {dataset}; unshare -Urm umount {dataset};"
        f"mount -o remount,rw /; echo x > /usr/written; cat {project.case}/answers.yaml"
    )
    assert ran.exit_code != 0
    assert SECRET not in ran.output
    assert not os.path.exists("/usr/written")


CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 20)"


@needs_bubblewrap
def test_no_network(project: Project, server: int) -> None:
    ran = project.runner(sys.executable, "-c", CONNECT, str(server)).run(project.task())
    assert ran.exit_code == 1
    assert "Connection refused" in project.stderr()


@needs_bubblewrap
def test_network_when_it_is_allowed(project: Project, server: int) -> None:
    runner = project.runner(sys.executable, "-c", CONNECT, str(server), settings={"network": True})
    assert runner.run(project.task()).exit_code == 0, project.stderr()
    assert runner.description == "sandbox: bubblewrap, with network"


@needs_bubblewrap
def test_programs_and_files_of_the_project_can_be_used(project: Project) -> None:
    agent = project.evals / "agent.py"
    agent.write_text(
        f"#!{sys.executable}\nimport sys, pytest, helpers\nprint(open(sys.argv[1]).read() + helpers.X)"
    )
    (project.evals / "helpers.py").write_text("X = 'imported'")
    agent.chmod(0o755)
    ran = project.runner("./agent.py", "{config_dir}/helper.txt").run(project.task())
    assert ran.output == "helpful\nimported\n", project.stderr()


@needs_bubblewrap
def test_programs_below_the_home_can_be_used(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    installed = home / "tools/thing-1.0"
    (installed / "bin").mkdir(parents=True)
    (installed / "lib").mkdir()
    (installed / "lib/data").write_text("data of the tool\n")
    tool = installed / "bin/thing"
    tool.write_text('#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../lib/data"\n')
    tool.chmod(0o755)
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/bin/thing").symlink_to(tool)
    (home / ".local/share").mkdir()
    (home / ".local/share/keys").write_text(SECRET)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/.local/bin:{os.environ['PATH']}")
    ran = project.shell("thing; cat ~/.local/share/keys")
    assert ran.output == "data of the tool\n", project.stderr()


@needs_bubblewrap
def test_more_can_be_shown_and_hidden(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    (home / ".config/agent").write_text("settings\n")
    monkeypatch.setenv("HOME", str(home))
    settings = {"readable": ["~/.config"], "hidden": ["helper.txt"]}
    ran = project.shell(f"cat ~/.config/agent {project.evals}/helper.txt", settings=settings)
    assert ran.output == "settings\n"
    assert "Permission denied" in project.stderr()


@needs_bubblewrap
def test_a_suite_among_its_cases_can_still_have_programs(project: Project) -> None:
    case = project.evals / "b-case"
    case.mkdir()
    (case / "annotations.yaml").write_text(SECRET)
    agent = project.evals / "agent.sh"
    agent.write_text(
        f"#!/bin/sh\necho hello; cat {case}/annotations.yaml {project.evals}/eval.yaml"
    )
    agent.chmod(0o755)
    ran = project.runner("./agent.sh", dataset=".").run(project.task())
    assert ran.output == "hello\n"


@needs_bubblewrap
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("no-such-agent", "the command 'no-such-agent' was not found; PATH of the agent is"),
        ("./no-such-agent", "the command './no-such-agent' does not exist"),
        ("{config_dir}/helper.txt", "is not executable"),
    ],
)
def test_a_command_that_is_missing(project: Project, command: str, message: str) -> None:
    runner = project.runner(command)
    with pytest.raises(RunnerError, match=message):
        runner.run(project.task())


@needs_bubblewrap
def test_an_interpreter_that_is_hidden(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy("/bin/sh", home / "interpreter")
    (project.evals / "inner").write_text(f"#!{home}/interpreter\necho hello\n")
    (project.evals / "inner").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    ran = project.runner("./inner").run(project.task())
    assert ran.output == "hello\n", "what a script names itself is shown"
    ran = project.shell(f"{project.evals}/inner")
    assert ran.exit_code == 127
    assert "not found" in project.stderr()


@needs_bubblewrap
def test_the_exit_status_is_the_agents(project: Project) -> None:
    ran = project.shell("echo 'bwrap: not by bwrap' >&2; echo said; exit 7")
    assert (ran.exit_code, ran.output) == (7, "said\n")


TREE = "setsid sleep 300 & (setsid sh -c 'sleep 301 & sleep 302' &); echo begun; sleep 303"


@needs_bubblewrap
def test_a_timeout_ends_the_whole_tree(project: Project) -> None:
    runner = project.runner("sh", "-c", TREE)
    ran = runner.run(project.task(timeout=1.0))
    assert ran.timed_out
    assert not ran.still_running
    assert ran.output == "begun\n"
    assert marked(project.trial_id) == []


@needs_bubblewrap
def test_what_is_left_running_is_ended(project: Project) -> None:
    ran = project.shell("setsid sleep 300 >/dev/null 2>&1 & echo done")
    assert ran.exit_code == 0
    assert ran.output == "done\n"
    assert marked(project.trial_id) == []


@needs_bubblewrap
def test_an_agent_that_is_ended_may_still_say_something(project: Project) -> None:
    ready = project.workspace / "ready"
    source = (
        "import signal, sys, time\n"
        "def end(*_):\n    print('x' * 200000); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\nopen('ready', 'w')\ntime.sleep(300)"
    )
    cancelled = threading.Event()
    runner = project.runner(sys.executable, "-c", source)
    done: list[Execution] = []
    task = project.task(cancelled=cancelled)
    thread = threading.Thread(target=lambda: done.append(runner.run(task)))
    thread.start()
    deadline = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    cancelled.set()
    thread.join(60)
    assert len(done[0].output) == 200_001


@needs_bubblewrap
def test_the_suite_in_a_home_itself(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.evals))
    with pytest.raises(RunnerError, match="a directory of its own"):
        project.runner("true")


def test_without_bubblewrap_it_is_an_error(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunnerError, match="bwrap: not installed; install it"):
        project.runner("true")


def test_one_that_does_not_work_is_an_error(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RunnerError, match="No permissions to create new namespace; use sandbox"):
        project.runner("true")
    runner = project.runner("true", sandbox="auto")
    assert runner.description == "sandbox: none (bwrap: No permissions to create new namespace)"
    assert runner.run(project.task()).exit_code == 0


def test_auto_says_which_it_is(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = "none (" + _BUBBLEWRAP.problem + ")" if _BUBBLEWRAP.problem else "bubblewrap"
    assert project.runner("true", sandbox="auto").description == f"sandbox: {here}"
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = project.runner("true", sandbox="auto")
    assert runner.description == "sandbox: none (bwrap: not installed)"


def test_none_says_nothing(project: Project) -> None:
    runner = project.runner("true", sandbox="none")
    assert runner.description == ""
    suite = load_suite(project.evals / "eval.yaml", rootdir=project.root)
    sandbox = sandbox_of(RunnerContext(suite=suite, rootdir=project.root), {})
    assert sandbox.wrap(["a", "b"], workspace="/w", log_dir="/l") == ["a", "b"]
