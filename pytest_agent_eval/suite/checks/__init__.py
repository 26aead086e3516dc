"""What concerns several keys of an eval.yaml at once, checked on the data as written.

Each module reads what it needs from the raw mappings and passes over whatever has the wrong type:
that is reported by the models. So one wrong key hides no other problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.dataset import check_dataset
from pytest_agent_eval.suite.checks.execution import check_execution
from pytest_agent_eval.suite.checks.generation import check_generation
from pytest_agent_eval.suite.checks.judges import check_judges
from pytest_agent_eval.suite.checks.outputs import check_outputs
from pytest_agent_eval.suite.checks.permissions import check_permissions
from pytest_agent_eval.suite.checks.reward import check_reward
from pytest_agent_eval.suite.checks.runner import check_runner
from pytest_agent_eval.suite.checks.settings import check_settings
from pytest_agent_eval.suite.checks.thresholds import check_thresholds
from pytest_agent_eval.suite.checks.tools import check_tools
from pytest_agent_eval.suite.findings import Findings, block
from pytest_agent_eval.suite.known import Known

__all__ = ["check"]


def check(data: Mapping[str, Any], findings: Findings, known: Known, directory: str) -> None:
    """Run every check; ``directory`` is the suite's own."""
    check_dataset(data, findings)
    check_execution(data, findings, known)
    check_runner(block(data, "runner"), ("runner",), findings, known)
    check_settings(data, findings, directory)
    check_permissions(data, findings)
    check_tools(data, findings)
    check_outputs(data, findings)
    check_judges(data, findings, known)
    check_thresholds(data, findings, known)
    check_reward(data, findings)
    if block(data, "mlflow").get("dataset"):
        findings.warn(("mlflow", "dataset"), "ignored: results are logged, cases are not copied")
    check_generation(data, findings, known, directory)
