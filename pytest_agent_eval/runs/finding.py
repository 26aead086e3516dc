"""Which run a person means."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.reader import RESULTS, latest_run

__all__ = ["find_run", "run_names"]

_SHOWN = 3


def run_names(directory: Path) -> list[str]:
    """The runs kept in a directory, newest first; none if it is not there.

    A run is a directory that holds ``run.json`` or results, of workers too, whatever it is called.
    """
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if _is_run(entry)]
    except OSError:
        return []
    return sorted(names, reverse=True)


def _is_run(entry: os.DirEntry[str]) -> bool:
    return (
        not entry.name.startswith(".")
        and not entry.is_symlink()
        and entry.is_dir()
        and is_run(Path(entry.path))
    )


def is_run(path: Path) -> bool:
    """Whether a directory is a run; also where it was killed before it got its ``run.json``."""
    if (path / "run.json").is_file() or (path / RESULTS).is_file():
        return True
    return next(path.glob("results-*.jsonl"), None) is not None


def find_run(directory: Path, text: str = "") -> Path:
    """The run that a text means.

    Args:
        directory: where runs are kept.
        text: empty or ``latest``: the newest; a run's name; the beginning of one name only; or a
            path to a run, absolute or relative to the current directory.

    Raises:
        RunDirectoryError: no run is meant, or several; names those that are near.
    """
    if text in ("", "latest"):
        return _latest(directory)
    names = run_names(directory)
    if text in names:
        return (directory / text).absolute()
    starting = [name for name in names if name.startswith(text)]
    if len(starting) == 1:
        return (directory / starting[0]).absolute()
    if starting:
        message = f"{text} is the beginning of {len(starting)} runs: {_some(starting)}"
        raise RunDirectoryError(message)
    path = Path(text).expanduser()
    if _looks_like_path(text) or path.is_dir():
        return _at(path)
    near = difflib.get_close_matches(text, names, n=_SHOWN, cutoff=0.6)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif names:
        hint = f"the newest there {'is' if len(names) == 1 else 'are'} {_some(names)}"
    else:
        hint = "no run is stored there yet"
    raise RunDirectoryError(f"no run named {text} in {directory}; {hint}")


def _latest(directory: Path) -> Path:
    try:
        path = latest_run(directory)
    except RunDirectoryError:
        path = None
    if path is not None and is_run(path):
        return path.absolute()
    names = run_names(directory)
    if not names:
        raise RunDirectoryError(f"no run is stored in {directory}")
    return (directory / names[0]).absolute()


def _looks_like_path(text: str) -> bool:
    return os.sep in text or text.startswith((".", "~"))


def _at(path: Path) -> Path:
    if path.is_dir() and is_run(path):
        return path.resolve()
    if not os.path.lexists(path):
        raise RunDirectoryError(f"{path}: there is no such run")
    raise RunDirectoryError(f"{path}: not a run: it holds neither run.json nor {RESULTS}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
