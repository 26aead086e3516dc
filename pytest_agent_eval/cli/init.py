"""``agent-eval init``: a starter suite that runs as it is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

__all__ = ["STARTER", "init"]

STARTER = Path(__file__).with_name("starter")


def init(directory: str) -> int:
    """Copy the starter suite into a directory that has no suite yet; existing files stay.

    Raises:
        OSError: the directory cannot be written.
    """
    target = Path(directory)
    files = sorted(path for path in STARTER.rglob("*") if _is_content(path))
    taken = [path for path in files if (target / path.relative_to(STARTER)).exists()]
    if taken:
        names = ", ".join(str(target / path.relative_to(STARTER)) for path in taken[:3])
        print(
            f"agent-eval init: nothing written, because {names} exists; name another directory",
            file=sys.stderr,
        )
        return 2
    for path in files:
        copy = target / path.relative_to(STARTER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        print(f"wrote {copy}")
    print(f"\nRun it:  pytest {target / 'eval.yaml'}")
    return 0


def _is_content(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts
