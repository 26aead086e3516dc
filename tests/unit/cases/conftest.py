from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_agent_eval.cases import BrokenCase, Case, Split, read_cases

WriteCase = Callable[..., Path]


class Dataset:
    """A directory of cases."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def case(
        self,
        name: str,
        annotations: str | bytes | None = None,
        input: str | bytes | None = "prompt: hello\n",
        input_name: str = "input.yaml",
    ) -> Path:
        directory = self.path / name
        directory.mkdir(parents=True, exist_ok=True)
        if input is not None:
            self.write(directory / input_name, input)
        if annotations is not None:
            self.write(directory / "annotations.yaml", annotations)
        return directory

    def write(self, path: Path, text: str | bytes) -> None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def read(self, split: Split | None = None, **options: object) -> list[Case | BrokenCase]:
        return read_cases(self.path, split or Split(), **options)  # type: ignore[arg-type]

    def one(self, name: str) -> Case:
        (case,) = [case for case in self.read() if case.name == name]
        assert isinstance(case, Case)
        return case

    def broken(self, name: str) -> str:
        (case,) = [case for case in self.read() if case.name == name]
        assert isinstance(case, BrokenCase), case
        assert str(case.error).startswith(f"{case.name}: ")
        return case.error.message


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    path = tmp_path / "cases"
    path.mkdir()
    return Dataset(path)
