"""Programs that stand in for agent tools: they print what the real ones once printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
"""Recorded by ``tests/live``."""

_SCRIPT = """\
#!{python} -IS
import json, os, sys, time
with open({asked!r}, "w") as stream:
    json.dump({{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}, stream)
sys.stdout.write(open({printed!r}, encoding="utf-8").read())
sys.stdout.flush()
sys.stderr.write({stderr!r})
time.sleep({seconds!r})
sys.exit({status!r})
"""


@dataclass(frozen=True)
class FakeTool:
    """An installed program.

    Attributes:
        directory: for ``PATH``.
        asked: the file in which the program leaves what it was started with.
    """

    directory: Path
    asked: Path

    @property
    def path(self) -> str:
        """A ``PATH`` in which it comes first."""
        return f"{self.directory}{os.pathsep}{os.environ.get('PATH', os.defpath)}"

    @property
    def argv(self) -> list[str]:
        return list(self._asked()["argv"])

    @property
    def env(self) -> Mapping[str, str]:
        return dict(self._asked()["env"])

    @property
    def cwd(self) -> str:
        return str(self._asked()["cwd"])

    def option(self, name: str) -> str:
        """What follows an option."""
        return self.argv[self.argv.index(name) + 1]

    def options(self, name: str) -> list[str]:
        """What follows each occurrence of an option."""
        argv = self.argv
        return [argv[at + 1] for at, word in enumerate(argv) if word == name]

    def _asked(self) -> Any:
        return json.loads(self.asked.read_text())


def install(
    directory: Path,
    program: str,
    printed: str,
    *,
    status: int = 0,
    stderr: str = "",
    seconds: float = 0.0,
) -> FakeTool:
    """A program that prints a text and ends.

    Args:
        directory: made if it does not exist.
        program: its name.
        printed: to stdout; a name without a line break is that of a fixture.
        status: exit status.
        stderr: what it prints there.
        seconds: that it waits before it ends.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if printed and "\n" not in printed:
        printed = (FIXTURES / f"{printed}.jsonl").read_text(encoding="utf-8")
    asked, text = directory / f"{program}.asked", directory / f"{program}.printed"
    text.write_text(printed, encoding="utf-8")
    script = directory / program
    script.write_text(
        _SCRIPT.format(
            python=sys.executable,
            asked=str(asked),
            printed=str(text),
            stderr=stderr,
            seconds=seconds,
            status=status,
        )
    )
    script.chmod(0o755)
    return FakeTool(directory, asked)
