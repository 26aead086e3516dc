"""The process in which models are asked, seen from ours: our own, or a fork of a shared one."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import select
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

__all__ = ["HEADER", "Child", "start"]

HEADER = 8
"""Bytes that say how long a request for a fork is; with them go its stdin, stdout and stderr."""

_RUN = "PYTEST_XDIST_TESTRUNUID"
"""Set by pytest-xdist in its workers: the same in all of one run."""
_READ_AT_IMPORT = re.compile("litellm|proxy|ssl|cert", re.IGNORECASE)
"""Variables that LiteLLM and what it imports read when they are imported, not with each call."""


class Child(Protocol):
    """A process that reads lines of JSON and writes lines of JSON."""

    @property
    def stdin(self) -> IO[str]:
        """What it reads; it ends at the end of it."""

    @property
    def stdout(self) -> IO[str]:
        """What it writes."""

    def running(self) -> bool:
        """Whether it has not ended yet."""

    def wait(self) -> str:
        """Wait for its end.

        Returns:
            Its exit status; negative for a signal.
        """

    def kill(self) -> None:
        """End it at once, if it runs."""


def start(log: IO[bytes]) -> Child:
    """Start a process.

    Args:
        log: gets its stderr.

    Raises:
        OSError: it cannot be started.
    """
    address = _address()
    if address is not None:
        with contextlib.suppress(OSError, ValueError):  # then one of our own
            return _Fork(address, log)
    return _Own(log)


class _Own:
    def __init__(self, log: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pytest_agent_eval.llm.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is ours, and not its
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin: IO[str] = self._process.stdin
        self.stdout: IO[str] = self._process.stdout

    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> str:
        return str(self._process.wait())

    def kill(self) -> None:
        if self.running():
            self._process.kill()


class _Fork:
    """A fork of the server at an address; the server is started if there is none.

    Raises:
        OSError, ValueError: there is none to be had.
    """

    def __init__(self, address: Path, log: IO[bytes]) -> None:
        self._lock = threading.Lock()
        self._status = ""
        asked = json.dumps({"environment": dict(os.environ), "directory": os.getcwd()}).encode()
        with contextlib.ExitStack() as undo:
            self._server = undo.enter_context(_connected(address))
            theirs, ours = _pipe(undo)
            reads, writes = _pipe(undo)
            # Until LiteLLM is imported nobody reads, and whoever asks should not wait for that.
            with contextlib.suppress(OSError):
                fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 2**20)
            size = len(asked).to_bytes(HEADER, "big")
            socket.send_fds(self._server, [size], [theirs, writes, log.fileno()])
            self._server.sendall(asked)
            undo.pop_all()
        os.close(theirs)
        os.close(writes)
        self.stdin: IO[str] = os.fdopen(ours, "w", encoding="utf-8")
        self.stdout: IO[str] = os.fdopen(reads, encoding="utf-8")

    def running(self) -> bool:
        self._hear(0)
        return not self._status

    def wait(self) -> str:
        while not self._status:
            self._hear(None)
        return self._status

    def kill(self) -> None:
        with self._lock:
            if not self._status:
                self._server.shutdown(socket.SHUT_WR)  # then the server does

    def _hear(self, timeout: float | None) -> None:
        """Take in the status, if the server tells it within some seconds."""
        if self._status:
            return
        waiting = select.poll()
        waiting.register(self._server, select.POLLIN)
        if not waiting.poll(None if timeout is None else timeout * 1000):
            return
        with self._lock:
            if not self._status:
                said = b""
                with contextlib.suppress(OSError):
                    said = self._server.recv(64)
                self._status = said.decode() or "unknown"  # where the server itself has ended
                self._server.close()


def _pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        undo.callback(os.close, end)
    return ends


def _address() -> Path | None:
    """Where the server of this run listens; None where nothing is shared."""
    run = os.environ.get(_RUN)
    if not run or sys.platform != "linux":
        return None
    directory = Path(tempfile.gettempdir(), f"agent-eval-{os.getuid()}")
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
    except OSError:
        return None
    # Whoever may write there may have calls made with our keys.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return None
    read = sorted(item for item in os.environ.items() if _READ_AT_IMPORT.search(item[0]))
    same = hashlib.sha256(repr((run, sys.executable, __file__, read)).encode()).hexdigest()
    return directory / same[:32]


def _connected(address: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        return _connect(address)
    with _locked(address.parent):
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return _connect(address)
        address.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            listener.listen(128)
            command = (
                '"$0" -m pytest_agent_eval.llm.fork_server "$1" < /dev/null > /dev/null 2>&1 &'
            )
            number = listener.fileno()
            # By way of a shell it is nobody's child: nobody has to wait for its end.
            subprocess.run(
                ["sh", "-c", command, sys.executable, str(number)],
                pass_fds=[number],
                start_new_session=True,
                check=True,
            )
        return _connect(address)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    number = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _connect(address: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(address))
    except OSError:
        connection.close()
        raise
    return connection
