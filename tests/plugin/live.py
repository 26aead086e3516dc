"""A pytest session in a process of its own that a test looks at while it runs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from pytest_agent_eval.runners.process_tree import MARKER

from .conftest import PLAIN, Project

LONG = 120.0
"""Seconds after which something that should have happened has not: only a failing test waits."""

_ROUNDING_S = 2.0
"""The time at which a process began is known to a second."""


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


class Live:
    """The session, what it printed, and the agents that it started.

    An agent says that it is there by a file ``agents/<its pid>``.
    """

    def __init__(self, project: Project, *arguments: str) -> None:
        self.project = project
        self.agents = project.path / "agents"
        self.agents.mkdir(exist_ok=True)
        self._output = open(project.path / "printed.txt", "w+b")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *PLAIN, *arguments],
            cwd=project.path,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def started(self) -> int:
        """How many agents have said that they are there."""
        return len(os.listdir(self.agents))

    @property
    def stored(self) -> int:
        """Lines of results."""
        root = self.project.path / ".agent-eval" / "runs"
        # Beside the runs there is a link, and for a moment the one that will replace it.
        runs = [] if not root.is_dir() else [run for run in root.iterdir() if run.name[0] == "2"]
        files = [file for run in runs for file in run.glob("results*.jsonl")]
        return sum(file.read_bytes().count(b"\n") for file in files)

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal, as a terminal does to the whole group."""
        send = os.killpg if group else os.kill
        send(self.process.pid, number)

    def wait(self, seconds: float = LONG) -> int:
        """The exit status. A session that hangs prints where its threads are."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGABRT)
            self.process.wait()
            raise AssertionError(f"the session hangs\n{self.printed}") from None

    @property
    def printed(self) -> str:
        """All that the session printed."""
        self._output.flush()
        return Path(self._output.name).read_text(encoding="utf-8", errors="replace")

    def left(self) -> list[psutil.Process]:
        """Agents that are still there."""
        return [agent for file in self.agents.iterdir() if (agent := _agent(file)) is not None]

    def close(self) -> None:
        """End what a failing test leaves."""
        if self.process.poll() is None:
            self.signal(signal.SIGKILL, group=True)
            self.process.wait()
        for agent in self.left():
            with contextlib.suppress(psutil.NoSuchProcess):
                agent.kill()
        self._output.close()


def _agent(file: Path) -> psutil.Process | None:
    """The agent that left this file, if it still runs.

    Its pid may be another process's by now: one that began after the file was written, or that
    nobody started as an agent.
    """
    try:
        written = file.stat().st_mtime
        found = psutil.Process(int(file.name))
        ended = found.status() == psutil.STATUS_ZOMBIE
        if ended or found.create_time() > written + _ROUNDING_S or MARKER not in found.environ():
            return None
    except (FileNotFoundError, psutil.Error):
        return None
    return found
