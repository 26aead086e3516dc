from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.execution.execution_bench import Bench, Snapshot, write_case


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """The directory of one case."""
    return write_case(tmp_path / "case")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.add_case()
    return bench


@pytest.fixture
def snapshot(tmp_path: Path) -> Callable[[Path], Snapshot]:
    """Content and mtime of each file below a directory."""

    def take(directory: Path) -> Snapshot:
        return {
            str(path): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(directory.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }

    return take
