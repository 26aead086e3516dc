"""``runner.sandbox``: keeping an agent's process to its workspace, with bubblewrap (``bwrap``)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.runners.base import RunnerContext
from pytest_agent_eval.runners.sandbox_view import Mount, View, program_mounts, view_of

__all__ = ["Bubblewrap", "Sandbox", "find_bubblewrap", "may_pass", "sandbox_of"]

_INSTALL = "install it (apt-get install bubblewrap, dnf install bubblewrap), or use sandbox: none"
_TRY_S = 20.0
_ALWAYS = (
    *("--unshare-user-try", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    # Without this root could take the mounts away that hide something.
    *("--cap-drop", "ALL"),
    *("--die-with-parent", "--new-session"),
)
_PROCESSES = (
    ("--unshare-pid", "--proc", "/proc"),
    # Some containers forbid to mount /proc. That of the machine would lead out of the sandbox.
    ("--unshare-pid", "--tmpfs", "/proc"),
)


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Whether and how ``bwrap`` works here.

    Attributes:
        program: absolute path of ``bwrap``; empty when it does not work.
        options: those that work for processes and ``/proc``.
        problem: why it does not work, or empty.
    """

    program: str = ""
    options: tuple[str, ...] = ()
    problem: str = ""


def find_bubblewrap(path: str | None = None) -> Bubblewrap:
    """Try ``bwrap`` once, which takes some milliseconds.

    Args:
        path: where to look for it; None for the ``PATH`` of this process.
    """
    program = shutil.which("bwrap", path=path)
    if program is None:
        return Bubblewrap(problem="bwrap: not installed")
    problem = ""
    for options in _PROCESSES:
        argv = [program, *_ALWAYS, "--unshare-net", "--ro-bind", "/", "/", *options, "--dev"]
        try:
            done = subprocess.run(
                [*argv, "/dev", "true"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TRY_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Bubblewrap(problem=f"bwrap: {error}")
        if done.returncode == 0:
            return Bubblewrap(os.path.abspath(program), options)
        said = done.stderr.decode("utf-8", "replace").strip() or f"exit status {done.returncode}"
        problem = problem or (said if said.startswith("bwrap") else f"bwrap: {said}")
    return Bubblewrap(problem=problem)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Puts commands into a sandbox: argv in, argv out. Used from several threads.

    Attributes:
        description: one sentence for people, such as ``sandbox: bubblewrap``.
        bubblewrap: None where commands are left as they are.
        view: what agents see.
        network: whether agents may reach the network.
    """

    description: str = ""
    bubblewrap: Bubblewrap | None = None
    view: View = field(default_factory=lambda: View(()))
    network: bool = False

    def __bool__(self) -> bool:
        """Whether commands are put into a sandbox at all."""
        return self.bubblewrap is not None

    def wrap(
        self, argv: Sequence[str], *, workspace: str, log_dir: str, path: str = ""
    ) -> list[str]:
        """The command, in the sandbox.

        Args:
            argv: the command, which is not empty, and its arguments.
            workspace: its working directory, and all that it may write to (absolute).
            log_dir: where its logs go (absolute); hidden from it.
            path: the agent's ``PATH``.

        Raises:
            FileNotFoundError: there is no such command.
            PermissionError: it is not executable.
        """
        if self.bubblewrap is None:
            return list(argv)
        program = _locate(argv[0], workspace, path)
        words = [self.bubblewrap.program, *_ALWAYS]
        if not self.network:
            words.append("--unshare-net")
        words += ("--ro-bind", "/", "/")
        # Those of the machine are covered first, so that what is shown below them comes after.
        words += (*self.bubblewrap.options, "--dev", "/dev")
        mounts = self.view.mounts_of(workspace, log_dir, program_mounts(program))
        for mount in mounts:
            words += _option(mount)
        for mount in mounts:
            if mount.kind == "hidden":
                words += ("--remount-ro", mount.place)
        return [*words, "--chdir", workspace, "--", *argv]

    def failure(self, stderr: str) -> str:
        """What ``bwrap`` said when it could not start the command; empty when it could.

        Args:
            stderr: error output of a command that ended with exit status 1 and no output.
        """
        said = stderr.strip()
        if not said.startswith("bwrap: ") or "\n" in said:
            return ""
        return (
            f"the sandbox could not start the command: {said}; if it needs something that the "
            "sandbox hides, such as an interpreter in a home, list it in runner.settings.readable"
        )


def sandbox_of(
    context: RunnerContext, env: Mapping[str, str], *, bubblewrap: Bubblewrap | None = None
) -> Sandbox:
    """The sandbox that a suite asks for.

    Args:
        context: of the runner; ``runner.sandbox``, and of ``runner.settings`` the keys
            ``network`` (true or false), ``readable`` and ``hidden`` (lists of paths).
        env: variables of its agents.
        bubblewrap: what :func:`find_bubblewrap` found; None to look now, if it is needed.

    Raises:
        RunnerError: it is asked for and does not work here.
    """
    runner = context.suite.config.runner
    if runner.sandbox == "none":
        return Sandbox()
    network = runner.settings.get("network", False)
    readable, hidden = (runner.settings.get(name, ()) for name in ("readable", "hidden"))
    found = bubblewrap or find_bubblewrap()
    if found.problem:
        if runner.sandbox == "auto":
            return Sandbox(f"sandbox: none ({found.problem})")
        missing = found.problem == "bwrap: not installed"
        hint = _INSTALL if missing else "use sandbox: none if the agent may run without one"
        raise RunnerError(
            f"runner.sandbox: bubblewrap does not work here: {found.problem}; {hint}",
            lasting=not may_pass(found.problem),
        )
    view = view_of(context.suite, str(context.rootdir), env, readable=readable, hidden=hidden)
    opened = ", with network" if network else ""
    return Sandbox(f"sandbox: bubblewrap{opened}", found, view, network)


def may_pass(problem: str) -> bool:
    """Whether what ``bwrap`` said is of this moment: too many processes, a machine too busy."""
    return "temporarily unavailable" in problem or "timed out" in problem


def _option(mount: Mount) -> tuple[str, ...]:
    if mount.kind == "writable":
        return ("--bind", mount.source, mount.place)
    if mount.kind == "shown":
        # What is gone by now, or is in a directory that the user may not enter, is left out.
        return ("--ro-bind-try", mount.source, mount.place)
    if mount.kind == "masked":
        # Devices cannot be opened through such a mount: permission denied.
        return ("--ro-bind", os.devnull, mount.place)
    return ("--tmpfs", mount.place)


def _locate(command: str, workspace: str, path: str) -> str:
    """Absolute path of the program. bwrap itself says too little about one that is missing."""
    found = shutil.which(
        os.path.join(workspace, command) if "/" in command else command, path=path or os.defpath
    )
    if found is not None:
        return os.path.join(workspace, found)
    if "/" in command and os.path.exists(os.path.join(workspace, command)):
        raise PermissionError(13, "Permission denied", command)
    raise FileNotFoundError(2, "No such file or directory", command)
