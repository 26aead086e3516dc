"""``outputs``: exactly one of path and tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.findings import Findings, block, entries

__all__ = ["check_outputs"]


def check_outputs(data: Mapping[str, Any], findings: Findings) -> None:
    """Check what concerns more than one key of an output."""
    batch = block(data, "execution").get("mode") == "batch"
    for index, output in entries(data, "outputs"):
        given = [key for key in ("path", "tool") if output.get(key) is not None]
        if len(given) != 1:
            found = "both are set" if given else "neither is set"
            findings.problem(("outputs", index), f"needs exactly one of path and tool; {found}")
        if output.get("batch_pattern") and not batch:
            findings.warn(("outputs", index, "batch_pattern"), "ignored: the mode is not batch")
