"""Evaluate AI agents with pytest: suites of cases, verdicts as assertions, gates.

The public names are imported when they are first used, so that a project that only has the
plugin installed pays for nothing.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case
    from pytest_agent_eval.errors import AgentEvalError, JudgeError, RunnerError
    from pytest_agent_eval.judges.base import Judge, JudgeContext, JudgeKind
    from pytest_agent_eval.results import TrialResult, Usage, Verdict
    from pytest_agent_eval.runners.base import Execution, Runner, RunnerContext, RunnerType, Task

    __version__: str

__all__ = [
    "AgentEvalError",
    "Case",
    "Execution",
    "Judge",
    "JudgeContext",
    "JudgeError",
    "JudgeKind",
    "Runner",
    "RunnerContext",
    "RunnerError",
    "RunnerType",
    "Task",
    "TrialResult",
    "Usage",
    "Verdict",
    "__version__",
]

_HOMES = {
    "AgentEvalError": "errors",
    "Case": "cases",
    "Execution": "runners.base",
    "Judge": "judges.base",
    "JudgeContext": "judges.base",
    "JudgeError": "errors",
    "JudgeKind": "judges.base",
    "Runner": "runners.base",
    "RunnerContext": "runners.base",
    "RunnerError": "errors",
    "RunnerType": "runners.base",
    "Task": "runners.base",
    "TrialResult": "results",
    "Usage": "results",
    "Verdict": "results",
}

_INSIDE = f"{__name__}."


class _Finder:
    """Loads this package's modules as Python does, and not as pytest loads those of a plugin.

    pytest rewrites their assertions, of which there are none here. Its loader takes half as long
    again, does not use what an installer compiled, and parses source, which CPython 3.11 cannot do
    in two threads at once.
    """

    @staticmethod
    def find_spec(name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """As ``importlib.abc.MetaPathFinder.find_spec``."""
        return PathFinder.find_spec(name, path, target) if name.startswith(_INSIDE) else None


sys.meta_path.insert(0, _Finder)


def __getattr__(name: str) -> Any:
    from importlib import import_module, metadata

    if name == "__version__":
        try:
            return metadata.version("pytest-agent-eval")
        except metadata.PackageNotFoundError:  # a source tree that was never installed
            return "0+unknown"
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
