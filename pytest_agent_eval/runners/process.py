"""The one place that starts processes."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_agent_eval.baton import BATON
from pytest_agent_eval.cancellation import Cancellation
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.runners.capped_log import CappedLog
from pytest_agent_eval.runners.live_trees import LiveTrees
from pytest_agent_eval.runners.process_tree import MARKER, ProcessTree
from pytest_agent_eval.runners.starting import start

__all__ = ["MAX_OUTPUT_BYTES", "ProcessOutcome", "kill_all", "run_process"]

MAX_OUTPUT_BYTES = 16 * 1024 * 1024

_CANCEL_POLL_S = 0.2
_WAIT_POLL_S = 0.02  # only where the system cannot wake us when a process ends
_DRAIN_S = 0.5
_LEFTOVER_GRACE_S = 2.0
_FIRST_RECORD_S = 0.5
_LAST_RECORD_S = 10.0
_KILL_ROUNDS = 40
_CHUNK = 65536


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How a process ended.

    Attributes:
        exit_code: its exit status, negative for a signal it died of by itself; None when it was
            ended because of its timeout or a cancellation, or was never started (cancelled).
        timed_out, cancelled: why it was ended.
        duration_s: seconds of wall clock until it ended or its time was up.
        stdout_bytes, stderr_bytes: bytes it wrote, dropped ones included.
        leftovers: processes that it left behind and that were ended.
        survivors: processes that could not be ended.
        unwatched: why the processes would go on if this process were killed; said once.
    """

    exit_code: int | None
    timed_out: bool = False
    cancelled: bool = False
    duration_s: float = 0.0
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    leftovers: int = 0
    survivors: int = 0
    unwatched: str = ""


def run_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    stdout_path: str,
    stderr_path: str,
    cap: int = MAX_OUTPUT_BYTES,
    trial_id: str = "",
    cancelled: threading.Event | None = None,
    grace: float = 5.0,
    secrets: Secrets = NO_SECRETS,
    wrapped: bool = False,
    leave_running: bool = False,
) -> ProcessOutcome:
    """Run a command in its own session, with empty stdin, and wait for it.

    When this returns, no process that the command started is running: on a timeout or a
    cancellation the tree gets SIGTERM, and SIGKILL after ``grace``; after a normal end what was
    left behind is ended likewise, sooner.

    Args:
        argv: the command and its arguments; looked up in the ``PATH`` of ``env``.
        cwd: its working directory.
        env: its whole environment.
        timeout: seconds of wall clock.
        stdout_path: file for its output, made when there is any.
        stderr_path: file for its error output, likewise.
        cap: bytes kept of each; the middle of a longer one is dropped.
        trial_id: marks the environment, so that detached processes are found.
        cancelled: ends the command early when set.
        grace: seconds between SIGTERM and SIGKILL.
        secrets: replaced before anything is written to a file.
        leave_running: what it leaves behind when it ends by itself goes on; the caller ends it, by
            its marker.
        wrapped: the command puts the agent into a sandbox, and is to be ended after it.

    Raises:
        RunnerError: the command cannot be started, or its output cannot be stored; then it has
            been ended.
    """
    if cancelled is not None and cancelled.is_set():
        return ProcessOutcome(None, cancelled=True)
    if trial_id:
        env = {**env, MARKER: trial_id}
    out, err = (CappedLog(path, cap, secrets.filter()) for path in (stdout_path, stderr_path))
    tree = _LIVE.expect(trial_id, wrapped=wrapped)
    try:
        process = start(argv, cwd, env)
        _LIVE.started(tree, process.pid)
        running = _Running(process, out, err, tree, leave_running=leave_running)
        outcome = _run(running, timeout, cancelled, grace)
    finally:
        _LIVE.forget(tree)
    for log in (out, err):
        if log.failure is not None:
            reason = log.failure.strerror or str(log.failure)
            raise RunnerError(f"{log.path}: the agent's output cannot be stored here: {reason}")
    return outcome


def kill_all() -> None:
    """End all commands that are running, without any grace; each says so to whoever waits."""
    _LIVE.kill()


def _run(
    running: _Running, timeout: float, cancelled: threading.Event | None, grace: float
) -> ProcessOutcome:
    try:
        return running.follow(timeout, cancelled, grace)
    except BaseException:
        running.end_tree(0)
        raise
    finally:
        running.close()


class _Running:
    """One started process, its pipes and its tree; used by the thread that waits for it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        out: CappedLog,
        err: CappedLog,
        tree: ProcessTree,
        *,
        leave_running: bool,
    ) -> None:
        self.tree = tree
        self._leave_running = leave_running
        self._process = process
        self._started = time.monotonic()
        self._out, self._err = out, err
        self._poll = select.poll()
        self._logs: dict[int, CappedLog] = {}
        for stream, log in ((process.stdout, out), (process.stderr, err)):
            if stream is not None:
                self._logs[stream.fileno()] = log
                self._poll.register(stream.fileno(), select.POLLIN)
        self._ended = False
        self._cancel_fd = -1
        self._pidfd = _open_pidfd(process.pid)
        if self._pidfd is not None:
            self._poll.register(self._pidfd, select.POLLIN)

    def follow(
        self, timeout: float, cancelled: threading.Event | None, grace: float
    ) -> ProcessOutcome:
        """Wait until the process has ended, or end it."""
        if isinstance(cancelled, Cancellation):
            with contextlib.suppress(OSError):  # no descriptor left: then we look now and then
                self._cancel_fd = cancelled.fileno()
                self._poll.register(self._cancel_fd, select.POLLIN)
        was_cancelled = self._wait(self._started + timeout, cancelled)
        if self._cancel_fd >= 0:
            self._poll.unregister(self._cancel_fd)
        duration = time.monotonic() - self._started
        leftovers = survivors = 0
        code: int | None = None
        if self._ended:
            code = self._process.wait()
            self._drain(_DRAIN_S)
            if not self._leave_running and self.tree.left_something(duration, _LIVE.roots):
                leftovers, survivors = self.end_tree(min(grace, _LEFTOVER_GRACE_S))
                self._drain(_DRAIN_S)
        else:
            _, survivors = self.end_tree(grace)
            self._drain(_DRAIN_S)
        return ProcessOutcome(
            exit_code=code,
            timed_out=code is None and not was_cancelled,
            cancelled=was_cancelled,
            duration_s=duration,
            stdout_bytes=self._out.total,
            stderr_bytes=self._err.total,
            leftovers=leftovers,
            survivors=survivors,
            unwatched=_LIVE.problem(),
        )

    def end_tree(self, grace: float) -> tuple[int, int]:
        """SIGTERM, after ``grace`` SIGKILL until nothing is left; (processes ended, survivors).

        Output goes on being read meanwhile, or a process could block on a full pipe.
        """
        seen: set[tuple[int, float]] = set()
        until = time.monotonic() + grace
        pause = 0.005
        number: int = signal.SIGTERM if grace > 0 else signal.SIGKILL
        rounds = 0
        while True:
            members = self.tree.signal(number)
            seen.update((member.pid, member.started) for member in members)
            if not members or rounds >= _KILL_ROUNDS:
                break
            self._pump_for(pause)
            pause = min(pause * 2, 0.25)
            if number == signal.SIGKILL:
                rounds += 1
            elif time.monotonic() >= until:
                number, pause = signal.SIGKILL, 0.005
        # Of a process with threads the first one may be gone, and the others need a moment.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_DRAIN_S if not members else 0)
        return len(seen), len(members)

    def close(self) -> None:
        """Close pipes and logs. What still holds the other end of a pipe cannot hold us."""
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
        self._out.close()
        self._err.close()

    def _wait(self, deadline: float, cancelled: threading.Event | None) -> bool:
        """Until the process ends, its time is up, it is cancelled or its output cannot be stored.

        Returns:
            Whether it was cancelled.
        """
        record_every = _FIRST_RECORD_S
        record_at = self._started + record_every
        while not self._ended:
            now = time.monotonic()
            if now >= deadline:
                return False
            if cancelled is not None and cancelled.is_set():
                return True
            if self._out.failure is not None or self._err.failure is not None:
                return False
            if now >= record_at:
                self.tree.record()
                record_every = min(record_every * 2, _LAST_RECORD_S)
                record_at = now + record_every
            seconds = min(deadline, record_at) - now
            wakes = cancelled is None or self._cancel_fd >= 0
            self._pump(seconds if wakes else min(seconds, _CANCEL_POLL_S))
        return False

    def _drain(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._logs and (left := until - time.monotonic()) > 0:
            self._pump(left)

    def _pump_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._pump(left)

    def _pump(self, seconds: float) -> None:
        """Wait at most this long for output or the end, and take what has come."""
        if self._pidfd is None and not self._ended:
            seconds = min(seconds, _WAIT_POLL_S)
        with BATON.waiting():
            found = self._poll.poll(max(0.0, seconds) * 1000)
        for descriptor, _ in found:
            if descriptor == self._pidfd:
                self._poll.unregister(descriptor)
                self._ended = True
                continue
            if descriptor == self._cancel_fd:
                continue  # the caller looks at it
            data = os.read(descriptor, _CHUNK)
            if data:
                self._logs[descriptor].write(data)
            else:
                self._poll.unregister(descriptor)
                del self._logs[descriptor]
        if self._pidfd is None and not self._ended:
            self._ended = self._process.poll() is not None


_LIVE = LiveTrees()
# The only state of a module in this package: what must not outlive the interpreter belongs to
# the interpreter and to no object.


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is no such."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        descriptor: int = opener(pid)
    except OSError:
        return None
    return descriptor
