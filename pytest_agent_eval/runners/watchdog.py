"""A process that ends our agents when we can no longer: after ``kill -9``, or out of memory.

Run as a script it is that process. It knows which agents are running, and notices by its stdin
that the process that started it has ended. If agents are left then, it ends their trees.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any

__all__ = ["Watchdog"]

_GRACE_S = 5.0
_ROUNDS = 50


class Watchdog:
    """Our end of it; the process is started with the first agent. Used from several threads.

    Args:
        tree_module: file of the module ``process_tree``, which the process loads.
    """

    def __init__(self, tree_module: str) -> None:
        self._tree_module = tree_module
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._failed = False

    def watch(self, root: int, marker: str) -> None:
        """An agent has started: its first process, and what marks its environment."""
        self._tell(f"+{root} {marker}\n")

    def forget(self, root: int) -> None:
        """An agent has ended, with all its processes."""
        self._tell(f"-{root}\n")

    def _tell(self, line: str) -> None:
        """One write of less than a pipe takes at once. Without the process agents run as well."""
        with self._lock:
            if self._failed:
                return
            try:
                if self._process is None:
                    self._process = _start(self._tree_module)
                assert self._process.stdin is not None
                os.write(self._process.stdin.fileno(), line.encode())
            except OSError:
                self._failed = True


def _start(tree_module: str) -> subprocess.Popen[bytes]:
    # What ends the session must not end this. The process inherits which signals this thread
    # blocks, so that not even its first moment is open to them.
    before = signal.pthread_sigmask(
        signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    )
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, tree_module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _main(tree_module: str, parent: int) -> None:
    agents = _follow(parent)
    if not agents:
        return
    spec = importlib.util.spec_from_file_location("process_tree", tree_module)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    trees = [module.ProcessTree(root, marker) for root, marker in agents.items()]
    until = time.monotonic() + _GRACE_S
    while _signal(trees, signal.SIGTERM) and time.monotonic() < until:
        time.sleep(0.05)
    for _ in range(_ROUNDS):
        if not _signal(trees, signal.SIGKILL):
            break
        time.sleep(0.02)


def _follow(parent: int) -> dict[int, str]:
    """The agents that were running when the parent ended."""
    agents: dict[int, str] = {}
    poll = select.poll()
    poll.register(0, select.POLLIN)
    gone = -1
    with contextlib.suppress(AttributeError, OSError):
        # A child that the parent forked may hold our stdin open.
        gone = os.pidfd_open(parent)
        poll.register(gone, select.POLLIN)
    waiting = b""
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        data = os.read(0, 65536) if 0 in ready else b""
        *lines, waiting = (waiting + data).split(b"\n")
        for line in lines:
            root, _, marker = line[1:].decode().partition(" ")
            if line[:1] == b"+":
                agents[int(root)] = marker
            else:
                agents.pop(int(root), None)
        if not data:  # the end of stdin, or of the parent and all it had said
            return agents


def _signal(trees: list[Any], number: int) -> int:
    return sum(len(tree.signal(number)) for tree in trees)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
