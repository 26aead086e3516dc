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
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["MARKER", "Process", "ProcessTree", "processes_by_proc", "processes_by_psutil"]

MARKER = "AGENT_EVAL_TRIAL"

_LINUX = sys.platform.startswith("linux")

_QUICK_S = 5.0
"""Below this many seconds process ids cannot have wrapped around, see ``left_something``."""

_QUICK_RANGE = 256

_EXEC_S = 0.001
"""A process has no environment for some microseconds while it becomes another program."""


class Process(NamedTuple):
    """One running process. ``started`` tells a process from a later one with the same id."""

    pid: int
    parent: int
    group: int
    session: int
    started: float


class ProcessTree:
    """The processes of one trial.

    Args:
        root: id of the first process, which leads its own session and group.
        marker: value of the marker variable in the environment; empty when there is none.
        wrapped: the first process only holds the agent's, and ends them without mercy if it gets
            SIGTERM: it gets SIGKILL alone, and ends by itself when they have ended.
        processes: lists the running processes of the machine, zombies left out.
    """

    def __init__(
        self,
        root: int,
        marker: str = "",
        *,
        wrapped: bool = False,
        processes: Callable[[], Iterator[Process]] | None = None,
    ) -> None:
        self.root = root
        self.marker = marker
        self._wrapped = wrapped
        self._marker = f"\0{MARKER}={marker}\0".encode() if marker else b""
        self._processes = processes or _default_processes()
        self._known: dict[int, float] = {}
        self._signalled: set[tuple[int, float, int]] = set()
        self._root_started: float | None = None

    def record(self) -> None:
        """Remember who belongs to the tree now; found again later wherever they moved."""
        for process in self.members():
            self._known[process.pid] = process.started

    def members(self) -> list[Process]:
        """The running processes of the tree; this process itself is never one."""
        running = {process.pid: process for process in self._processes()}
        me, my_session = os.getpid(), os.getsid(0)
        root = running.get(self.root)
        if root is not None and self._root_started is None:
            self._root_started = root.started
        belongs: set[int] = set()
        sessions = {self.root}
        for process in running.values():
            if process.pid != me and self._is_ours(process):
                belongs.add(process.pid)
                sessions.add(process.session)
        sessions.discard(my_session)
        grown = True
        while grown:
            grown = False
            for process in running.values():
                if process.pid in belongs or process.pid == me:
                    continue
                if process.parent in belongs or process.session in sessions:
                    belongs.add(process.pid)
                    if process.session != my_session:
                        sessions.add(process.session)
                    grown = True
        return [running[pid] for pid in belongs]

    def signal(self, number: int) -> list[Process]:
        """Send a signal to every member and return them; SIGKILL each time, others only once."""
        members = self.members()
        spared = self._wrapped and number != signal.SIGKILL
        if not spared and any(process.group == self.root for process in members):
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

    def left_something(self, seconds: float) -> bool:
        """Whether anything may be left after the first process ended (and was waited for).

        Costs a few system calls when nothing is left: the group is empty, and of the process
        ids given out since then (Linux tells the last one) none carries the marker.

        Args:
            seconds: how long the first process ran.
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
        return any(self._carries_marker(pid) for pid in range(self.root + 1, last + 1) if pid != me)

    def _is_ours(self, process: Process) -> bool:
        if process.session == self.root or process.pid == self.root:
            return True
        if self._known.get(process.pid) == process.started:
            return True
        if self._root_started is not None and process.started < self._root_started:
            return False
        return bool(self._marker) and self._carries_marker(process.pid)

    def _carries_marker(self, pid: int) -> bool:
        environment = environment_of(pid)
        if environment == b"":  # most likely it is just being replaced by another program
            time.sleep(_EXEC_S)
            environment = environment_of(pid)
        return environment is not None and self._marker in b"\0" + environment + b"\0"

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
