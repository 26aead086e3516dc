from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2  # noqa: F401 - see below
import psutil  # noqa: F401
import pytest
import simpleeval  # noqa: F401
import xxhash  # noqa: F401
import yaml

# A session in this process forgets the modules it was the first to import. Those that take long
# are imported here, once, so that each test does not pay for them again.
import pytest_agent_eval.active_suite
import pytest_agent_eval.execution.trial
import pytest_agent_eval.judges
import pytest_agent_eval.reporting
import pytest_agent_eval.runners.command
import pytest_agent_eval.runners.python
import pytest_agent_eval.suite.load  # noqa: F401
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.reader import read_results

ECHO = """\
name: echo
dataset: {path: cases}
runner: {type: cli, command: "cp input.yaml {output_dir}/copy.yaml"}
judges:
  - name: copied
    check: |
      return 'copy.yaml' in outputs['files'], 'looked for copy.yaml'
"""
"""A suite whose agent copies its input and whose judge looks for the copy."""


# Plugins that these tests have no use for and that take long to import.
_UNUSED = ("cacheprovider", "anyio", "hypothesispytest", "randomly", "rerunfailures", "timeout")
PLAIN = tuple(word for name in _UNUSED for word in ("-p", f"no:{name}"))


class Project:
    """A directory with suites and cases, and real pytest sessions over it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        pytester.makeini("[pytest]\nstrict_markers = true\nfilterwarnings = error\n")

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        # As long as before and written in the same second: Python would take the compiled one.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()
        return path

    def suite(self, text: str = ECHO, name: str = "eval.yaml") -> Path:
        return self.write(name, text)

    def case(
        self,
        name: str,
        input: Mapping[str, Any] | str | bytes | None = None,
        annotations: Mapping[str, Any] | str | bytes | None = None,
        *,
        dataset: str = "cases",
        **files: str,
    ) -> Path:
        """Write a case; files are named ``notes__md`` for notes.md."""
        directory = f"{dataset}/{name}"
        self.write(f"{directory}/input.yaml", _text({"message": name} if input is None else input))
        if annotations is not None:
            self.write(f"{directory}/annotations.yaml", _text(annotations))
        for file, text in files.items():
            self.write(f"{directory}/{file.replace('__', '.')}", text)
        return self.path / directory

    def cases(self, count: int, **annotations: Any) -> None:
        for number in range(1, count + 1):
            self.case(f"case-{number:03d}", annotations=annotations or None)

    def run(self, *arguments: str) -> pytest.RunResult:
        """A session in this process: quick."""
        return self.pytester.runpytest_inprocess(*PLAIN, *arguments)

    def subprocess(self, *arguments: str) -> pytest.RunResult:
        """A session in a process of its own, as a user has it."""
        return self.pytester.runpytest_subprocess(*PLAIN, *arguments)

    @property
    def runs(self) -> list[Path]:
        root = self.path / ".agent-eval" / "runs"
        return (
            sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
            if root.is_dir()
            else []
        )

    @property
    def latest(self) -> Path:
        assert self.runs, "no run directory was written"
        return self.runs[-1]

    def results(self) -> dict[str, TrialResult]:
        """Stored results of the latest run, by case; each case exactly once."""
        stored = read_results(self.latest)
        lines = (self.latest / "results.jsonl").read_bytes().splitlines()
        assert all(isinstance(json.loads(line), dict) for line in lines)
        results = {result.case: result for result in stored.results}
        assert len(results) == len(stored.results)
        return results

    def summary(self) -> dict[str, Any]:
        data = yaml.safe_load((self.latest / "summary.yaml").read_text(encoding="utf-8"))
        assert isinstance(data, dict)
        return data


def _text(value: Mapping[str, Any] | str | bytes) -> str | bytes:
    if isinstance(value, str | bytes):
        return value
    return yaml.safe_dump(dict(value), allow_unicode=True, sort_keys=False)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)
