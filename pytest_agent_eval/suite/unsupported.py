"""What a suite needs when it runs that this version cannot do.

Loading such a suite is fine: people have them, and can check, list and select their cases.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_agent_eval.errors import Problem
from pytest_agent_eval.suite.models.runner import RunnerConfig
from pytest_agent_eval.suite.suite import Suite

__all__ = ["unsupported"]

_SANDBOXED = frozenset({"cli", "litellm", "responses-api"})
_DATASET_FILES = (".yaml", ".yml", ".json", ".jsonl")


def unsupported(suite: Suite) -> tuple[Problem, ...]:
    """One problem for each feature, each ending in ``not supported yet``; sorted by line."""
    found = [
        Problem(
            f"{what} not supported yet", path=path, file=suite.shown, line=suite.line(path) or 1
        )
        for path, what in (
            *_of_runner(suite),
            *_of_judges(suite),
            *_of_blocks(suite),
        )
    ]
    return tuple(sorted(found, key=lambda problem: problem.line or 1))


def _of_runner(suite: Suite) -> Iterator[tuple[str, str]]:
    runner = suite.config.runner
    if runner.sandbox != "none" and runner.type not in _SANDBOXED:
        yield "runner.sandbox", f"sandbox {runner.sandbox} with runner type {runner.type} is"


def _of_judges(suite: Suite) -> Iterator[tuple[str, str]]:
    for index, judge in enumerate(suite.config.judges):
        place = f"judges[{index}]"
        if judge.agent is not None and judge.kind == "agent":
            yield from _of_agent(judge.name, judge.agent.runner, f"{place}.agent.runner")


def _of_agent(judge: str, runner: RunnerConfig, place: str) -> Iterator[tuple[str, str]]:
    if runner.sandbox != "none" and runner.type not in _SANDBOXED:
        what = f"sandbox {runner.sandbox} with runner type {runner.type} is"
        yield f"{place}.sandbox", f"judge {judge}: {what}"


def _of_blocks(suite: Suite) -> Iterator[tuple[str, str]]:
    config = suite.config
    path = config.dataset.path
    if path.lower().endswith(_DATASET_FILES) and not suite.dataset_directory.is_dir():
        yield "dataset.path", "a dataset file is"
