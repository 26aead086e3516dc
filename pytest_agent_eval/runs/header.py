"""The header of a run: what it was made with. The same on every machine for the same work."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pytest_agent_eval.runs.ledger import ENDING

__all__ = ["git_state", "make_header"]

GIT_TIMEOUT = 0.5
"""Seconds for each of the two git commands; a header is not worth waiting for."""


def make_header(
    *,
    suites: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    rootdir: Path | None = None,
    packages: Sequence[str] = ("pytest",),
) -> dict[str, Any]:
    """What ``run.json`` starts with: suites, options, versions, git; no path of this machine.

    Args:
        suites: for each suite its ``name``, ``file`` (relative to the root directory), ``digest``.
        options: those that were set, as JSON types, without absolute paths.
        rootdir: where to ask git; None leaves git out and starts no process.
        packages: distributions whose versions are worth keeping, besides our own.
    """
    return {
        "v": 1,
        "suites": [dict(suite) for suite in suites],
        "options": dict(options),
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("pytest-agent-eval", *packages)},
        },
        "git": git_state(rootdir) if rootdir is not None else None,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def git_state(directory: Path) -> dict[str, Any] | None:
    """``{commit, dirty}`` of the checkout around a directory; None without git or a commit.

    ``dirty`` tells whether tracked files are changed; None when git takes too long to say. The
    ledgers of holdout halves do not count: each run that looks at one writes to it.
    """
    commit = _git(directory, "rev-parse", "--verify", "HEAD")
    if not commit:
        return None
    everything = (":(top)", f":(top,exclude,glob)**/*{ENDING}")
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no", "--", *everything)
    return {"commit": commit.strip(), "dirty": None if changes is None else bool(changes.strip())}


def _git(directory: Path, *words: str) -> str | None:
    # No lock: another git may be at work. No fsmonitor: a checkout's configuration runs nothing.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *words]
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
