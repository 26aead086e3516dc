"""``dataset``: the answer key stays behind, rules have one key, the condition compiles."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.checks.sources import check_condition
from pytest_agent_eval.suite.findings import Findings, block, entries

__all__ = ["check_dataset"]

_ANSWER_KEY = re.compile(r"(annotations|answers)(\..*)?")


def check_dataset(data: Mapping[str, Any], findings: Findings) -> None:
    """Check what concerns more than one key of ``dataset``."""
    dataset = block(data, "dataset")
    files = block(dataset, "workspace").get("files")
    if isinstance(files, list):
        for index, entry in enumerate(files):
            if isinstance(entry, str) and _is_answer_key(entry):
                findings.problem(
                    ("dataset", "workspace", "files", index),
                    f"{entry!r} hands the agent the answer key; list single files and directories",
                )
        if files and block(data, "execution").get("mode") == "batch":
            findings.warn(
                ("dataset", "workspace", "files"), "ignored in mode batch: cases share a workspace"
            )
    for index, rule in entries(dataset, "cases"):
        given = [key for key in ("include", "exclude") if rule.get(key) is not None]
        if len(given) != 1:
            message = "must be exactly one of {include: glob} and {exclude: glob}"
            findings.problem(("dataset", "cases", index), message)
    check_condition(dataset.get("if"), "dataset", ("dataset", "if"), findings)
    if block(dataset, "split").get("sealed") is True:
        _check_sealed(data, findings)


def _check_sealed(data: Mapping[str, Any], findings: Findings) -> None:
    place = ("dataset", "split", "sealed")
    if block(block(data, "dataset"), "split").get("ledger") is False:
        findings.problem(
            place, "a sealed half needs the ledger, in which opening it is recorded: remove ledger"
        )
    variants = block(data, "variants")
    executions = [block(data, "execution")]
    executions += [block(block(variants, name), "execution") for name in variants]
    if any(execution.get("mode") == "batch" for execution in executions):
        findings.problem(
            place, "not in mode batch, where one agent works on the cases of both halves at once"
        )


def _is_answer_key(entry: str) -> bool:
    """Whether an entry is the case directory itself or one of its answer files."""
    # File systems may fold case and compose characters, so every spelling counts.
    folded = unicodedata.normalize("NFKC", entry).casefold().replace("\\", "/")
    if not folded.strip() or folded.startswith(("/", "~")):
        return False  # reported as a path
    parts = [part.strip().rstrip(".") for part in folded.split("/")]
    parts = [part for part in parts if part]
    if ".." in folded.split("/"):
        return False  # reported as a path
    return not parts or (len(parts) == 1 and _ANSWER_KEY.fullmatch(parts[0]) is not None)
