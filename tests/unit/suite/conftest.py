from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_agent_eval.errors import SuiteError
from pytest_agent_eval.suite import Known, Suite, load_suite

Load = Callable[..., Suite]
Problems = Callable[..., dict[str, str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a suite from its text, without the dataset block unless it has one."""

    def load(text: str, known: Known | None = None) -> Suite:
        text = textwrap.dedent(text)
        if "dataset:" not in text:
            text = f"dataset: {{path: cases}}\n{text}"
        return load_suite(tmp_path / "eval.yaml", rootdir=tmp_path, text=text, known=known)

    return load


@pytest.fixture
def problems(load: Load) -> Problems:
    """Path -> message of all problems of a text."""

    def problems(text: str, known: Known | None = None) -> dict[str, str]:
        with pytest.raises(SuiteError) as caught:
            load(text, known)
        found = caught.value.problems
        assert len({problem.path for problem in found}) == len(found), str(caught.value)
        return {problem.path: problem.message for problem in found}

    return problems


@pytest.fixture
def warnings_of(load: Load) -> Problems:
    """Path -> message of all warnings of a text that loads."""

    def warnings_of(text: str, known: Known | None = None) -> dict[str, str]:
        return {warning.path: warning.message for warning in load(text, known).warnings}

    return warnings_of
