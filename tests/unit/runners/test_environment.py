from __future__ import annotations

from pathlib import Path

from pytest_agent_eval.runners.base import Task
from pytest_agent_eval.runners.environment import (
    agent_environment,
    caller_environment,
    resolve_variables,
)

CALLER = {
    "PATH": "/usr/bin",
    "HOME": "/home/me",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
    "https_proxy": "http://proxy",
    "ANTHROPIC_API_KEY": "key",
    "SECRET_PLANS": "hidden",
    "PWD": "/project/evals/cases/refund_yes",
    "OLDPWD": "/project/evals/cases/refund_no",
    "PYTEST_CURRENT_TEST": "eval.yaml::refund_yes (call)",
    "PYTEST_XDIST_WORKER": "gw0",
    "PYTEST_ADDOPTS": "-k refund_yes",
    "COV_CORE_SOURCE": "x",
    "COVERAGE_PROCESS_START": "/project/.coveragerc",
    "COVERAGE_PROCESS_CONFIG": ":data:x",
    "AGENT_EVAL_TRIAL": "an outer trial",
    "EDITOR_FILE": "/project/evals/cases/refund_yes/annotations.yaml",
    "DATASET": "/project/evals/cases",
    "DATASET_COPY": "/project/evals/cases-old",
}


def test_inherit_hides_the_test_session_and_the_dataset() -> None:
    seen = caller_environment("inherit", CALLER, hidden=["/project/evals/cases"])
    assert set(seen) == {
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TERM",
        "TMPDIR",
        "https_proxy",
        "ANTHROPIC_API_KEY",
        "SECRET_PLANS",
        "COVERAGE_PROCESS_START",
        "COVERAGE_PROCESS_CONFIG",
        "DATASET_COPY",
    }


def test_a_dataset_at_the_root_does_not_take_the_path_away() -> None:
    seen = caller_environment("inherit", {"PATH": "/data/bin", "X": "/data/y"}, hidden=["/data/"])
    assert seen == {"PATH": "/data/bin"}


def test_clean_lets_only_the_needed_through() -> None:
    assert set(caller_environment("clean", CALLER)) == {
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TERM",
        "TMPDIR",
        "https_proxy",
        "ANTHROPIC_API_KEY",
    }


def test_references_are_resolved_and_missing_ones_left_out_with_a_note() -> None:
    values = {"A": "$HOME", "B": "${LANG}", "C": "x$HOME", "D": "$NOT_THERE", "E": "$", "F": "$1"}
    resolved, notes = resolve_variables(values, CALLER, key="execution.env")
    assert resolved == {"A": "/home/me", "B": "C.UTF-8", "C": "x$HOME", "E": "$", "F": "$1"}
    assert notes == ("execution.env.D: $NOT_THERE is not set, so the variable is left out",)


def test_the_task_wins_over_the_runner_and_both_over_the_caller() -> None:
    workspace = Path("/work/0123456789abcdef")
    task = Task(
        input={},
        workspace=workspace,
        output_dir=workspace / "output",
        log_dir=Path("/logs"),
        env={"B": "task", "C": "task"},
        model="m",
        trial_id="0123456789abcdef",
    )
    base = {"A": "caller", "B": "caller", "C": "caller"}
    assert agent_environment(task, base, {"B": "runner"}) == {
        "A": "caller",
        "B": "task",
        "C": "task",
        "PWD": str(workspace),
        "AGENT_EVAL_WORKSPACE": str(workspace),
        "AGENT_EVAL_OUTPUT_DIR": str(workspace / "output"),
        "AGENT_EVAL_MODEL": "m",
        "AGENT_EVAL_TRIAL": "0123456789abcdef",
    }
