"""Where the ``agent-eval`` command looks for runs, and for recordings."""

from __future__ import annotations

from pathlib import Path

from pytest_agent_eval.errors import SelectionError
from pytest_agent_eval.llm.recordings import DIRECTORY

__all__ = ["recordings_directory", "runs_directory"]

_DEFAULT = Path(".agent-eval", "runs")


def runs_directory(given: str | None) -> Path:
    """The directory that was given, else ``.agent-eval/runs`` here or in a directory above.

    Nothing is made; where there is none, it is the one that would be here.
    """
    if given is not None:
        return Path(given)
    here = Path.cwd()
    for place in (here, *here.parents):
        if (place / _DEFAULT).is_dir():
            return place / _DEFAULT
    return here / _DEFAULT


def recordings_directory(place: str) -> Path:
    """The directory of the recordings beside a suite.

    Args:
        place: a suite's file, its directory, or the directory of the recordings.

    Raises:
        SelectionError: nothing is recorded there.
    """
    path = Path(place)
    directory = path.parent if path.is_file() else path
    if directory.name != DIRECTORY and (directory / DIRECTORY).is_dir():
        directory = directory / DIRECTORY
    if directory.name != DIRECTORY or not directory.is_dir():
        raise SelectionError(f"{place}: no model calls are recorded there ({DIRECTORY}/)")
    return directory
