"""Where the ``agent-eval`` command looks for runs."""

from __future__ import annotations

from pathlib import Path

__all__ = ["runs_directory"]

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
