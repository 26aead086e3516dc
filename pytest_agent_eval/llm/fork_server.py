"""A process that has imported LiteLLM, and from which those of pytest-xdist's workers are forked.

The import takes seconds and 200 MB; with a worker for each core it would keep all of them busy.
The server is started by the worker that first asks a model, and ends with the last that did.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
from dataclasses import dataclass
from typing import Any

from pytest_agent_eval.llm.child import HEADER
from pytest_agent_eval.llm.provider import load

__all__ = ["main"]

_PATIENCE_S = 5.0
"""For a client to say what it wants."""


def main(listener: socket.socket) -> None:
    """Serve until nobody needs a child any more.

    Args:
        listener: a Unix socket that listens at an address.
    """
    with contextlib.suppress(Exception):  # each child tries it again, and says what is wrong
        load()
    _Server(listener).serve()


@dataclass(frozen=True)
class _Child:
    pid: int
    ends: int
    """A descriptor that can be read when it has ended."""
    client: socket.socket


class _Server:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(listener, selectors.EVENT_READ)
        self._children: set[_Child] = set()

    def serve(self) -> None:
        """Until the last child has ended."""
        served = False
        while self._children or not served:
            for key, _ in self._waiting.select():
                if key.data is None:
                    served = True
                    self._admit()
                elif key.fileobj is key.data.client:
                    self._left(key.data)
                else:
                    self._ended(key.data)
            if served and not self._children:
                # From here on nobody can come; who has come just before must not be turned away.
                with contextlib.suppress(OSError):
                    os.unlink(self._listener.getsockname())
                self._listener.settimeout(0)
                self._admit()

    def _admit(self) -> None:
        """Fork a child for the next client; without one if it has gone, or makes no sense."""
        with contextlib.suppress(OSError, ValueError):
            client, _ = self._listener.accept()
            client.settimeout(_PATIENCE_S)
            header, streams, _, _ = socket.recv_fds(client, HEADER, 3)
            try:
                asked = json.loads(_exactly(client, int.from_bytes(header, "big")))
                pid = os.fork()
                if not pid:
                    self._become(client, streams, asked)
            finally:
                for stream in streams:
                    os.close(stream)
            child = _Child(pid, os.pidfd_open(pid), client)
            self._children.add(child)
            self._waiting.register(client, selectors.EVENT_READ, child)
            self._waiting.register(child.ends, selectors.EVENT_READ, child)

    def _become(self, client: socket.socket, streams: list[int], asked: dict[str, Any]) -> None:
        """Go on as the process that a client wants."""
        from pytest_agent_eval.llm.worker import main as work

        try:
            self._waiting.close()
            self._listener.close()
            client.close()
            for child in self._children:
                os.close(child.ends)
                child.client.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.environ.clear()
            os.environ.update(asked["environment"])
            os.chdir(asked["directory"])
            sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
            work()
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
        finally:
            os._exit(1)

    def _left(self, child: _Child) -> None:
        """A client has no more use for its child; it says nothing after its first words."""
        self._waiting.unregister(child.client)
        os.kill(child.pid, signal.SIGKILL)

    def _ended(self, child: _Child) -> None:
        self._waiting.unregister(child.ends)
        with contextlib.suppress(KeyError):
            self._waiting.unregister(child.client)
        self._children.remove(child)
        os.close(child.ends)
        status = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        with contextlib.suppress(OSError), child.client:  # nobody wants to know
            child.client.sendall(b"%d" % status)


def _exactly(client: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = client.recv(min(size, 2**16))
        if not part:
            raise OSError("a client that went away")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
