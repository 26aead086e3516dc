"""Real suites on disk, read by the real loader, and tasks for their runners."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_agent_eval.runners import BUILTIN, Runner, RunnerContext, Task
from pytest_agent_eval.suite import load_suite
from tests.unit.runners.processes import marked

MakeRunner = Callable[..., Runner]
MakeTask = Callable[..., Task]


@pytest.fixture
def make_runner(tmp_path: Path) -> MakeRunner:
    """The runner of a suite with this ``runner`` block."""

    def make(fixtures: dict[str, Any] | None = None, **runner: Any) -> Runner:
        evals = tmp_path / "project" / "evals"
        evals.mkdir(parents=True, exist_ok=True)
        config = {"dataset": {"path": "cases"}, "runner": runner}
        (evals / "eval.yaml").write_text(yaml.safe_dump(config))
        (evals / "cases").mkdir(exist_ok=True)
        root = tmp_path / "project"
        suite = load_suite(evals / "eval.yaml", rootdir=root)
        context = RunnerContext(suite=suite, rootdir=root, fixtures=fixtures or {})
        return BUILTIN[runner["type"]](context)

    return make


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """A task with a workspace of its own."""

    def make(**options: Any) -> Task:
        workspace = tmp_path / "0123456789abcdef"
        (workspace / "output").mkdir(parents=True, exist_ok=True)
        logs = tmp_path / "logs"
        logs.mkdir(exist_ok=True)
        options.setdefault("input", {"prompt": "What is 6 x 7?"})
        options.setdefault("timeout", 30.0)
        # Agents of another process that runs these tests must not be taken for ours.
        options.setdefault("trial_id", uuid.uuid4().hex[:16])
        options.setdefault("cancelled", threading.Event())
        return Task(workspace=workspace, output_dir=workspace / "output", log_dir=logs, **options)

    return make


@pytest.fixture
def trial_id() -> Iterator[str]:
    """An id of its own; nothing that carries it may be left afterwards."""
    identity = f"{os.getpid():x}-{time.monotonic_ns():x}"
    yield identity
    left = marked(identity)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
