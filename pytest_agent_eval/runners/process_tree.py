"""Everything an agent started: finding its processes and ending all of them.

A process belongs to the tree when it is in the session of the first process, descends from a
process that belongs, shares the session of one that belongs, or carries the trial's marker
(``AGENT_EVAL_TRIAL``) in its environment. The marker finds what was detached from the tree by a
double fork; descendants recorded while the agent ran find what dropped the marker.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

__all__ = [
    "MARKER",
    "Process",
    "ProcessTable",
    "ProcessTree",
    "Snapshot",
    "end_trees",
    "processes_by_proc",
    "processes_by_psutil",
]

MARKER = "AGENT_EVAL_TRIAL"

_LINUX = sys.platform.startswith("linux")

_QUICK_S = 5.0
"""Below this many seconds process ids cannot have wrapped around, see ``left_something``."""

_QUICK_RANGE = 256

_EXEC_S = 0.001
"""A process has no environment for some microseconds while it becomes another program."""

_SETTLED_S = 1.0
"""Between its start and becoming its program a process has the environment of who started it. One
without a marker is believed when it still has none this many seconds later."""

_RECENT_S = 0.5
"""Age up to which a snapshot will do for remembering who belongs to a tree."""

_TERM_PAUSE_S = 0.05
_KILL_PAUSE_S = 0.02
_KILL_ROUNDS = 50


class Process(NamedTuple):
    """One running process. ``started`` tells a process from a later one with the same id."""

    pid: int
    parent: int
    group: int
    session: int
    started: float


class Snapshot:
    """The running processes of the machine at one moment.

    Attributes:
        taken: monotonic seconds at which looking began.
        running: by process id.
        children: process id -> processes that it started.
        sessions: session -> processes in it.
        marked: marker -> processes with it in their environment.
    """

    def __init__(
        self, taken: float, processes: Iterable[Process], marker_of: Callable[[Process], bytes]
    ) -> None:
        self.taken = taken
        self.running = {process.pid: process for process in processes}
        self.children: dict[int, list[Process]] = {}
        self.sessions: dict[int, list[Process]] = {}
        self.marked: dict[bytes, list[Process]] = {}
        for process in self.running.values():
            self.children.setdefault(process.parent, []).append(process)
            self.sessions.setdefault(process.session, []).append(process)
            if marker := marker_of(process):
                self.marked.setdefault(marker, []).append(process)


class ProcessTable:
    """Snapshots of the running processes, shared by all trees; used from several threads.

    Looking costs about 10 microseconds a process, and so much again for the environment of a new
    one. However many trees ask at the same time, it is done once.

    Args:
        processes: lists the running processes of the machine, zombies left out.
    """

    def __init__(self, processes: Callable[[], Iterator[Process]] | None = None) -> None:
        self._processes = processes or _default_processes()
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._markers: dict[tuple[int, float], tuple[bytes, float]] = {}
        self._slept = False

    def snapshot(self, max_age: float = 0.0) -> Snapshot:
        """One that was begun at most ``max_age`` seconds before this call; 0: after it."""
        since = time.monotonic() - max_age
        with self._lock:
            if self._snapshot is None or self._snapshot.taken < since:
                self._snapshot = self._look()
            return self._snapshot

    def _look(self) -> Snapshot:
        taken = time.monotonic()
        self._slept = False
        snapshot = Snapshot(taken, self._processes(), self._marker_of)
        here = {(process.pid, process.started) for process in snapshot.running.values()}
        self._markers = {key: found for key, found in self._markers.items() if key in here}
        return snapshot

    def _marker_of(self, process: Process) -> bytes:
        key = (process.pid, process.started)
        marker, first = self._markers.get(key, (b"", 0.0))
        if marker or first < 0:
            return marker
        environment = environment_of(process.pid)
        if environment == b"" and not self._slept:
            time.sleep(_EXEC_S)  # most likely it is just being replaced by another program
            self._slept = True
            environment = environment_of(process.pid)
        marker = _marker_in(environment or b"")
        now = time.monotonic()
        settled = bool(first) and now - first >= _SETTLED_S
        self._markers[key] = (marker, -1.0 if settled else first or now)
        return marker


class ProcessTree:
    """The processes of one trial.

    Args:
        root: id of the first process, which leads its own session and group; 0 as long as it is
            not known, and set later.
        marker: value of the marker variable in the environment; empty when there is none.
        wrapped: the first process only holds the agent's, and ends them without mercy if it gets
            SIGTERM: it gets SIGKILL alone, and ends by itself when they have ended.
        table: of the machine; trees that share one share the work of looking.
    """

    def __init__(
        self,
        root: int,
        marker: str = "",
        *,
        wrapped: bool = False,
        table: ProcessTable | None = None,
    ) -> None:
        self.root = root
        self.marker = marker
        self._wrapped = wrapped
        self._marker = marker.encode()
        self._table = table or ProcessTable()
        self._known: dict[int, float] = {}
        self._signalled: set[tuple[int, float, int]] = set()
        self._root_started: float | None = None

    def record(self) -> None:
        """Remember who belongs to the tree now; found again later wherever they moved."""
        for process in self.members(self._table.snapshot(_RECENT_S)):
            self._known[process.pid] = process.started

    def members(self, snapshot: Snapshot | None = None) -> list[Process]:
        """The running processes of the tree; this process itself is never one.

        Args:
            snapshot: of the machine; None to look now.
        """
        snapshot = snapshot or self._table.snapshot()
        me, my_session = os.getpid(), os.getsid(0)
        root = snapshot.running.get(self.root)
        if root is not None and self._root_started is None:
            self._root_started = root.started
        belongs: dict[int, Process] = {}
        sessions = {my_session}
        waiting = self._certain(snapshot)
        while waiting:
            process = waiting.pop()
            if process.pid == me or process.pid in belongs:
                continue
            belongs[process.pid] = process
            waiting += snapshot.children.get(process.pid, ())
            if process.session not in sessions:
                sessions.add(process.session)
                waiting += snapshot.sessions.get(process.session, ())
        return list(belongs.values())

    def _certain(self, snapshot: Snapshot) -> list[Process]:
        """Those that belong by themselves: by session, by memory or by marker."""
        found: list[Process] = []
        root = snapshot.running.get(self.root)
        reused = root is not None and root.started != self._root_started
        if self.root and not reused:  # session 0 is the system's
            found += snapshot.sessions.get(self.root, ())
            found += [] if root is None else [root]
        for pid, started in self._known.items():
            process = snapshot.running.get(pid)
            if process is not None and process.started == started:
                found.append(process)
        if self._marker:
            found += (
                process
                for process in snapshot.marked.get(self._marker, ())
                if self._root_started is None or process.started >= self._root_started
            )
        return found

    def signal(self, number: int, snapshot: Snapshot | None = None) -> list[Process]:
        """Send a signal to every member and return them; SIGKILL each time, others only once.

        Args:
            number: the signal.
            snapshot: of the machine; None to look now.
        """
        members = self.members(snapshot)
        spared = self._wrapped and number != signal.SIGKILL
        if self.root and not spared and any(process.group == self.root for process in members):
            self._signal_group(number, members)
        for process in members:
            if spared and process.pid == self.root:
                continue
            key = (process.pid, process.started, number)
            if key in self._signalled and number != signal.SIGKILL:
                continue
            self._signalled.add(key)
            _kill(process.pid, number)
        return members

    def left_something(self, seconds: float, others: Container[int] = ()) -> bool:
        """Whether anything may be left after the first process ended (and was waited for).

        Costs a few system calls when nothing is left: the group is empty, and of the process
        ids given out since then (Linux tells the last one) none carries the marker.

        Args:
            seconds: how long the first process ran.
            others: process ids that are known to belong to other trees.
        """
        if self._known or seconds > _QUICK_S:
            return bool(self.members())
        try:
            os.killpg(self.root, 0)
        except ProcessLookupError:
            pass
        except PermissionError:
            return True
        else:
            return True
        if not self._marker:
            return False
        last = _last_pid()
        if last is None or not self.root <= last <= self.root + _QUICK_RANGE:
            return bool(self.members())
        me = os.getpid()
        return any(
            self._carries_marker(pid)
            for pid in range(self.root + 1, last + 1)
            if pid != me and pid not in others
        )

    def _carries_marker(self, pid: int) -> bool:
        environment = environment_of(pid)
        if environment == b"":  # most likely it is just being replaced by another program
            time.sleep(_EXEC_S)
            environment = environment_of(pid)
        return _marker_in(environment or b"") == self._marker

    def _signal_group(self, number: int, members: list[Process]) -> None:
        """At once for the whole group: nobody in it can fork out of a signal's way."""
        keys = {(item.pid, item.started, number) for item in members if item.group == self.root}
        if keys <= self._signalled and number != signal.SIGKILL:
            return
        self._signalled |= keys
        try:
            os.killpg(self.root, number)
        except (ProcessLookupError, PermissionError):
            return


def end_trees(trees: Sequence[ProcessTree], grace: float = 5.0) -> None:
    """End all of several trees: SIGTERM, after ``grace`` seconds SIGKILL until nothing is left."""
    # A table of its own: a thread may have been stopped while it looked at the other.
    table = ProcessTable()

    def send(number: int) -> int:
        snapshot = table.snapshot()
        return sum(len(tree.signal(number, snapshot)) for tree in trees)

    until = time.monotonic() + grace
    while send(signal.SIGTERM) and time.monotonic() < until:
        time.sleep(_TERM_PAUSE_S)
    for _ in range(_KILL_ROUNDS):
        if not send(signal.SIGKILL):
            break
        time.sleep(_KILL_PAUSE_S)


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):  # gone by now, or changed its user
        return


def _default_processes() -> Callable[[], Iterator[Process]]:
    return processes_by_proc if _LINUX else processes_by_psutil


def processes_by_proc() -> Iterator[Process]:
    """The running processes, from ``/proc``: about 10 microseconds each."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        data = _read(f"/proc/{name}/stat") or b""
        # "pid (command) state parent group session ...": a command may hold blanks and brackets.
        fields = data[data.rfind(b")") + 2 :].split(b" ", 20)
        if len(fields) < 20 or fields[0] in b"ZXx":
            continue
        yield Process(int(name), int(fields[1]), int(fields[2]), int(fields[3]), float(fields[19]))


def processes_by_psutil() -> Iterator[Process]:
    """The running processes, on systems without ``/proc``."""
    import psutil

    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            pid = process.pid
            yield Process(
                pid, process.ppid(), os.getpgid(pid), os.getsid(pid), process.create_time()
            )
        except (psutil.Error, OSError):  # ended meanwhile, or not ours to look at
            continue


def environment_of(pid: int) -> bytes | None:
    """What it was started with: ``A=1`` each ended by NUL; None when it cannot be read."""
    if _LINUX:
        return _read(f"/proc/{pid}/environ")
    import psutil

    try:
        values = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return None
    return "".join(f"{name}={value}\0" for name, value in values.items()).encode(
        errors="surrogateescape"
    )


def _marker_in(environment: bytes) -> bytes:
    name = f"\0{MARKER}=".encode()
    return (b"\0" + environment).partition(name)[2].partition(b"\0")[0]


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        data = os.read(descriptor, 65536)
        while data and len(data) % 4096 == 0:  # an environment may be longer than one read
            more = os.read(descriptor, 65536)
            if not more:
                break
            data += more
        return data
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _last_pid() -> int | None:
    """The process id that was given out last, or None when the system does not tell."""
    try:
        return int((_read("/proc/loadavg") or b"").split()[-1])
    except (IndexError, ValueError):
        return None
