"""One suite on disk, read by the real loader, whose trials can be run."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pytest_agent_eval.cases.case import BrokenCase, Case
from pytest_agent_eval.cases.directories import read_cases
from pytest_agent_eval.cases.split import Split
from pytest_agent_eval.execution.runtime import SuiteRuntime, TrialJudge
from pytest_agent_eval.execution.suite_hooks import SuiteHooks
from pytest_agent_eval.execution.trial import run_trial
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runners import BUILTIN, Runner, RunnerContext
from pytest_agent_eval.suite import Suite, load_suite

Snapshot = dict[str, tuple[bytes, int]]

CASE = {
    "input.yaml": "prompt: What is 6 x 7?\n",
    "annotations.yaml": "expected: the answer is forty-two\nreference: gold.txt\n",
    "gold.txt": "42\n",
    "notes.md": "# Notes\n",
    "data/a.csv": "1,2\n",
    "data/deep/annotations.yaml": "these are data\n",
}


def write_case(directory: Path, files: Mapping[str, str | bytes] = CASE) -> Path:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


class Bench:
    """One suite in a temporary directory, and what it takes to run its trials."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.suite_directory = root / "evals"
        self.dataset = self.suite_directory / "cases"
        self.config: dict[str, Any] = {
            "dataset": {"path": "cases", "workspace": {"files": ["notes.md", "data"]}},
            "runner": {"type": "cli", "command": "true"},
        }
        self.cancelled = threading.Event()
        # Agents of another process that runs these tests must not be taken for ours.
        self.run_id = f"20240101T000000-{uuid.uuid4().hex}"
        self.workspaces = root / "workspaces"
        self.runs = root / "run"

    def add_case(self, name: str = "refund_yes", files: Mapping[str, str | bytes] = CASE) -> Path:
        return write_case(self.dataset / name, files)

    def command(self, source: str, **execution: Any) -> None:
        """The agent is a shell script."""
        self.config["runner"] = {"type": "cli", "command": ["sh", "-c", source]}
        self.config.setdefault("execution", {}).update(execution)

    def case(self, name: str = "refund_yes") -> Case:
        for case in read_cases(self.dataset, Split()):
            if case.name == name:
                if isinstance(case, BrokenCase):
                    raise case.error
                return case
        raise AssertionError(f"no case {name}")

    def runtime(
        self,
        *,
        judges: Sequence[TrialJudge] = (),
        runner: Runner | None = None,
        label: str = "",
        **fixtures: Any,
    ) -> SuiteRuntime:
        file = self.suite_directory / "eval.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(self.config))
        suite = load_suite(file, rootdir=self.root)

        def make_runner(suite: Suite) -> Runner:
            context = RunnerContext(suite=suite, rootdir=self.root, fixtures=fixtures)
            return BUILTIN[suite.config.runner.type](context)

        return SuiteRuntime.of(
            suite,
            suite_key="evals/eval.yaml",
            runner=runner or make_runner(suite),
            judges=judges,
            rootdir=self.root,
            run_id=self.run_id,
            step_runner=make_runner,
            hooks=self.hooks(suite, label),
        )

    def hooks(self, suite: Suite | None = None, label: str = "") -> SuiteHooks | None:
        """What a process of the session runs around its cases; None where there are no hooks."""
        if not self.config.get("hooks"):
            return None
        file = self.suite_directory / "eval.yaml"
        return SuiteHooks(
            (suite or load_suite(file, rootdir=self.root)).config.hooks,
            suite_file=file,
            rootdir=self.root,
            run_directory=str(self.runs),
            run_id=self.run_id,
            session_id="s1",
            workspaces=str(self.workspaces),
            label=label,
            model="m-1",
        )

    def run(
        self,
        case: Case | None = None,
        trial: int = 1,
        *,
        shared: SuiteRuntime | None = None,
        **options: Any,
    ) -> TrialResult:
        self.workspaces.mkdir(exist_ok=True)
        shared = shared or self.runtime(**options)
        case = case or self.case()
        record = f"cases/{case.name}/{trial}"
        return run_trial(
            shared,
            case,
            trial,
            directory=os.path.join(self.runs, record),
            record_path=record,
            workspace_root=str(self.workspaces),
            cancelled=self.cancelled,
        )

    def stored(self, result: TrialResult) -> Path:
        return self.runs / result.record
