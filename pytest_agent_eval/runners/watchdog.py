"""A process that ends our agents when we can no longer: after ``kill -9``, or out of memory.

Run as a script it is that process. It is told which agents are running, and notices when the
process that started it ends. If agents are left then, it ends their trees.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import select
import signal
import sys
import threading
import time
from typing import Any

__all__ = ["Agents", "Watchdog"]

_GRACE_S = 5.0
_STARTS = 3
_CLOSING_S = 2.0  # between the end of our pipe and of our parent
_REST_MS = 100  # to be woken for each agent would cost as much as a small agent does
_LOOK_MS = 1000  # only where the system cannot wake us when our parent ends
_RECORD_S = 1.0
_RECORD_SHARE = 50

# What ends a session must not end this. It is born with these blocked.
_BLOCKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)

_NEEDED = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
"""Variables that an interpreter may need to start; no others, least of all a trial's marker."""


class Watchdog:
    """Our end of it; the process is started with the first agent. Used from several threads.

    It is started again when somebody ends it, and without it agents run as well.

    Args:
        tree_module: file of the module ``process_tree``, which the process loads.
        interpreter: the Python that runs it.
    """

    def __init__(self, tree_module: str, *, interpreter: str = sys.executable) -> None:
        self._tree_module = tree_module
        self._interpreter = interpreter
        self._lock = threading.Lock()
        self._agents: dict[int, str] = {}
        self._keys = itertools.count()
        self._pipe = -1
        self._starts = 0
        self._problem = ""

    def expect(self, marker: str) -> int:
        """An agent is about to be started, with this in its environment; returns its key."""
        with self._lock:
            key = next(self._keys)
            self._agents[key] = f"{key} 0 {marker}\n"
            self._tell(self._agents[key])
            return key

    def started(self, key: int, root: int, marker: str) -> None:
        """It was started: ``root`` is its first process, which leads a session."""
        with self._lock:
            self._agents[key] = f"{key} {root} {marker}\n"
            self._tell(self._agents[key])

    def forget(self, key: int) -> None:
        """It has ended with all its processes, or was not started."""
        with self._lock:
            self._agents.pop(key, None)
            self._tell(f"{key}\n")

    def problem(self) -> str:
        """Why nobody watches, for people; said once, then empty."""
        if not self._problem:
            return ""
        with self._lock:
            problem, self._problem = self._problem, ""
            return problem

    def close(self) -> None:
        """Let go of it, in a forked child: it is the parent's."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _tell(self, line: str) -> None:
        """One write of less than a pipe takes at once."""
        try:
            if self._pipe >= 0:
                os.write(self._pipe, line.encode())
                return
        except BrokenPipeError:
            self.close()
        except OSError as error:
            self._give_up(str(error))
            return
        self._start()

    def _start(self) -> None:
        if self._starts > _STARTS:
            return
        self._starts += 1
        if self._starts > _STARTS:
            self._give_up("it ended again and again")
            return
        try:
            self._pipe = _spawn(self._interpreter, self._tree_module)
            os.write(self._pipe, "".join(self._agents.values()).encode())
        except BrokenPipeError:
            self.close()
        except (OSError, ValueError) as error:
            self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        self.close()
        self._starts = _STARTS + 1
        self._problem = f"agents go on running if pytest is killed: no process watches them: {why}"


def _spawn(interpreter: str, tree_module: str) -> int:
    """Start the process; returns the end of a pipe for what it is told."""
    if not interpreter:
        raise ValueError("the path of the Python interpreter is not known")
    environment = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    argv = [interpreter, "-I", "-S", __file__, tree_module, str(os.getpid())]
    reading, writing = os.pipe()
    try:
        os.posix_spawn(
            interpreter,
            argv,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsigmask=_BLOCKED,
        )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return writing


class Agents:
    """What the process knows of the agents that are running.

    Args:
        tree_module: file of the module ``process_tree``; loaded when first needed.
    """

    def __init__(self, tree_module: str) -> None:
        self._tree_module = tree_module
        self._module: Any = None
        self._table: Any = None
        self._told: dict[str, tuple[int, str]] = {}
        self._trees: dict[str, Any] = {}
        self._rest = b""

    def __len__(self) -> int:
        return len(self._told)

    def take(self, data: bytes) -> None:
        """The next bytes of what is told: ``key root marker`` (root 0: none yet), or ``key``."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            key, *agent = line.decode().split(" ", 2)
            if agent:
                self._told[key] = (int(agent[0]), agent[1])
            else:
                self._told.pop(key, None)
                self._trees.pop(key, None)

    def record(self) -> None:
        """Remember who belongs to them now, found again later wherever they moved."""
        for tree in self._all():
            tree.record()

    def end(self, grace: float = _GRACE_S) -> None:
        """SIGTERM to all of them, SIGKILL after ``grace`` seconds."""
        trees = self._all()
        self._module.end_trees(trees, grace)

    def _all(self) -> list[Any]:
        if self._module is None:
            self._module = _load(self._tree_module)
            self._table = self._module.ProcessTable()
        for key, (root, marker) in self._told.items():
            tree = self._trees.get(key)
            if tree is None:
                tree = self._module.ProcessTree(root, marker, table=self._table)
                self._trees[key] = tree
            tree.root = root
        return list(self._trees.values())


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("process_tree", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _main(tree_module: str, parent: int) -> None:
    os.setsid()
    os.chdir("/")
    os.closerange(3, 65536)
    agents = Agents(tree_module)
    if _follow(agents, parent):
        agents.end()


def _follow(agents: Agents, parent: int) -> bool:
    """Until the parent has ended, or has let go of us; whether agents are to be ended."""
    os.set_blocking(0, False)
    poll = select.poll()
    look: int | None = _LOOK_MS
    with contextlib.suppress(AttributeError, OSError):
        # A child that the parent forked may hold our stdin open.
        poll.register(os.pidfd_open(parent), select.POLLIN)
        look = None
    record_at = float("inf")
    said_all = False
    while os.getppid() == parent and not said_all:
        poll.register(0, select.POLLIN)
        wait = max(0, record_at - time.monotonic()) * 1000
        poll.poll(min(wait, look or wait) if wait < float("inf") else look)
        poll.register(0, 0)
        poll.poll(_REST_MS)
        said_all = _read(agents)
        now = time.monotonic()
        if not agents:
            record_at = float("inf")
        elif record_at == float("inf"):
            record_at = now + _RECORD_S
        elif now >= record_at:
            agents.record()
            took = time.monotonic() - now
            record_at = now + max(_RECORD_S, took * _RECORD_SHARE)
    _read(agents)
    until = time.monotonic() + _CLOSING_S
    while agents and os.getppid() == parent and time.monotonic() < until:
        time.sleep(0.01)
    return bool(agents) and os.getppid() != parent


def _read(agents: Agents) -> bool:
    """Take what was said; whether nothing more can come."""
    with contextlib.suppress(BlockingIOError):
        while data := os.read(0, 65536):
            agents.take(data)
        return True
    return False


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
