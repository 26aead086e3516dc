from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners import Execution, Runner, Task

MakeRunner = Callable[..., Runner]
MakeTask = Callable[..., Task]

SHOW = "import sys; print('\\n'.join(map(repr, sys.argv[1:])))"


@pytest.fixture
def run(make_runner: MakeRunner, make_task: MakeTask) -> Callable[..., Execution]:
    def call(command: Any, runner: dict[str, Any] | None = None, **options: Any) -> Execution:
        made = make_runner(type="cli", command=command, **(runner or {}))
        return made.run(make_task(**options))

    return call


Run = Callable[..., Execution]


def shown(execution: Execution) -> list[str]:
    return [str(eval(line)) for line in execution.output.splitlines()]


def test_stdout_is_the_final_message(run: Run, tmp_path: Path) -> None:
    execution = run(["sh", "-c", "pwd; echo err >&2"])
    assert execution.output == f"{tmp_path}/0123456789abcdef\n"
    assert execution.exit_code == 0
    assert execution.failure is None
    assert (tmp_path / "logs" / "stderr.log").read_text() == "err\n"


def test_an_exit_status_is_reported_and_not_judged(run: Run) -> None:
    execution = run(["sh", "-c", "exit 3"])
    assert (execution.exit_code, execution.failure, execution.output) == (3, None, "")


def test_placeholders_are_one_word_each(run: Run, tmp_path: Path) -> None:
    execution = run(
        [
            sys.executable,
            "-c",
            SHOW,
            *("{agent}", "{args}", "{prompt}", "{workspace}", "{output_dir}", "{model}"),
            *("{subagent_model}", "{timeout}", "{max_budget_usd}", "{effort}", "{system_prompt}"),
            *("{config_dir}", "{topic}", "{size}"),
        ],
        input={"topic": "a b; touch c", "model": "from the input", "prompt": "from the input"},
        prompt="do 'this' $(now)\n-x",
        skill="summarise",
        arguments="",
        model="m",
        subagent_model="s",
        effort="low",
        system_prompt="be brief",
        max_budget_usd=0.5,
        values={"size": "big", "model": "from the variant"},
    )
    workspace = f"{tmp_path}/0123456789abcdef"
    assert shown(execution) == [
        *("summarise", "do 'this' $(now)\n-x", "do 'this' $(now)\n-x"),
        *(workspace, f"{workspace}/output", "m", "s", "30", "0.5", "low", "be brief"),
        *(f"{tmp_path}/project/evals", "a b; touch c", "big"),
    ]
    assert not Path(workspace, "c").exists()


def test_a_string_command_is_split_and_runs_no_shell(run: Run) -> None:
    command = f"{sys.executable} -c \"{SHOW}\" 'a b' {{prompt}} '$HOME' '>' x"
    assert shown(run(command, prompt="two words")) == ["a b", "two words", "$HOME", ">", "x"]


def test_args_are_the_arguments_before_the_prompt(run: Run) -> None:
    assert run(["echo", "{args}"], arguments="given", prompt="other").output == "given\n"


def test_the_environment_holds_no_test_session(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("SOME_SETTING", "kept")
    monkeypatch.setenv("OLDPWD", str(tmp_path / "project/evals/cases/refund_yes"))
    monkeypatch.setenv("SEEN", "seen")
    execution = run(
        ["env"],
        {"env": {"FROM_RUNNER": "$SEEN", "LOST": "$NOT_SET_ANYWHERE"}},
        env={"FROM_TASK": "1"},
        model="m",
        trial_id="fedcba9876543210",
    )
    env = dict(line.split("=", 1) for line in execution.output.splitlines())
    workspace = f"{tmp_path}/0123456789abcdef"
    assert env["PWD"] == env["AGENT_EVAL_WORKSPACE"] == workspace
    assert env["AGENT_EVAL_OUTPUT_DIR"] == f"{workspace}/output"
    assert env["AGENT_EVAL_TRIAL"] == "fedcba9876543210"
    assert env["AGENT_EVAL_MODEL"] == "m"
    assert (env["SOME_SETTING"], env["FROM_RUNNER"], env["FROM_TASK"]) == ("kept", "seen", "1")
    assert not any(name.startswith("PYTEST_") for name in env)
    assert not any("refund_yes" in value for value in env.values())
    assert execution.notes == (
        "runner.env.LOST: $NOT_SET_ANYWHERE is not set, so the variable is left out",
    )


def test_a_clean_environment_hides_the_callers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SETTING", "hidden")
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    output = run(["env"], {"env_policy": "clean"}).output
    assert "SOME_SETTING" not in output
    assert "OPENAI_API_KEY=a key" in output


def test_a_command_beside_the_suite_is_found(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "project" / "evals" / "tools" / "agent"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\necho beside\n")
    script.chmod(0o755)
    assert run(["tools/agent"]).output == "beside\n"
    assert run("./tools/agent").output == "beside\n"


def test_a_command_in_the_workspace_is_found(run: Run, make_task: MakeTask) -> None:
    script = make_task().workspace / "agent.sh"
    script.write_text("#!/bin/sh\necho inside\n")
    script.chmod(0o755)
    assert run(["./agent.sh"]).output == "inside\n"


def test_the_path_is_the_agents(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "my-agent"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho mine\n")
    script.chmod(0o755)
    path = f"{script.parent}:{os.environ['PATH']}"
    assert run(["my-agent"], {"env": {"PATH": path}}).output == "mine\n"
    with pytest.raises(RunnerError, match="'my-agent' was not found; PATH of the agent is"):
        run(["my-agent"])


def test_a_timeout_is_reported_with_the_output_so_far(run: Run) -> None:
    execution = run(["sh", "-c", "echo begun; sleep 60"], timeout=0.5)
    assert execution.timed_out
    assert execution.failure == "timeout"
    assert execution.error == "timed out after 0.5 s"
    assert execution.output == "begun\n"
    assert execution.exit_code is None


def test_cancelled_is_infrastructure(run: Run) -> None:
    cancelled = threading.Event()
    cancelled.set()
    execution = run(["echo"], cancelled=cancelled)
    assert execution.failure == "infrastructure"
    assert execution.error == "cancelled before it ended"


def test_what_was_left_running_is_a_note(run: Run) -> None:
    execution = run(["sh", "-c", "sleep 60 & sleep 60 & echo x"])
    assert execution.notes == ("ended 2 processes that the agent left running",)
    execution = run(["sh", "-c", "sleep 60 & echo x"])
    assert execution.notes == ("ended 1 process that the agent left running",)


def test_output_that_is_not_utf8_is_replaced_in_the_message(run: Run, tmp_path: Path) -> None:
    execution = run([sys.executable, "-c", "import os; os.write(1, b'a\\xff\\x00\\x1bz')"])
    assert execution.output == "a�\x00\x1bz"
    assert (tmp_path / "logs" / "stdout.log").read_bytes() == b"a\xff\x00\x1bz"


def test_a_long_message_is_its_end(run: Run) -> None:
    execution = run([sys.executable, "-c", "print('x' * 2_000_000); print('end')"])
    assert len(execution.output) == 1024 * 1024
    assert execution.output.endswith("x\nend\n")
