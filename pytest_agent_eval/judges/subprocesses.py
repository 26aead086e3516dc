"""Starting a judge's own program: with nothing of the agent's, and nothing left behind.

Judges may not use the runners' room, so the little they need to run a program is here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import psutil

__all__ = ["Reply", "bwrap_prefix", "run_program"]

_MAX_OUTPUT = 1024 * 1024
_END = b"\nend\n"


class Reply:
    """What a program wrote to its standard output.

    Attributes:
        output: at most 1 MiB of it.
        timed_out: it neither said ``end`` on a line of its own nor ended in time.
        status: its exit status if it ended by itself, else None.
    """

    def __init__(self, output: bytes, timed_out: bool, status: int | None) -> None:
        self.output = output
        self.timed_out = timed_out
        self.status = status


def run_program(command: Sequence[str], given: bytes, *, cwd: str, timeout: float) -> Reply:
    """Run a program in its own session until it says ``end``, ends, or its time is up.

    All its descendants are killed afterwards. It gets a fixed ``PATH`` and no other variable of
    this process's environment.

    Args:
        command: the program and its arguments.
        given: its standard input.
        cwd: its working directory, also its ``HOME`` and ``TMPDIR``.
        timeout: seconds.
    """
    env = {"PATH": "/usr/bin:/bin", "HOME": cwd, "TMPDIR": cwd, "LANG": "C.UTF-8"}
    with tempfile.TemporaryFile() as stdin:  # not a pipe: nothing has to pump it
        stdin.write(given)
        stdin.seek(0)
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        output, timed_out = _read(process, timeout)
        status = process.poll()
        if status is None and not timed_out and not output.endswith(_END):
            status = _wait(process)  # its output ended, so it is about to end itself
    finally:
        _kill_tree(process)
    return Reply(output, timed_out, status)


def bwrap_prefix(writable: str, hidden: Sequence[str]) -> list[str]:
    """The start of a bubblewrap command line; empty where bubblewrap is not usable.

    No network, no view of other processes, everything read-only but ``writable``, ``hidden``
    directories empty (those that hold the interpreter or this package stay visible).
    """
    bwrap = _usable_bwrap()
    if not bwrap:
        return []
    prefix = [bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/",
              "--dev", "/dev", "--proc", "/proc"]  # fmt: skip
    needed = [os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, __file__, writable)]
    for path in map(os.path.realpath, hidden):
        if os.path.isdir(path) and not any(
            (item + os.sep).startswith(path + os.sep) for item in needed
        ):
            prefix += ["--tmpfs", path]
    return [*prefix, "--bind", writable, writable, "--chdir", writable, "--"]


@functools.cache
def _usable_bwrap() -> str:
    """Path of a bubblewrap that works here; a fact of the machine, so found out once."""
    bwrap = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")
    if not bwrap:
        return ""
    trial = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
             "true"]  # fmt: skip
    try:
        done = subprocess.run(trial, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return bwrap if done.returncode == 0 else ""


def _read(process: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bool]:
    """Output until its end or the word ``end``, and whether the time was up before."""
    assert process.stdout is not None
    deadline = time.monotonic() + timeout
    output = b""
    with selectors.DefaultSelector() as selector, process.stdout as stream:
        selector.register(stream, selectors.EVENT_READ)
        while len(output) < _MAX_OUTPUT:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                return output, True
            chunk = os.read(stream.fileno(), 65536)
            output += chunk
            if not chunk or output.endswith(_END):
                break
    return output, False


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return None


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill the program, its process group, and descendants that left the group."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
