"""The plugin's own hooks: implement them in a ``conftest.py`` or in a plugin of your own.

A ``conftest.py`` in a subdirectory applies to the suites below that directory only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_agent_eval.evidence.summary import Summary
    from pytest_agent_eval.judges.base import JudgeKind
    from pytest_agent_eval.reports.handler import ReportHandler
    from pytest_agent_eval.results import TrialResult
    from pytest_agent_eval.runners.base import RunnerType


def pytest_agent_eval_runner_types(config: pytest.Config) -> Mapping[str, RunnerType] | None:
    """Further values of ``runner.type``: name -> callable that makes a runner for a suite.

    A name that is already taken by the plugin replaces it.
    """


def pytest_agent_eval_judge_kinds(config: pytest.Config) -> Mapping[str, JudgeKind] | None:
    """Further judge kinds: the key that selects the kind in a judge's mapping -> its maker.

    With ``{"shell": ShellJudge}`` a suite may say ``- {name: builds, shell: make -s}``.
    """


def pytest_agent_eval_trial_finished(config: pytest.Config, result: TrialResult) -> None:
    """A trial has a stored result. Called in the process that reports, in pytest's order.

    Under pytest-xdist that is the controller. Not called for trials of a sealed holdout half.
    """


def pytest_agent_eval_report_handlers(config: pytest.Config) -> Sequence[ReportHandler] | None:
    """Further reports: each gets every trial as it ends, and the run at its end.

    Asked for once, in the process that reports, before the first result.
    """


def pytest_agent_eval_run_finished(config: pytest.Config, summary: Summary) -> None:
    """All gates are decided and the run directory is closed."""
