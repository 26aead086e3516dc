"""The program that Claude Code starts before a tool call: it asks the session what to do.

Run by a bare interpreter (``python -I -S``): only the standard library, and little of it. Whatever
goes wrong ends it with another status than 0, and the command around it denies the call then.
"""

from __future__ import annotations

import socket
import sys


def main(path: str, token: str) -> None:
    """Send the call to the session and print what it answers.

    Args:
        path: of the session's socket.
        token: that the session wants to see.
    """
    call = sys.stdin.buffer.read()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as session:
        session.connect(path)
        session.sendall(token.encode() + b"\n" + call)
        session.shutdown(socket.SHUT_WR)
        with session.makefile("rb") as stream:
            answer = stream.read()
    verdict, end, text = answer.partition(b"\n")
    if verdict != b"ok" or not end:
        raise SystemExit("the session gave no answer")
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
