"""Starting a process, and saying why it cannot be started."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.descriptors import limit, make_more_room, make_room

__all__ = ["cannot_start", "start"]

_PASSING = frozenset(
    {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETXTBSY, errno.EINTR, errno.EIO}
)
"""Reasons that may be gone in a moment: all others are of the command itself."""

_EACH = 5
"""Descriptors: two pipes, two logs, and one that tells the end of the process."""


def start(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """The process, in a session of its own, with empty stdin and pipes for its output.

    Raises:
        RunnerError: it cannot be started.
    """
    if not argv or not argv[0]:
        raise RunnerError("the command is empty", lasting=True)
    while True:
        try:
            make_room()
            return subprocess.Popen(
                list(argv),
                bufsize=0,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.EMFILE and make_more_room():
                continue
            raise cannot_start(error, argv, cwd, env) from None


def cannot_start(
    error: OSError | ValueError, argv: Sequence[str], cwd: str, env: Mapping[str, str]
) -> RunnerError:
    """What a person is told when ``argv`` cannot be started because of ``error``."""
    passing = isinstance(error, OSError) and error.errno in _PASSING
    return RunnerError(_explain(error, argv, cwd, env), lasting=not passing)


def _explain(
    error: OSError | ValueError, argv: Sequence[str], cwd: str, env: Mapping[str, str]
) -> str:
    command = argv[0]
    if isinstance(error, ValueError):
        return f"the command {command!r} cannot be started: {error}"
    if not os.path.isdir(cwd):
        return f"the command {command!r} cannot be started: no directory {cwd}"
    if error.errno == errno.ENOENT:
        if "/" in command:
            if os.path.exists(os.path.join(cwd, command)):
                return f"the command {command!r} names an interpreter that does not exist (#! line)"
            return f"the command {command!r} does not exist"
        path = env.get("PATH", os.defpath)
        return (
            f"the command {command!r} was not found; PATH of the agent is {path}; a program beside "
            f"the suite is named ./{command}"
        )
    if error.errno == errno.E2BIG:
        longest = max(len(os.fsencode(word)) for word in argv)
        return (
            f"the command line of {command!r} is too long: its longest argument has "
            f"{longest:,} bytes; let the agent read the input file instead"
        )
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            f"the command {command!r} cannot be started: {error.strerror}; this process may open "
            f"{limit()}, and each agent at work needs about {_EACH}: allow more (ulimit -n) or "
            "run fewer at once"
        )
    if error.errno == errno.EAGAIN:
        return (
            f"the command {command!r} cannot be started: the user may run no more processes; "
            "allow more (ulimit -u) or run fewer at once"
        )
    if error.errno == errno.ENOEXEC:
        return f"the command {command!r} is no program the system can run; a script needs a #! line"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"the command {command!r} is not executable ({error.strerror}); try chmod +x"
    return f"the command {command!r} cannot be started: {error.strerror or error}"
