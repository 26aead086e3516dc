"""eval.yaml: the models of its blocks, its checks, and :func:`load_suite`.

The names are imported when they are first used: telling whether a file is a suite at all needs
neither pydantic nor the models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agent_eval.suite.judge_models import missing_models
    from pytest_agent_eval.suite.known import BUILTIN_RUNNER_TYPES, Known
    from pytest_agent_eval.suite.load import load_suite
    from pytest_agent_eval.suite.models.execution import ExecutionConfig
    from pytest_agent_eval.suite.models.judge import JudgeConfig
    from pytest_agent_eval.suite.models.runner import RunnerConfig
    from pytest_agent_eval.suite.models.suite import SuiteConfig
    from pytest_agent_eval.suite.models.threshold import ThresholdConfig
    from pytest_agent_eval.suite.recognise import Recognition, is_suite
    from pytest_agent_eval.suite.suite import Suite
    from pytest_agent_eval.suite.unsupported import unsupported

__all__ = [
    "BUILTIN_RUNNER_TYPES",
    "ExecutionConfig",
    "JudgeConfig",
    "Known",
    "Recognition",
    "RunnerConfig",
    "Suite",
    "SuiteConfig",
    "ThresholdConfig",
    "is_suite",
    "load_suite",
    "missing_models",
    "unsupported",
]

_HOMES = {
    "BUILTIN_RUNNER_TYPES": "known",
    "ExecutionConfig": "models.execution",
    "JudgeConfig": "models.judge",
    "Known": "known",
    "Recognition": "recognise",
    "RunnerConfig": "models.runner",
    "Suite": "suite",
    "SuiteConfig": "models.suite",
    "ThresholdConfig": "models.threshold",
    "is_suite": "recognise",
    "load_suite": "load",
    "missing_models": "judge_models",
    "unsupported": "unsupported",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
