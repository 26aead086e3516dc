"""``runner.settings``: the keys and paths that the runners of this package read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pytest_agent_eval.suite.checks.model_settings import check_model_settings
from pytest_agent_eval.suite.checks.runner import runner_type
from pytest_agent_eval.suite.findings import Findings, Place, block, entries
from pytest_agent_eval.suite.known import MODEL_RUNNERS
from pytest_agent_eval.suite.messages import nearest, shown

__all__ = ["check_settings"]

_BELOW = {"project_files": "the suite's directory", "unprotected": "the checkout"}
"""Lists of paths that may not lead out of a directory."""
_FENCES = ("readable", "hidden")
_KEYS = frozenset({*_BELOW, *_FENCES, "network"})
_STRICT = frozenset({"cli", "python"})
"""Types whose settings are all known; those of the others belong to their agents and plugins."""
_TYPO = 0.75
"""Similarity from which an unknown key is meant to be a known one: ``hide`` is ``hidden``, while
``network_policy``, of another runner, is not ``network``."""


def check_settings(data: Mapping[str, Any], findings: Findings, directory: str) -> None:
    """Check the settings of the suite's runner, and of those of steps and judges."""
    suite_runner = block(data, "runner")
    _check(suite_runner, suite_runner, ("runner",), findings, directory)
    for index, step in entries(block(data, "execution"), "steps"):
        runner = block(step, "runner")
        whole = runner
        if runner.get("type") in (None, runner_type(suite_runner)):
            whole = {**suite_runner, **runner, "type": runner_type(suite_runner)}
        _check(runner, whole, ("execution", "steps", index, "runner"), findings, directory)
    for index, judge in entries(data, "judges"):
        runner = block(block(judge, "agent"), "runner")
        _check(runner, runner, ("judges", index, "agent", "runner"), findings, directory)


def _check(
    runner: Mapping[str, Any],
    whole: Mapping[str, Any],
    place: Place,
    findings: Findings,
    directory: str,
) -> None:
    """Check a runner's own settings; ``whole`` has besides what it takes from the suite's."""
    settings, kind = block(runner, "settings"), runner_type(whole)
    place = (*place, "settings")
    _check_below(settings, place, findings)
    fenced = whole.get("sandbox") in ("bubblewrap", "auto")
    if kind in MODEL_RUNNERS:
        check_model_settings(kind, settings, _KEYS, place, findings)
        if fenced:
            _check_fences(settings, place, findings, directory)
        return
    if kind not in _STRICT:
        return
    for key in settings:
        if isinstance(key, str) and key not in _KEYS and not key.startswith("x-"):
            _unknown(key, kind, fenced, (*place, key), findings)
    if fenced:
        _check_fences(settings, place, findings, directory)


def _unknown(key: str, kind: str, fenced: bool, place: Place, findings: Findings) -> None:
    plain = key.casefold().replace("-", "_")
    close = get_close_matches(plain, sorted(_KEYS), n=1, cutoff=_TYPO)
    if close:
        findings.problem(place, f"unknown key; did you mean {close[0]}?")
    elif fenced:
        findings.problem(place, f"unknown key{nearest(key, _KEYS, what='keys here')}")
    else:
        known = ", ".join(sorted(_KEYS))
        findings.warn(place, f"ignored: type {kind} has no such setting; keys here: {known}")


def _check_fences(
    settings: Mapping[str, Any], place: Place, findings: Findings, directory: str
) -> None:
    network = settings.get("network", False)
    if not isinstance(network, bool):
        findings.problem((*place, "network"), f"must be true or false, not {shown(network)}")
    for key in _FENCES:
        paths = settings.get(key, [])
        if not isinstance(paths, list):
            findings.problem((*place, key), f"must be a list of paths, not {shown(paths)}")
            continue
        for index, path in enumerate(paths):
            where = (*place, key, index)
            if not isinstance(path, str) or not path.strip():
                findings.problem(where, f"must be a path, not {shown(path)}")
            elif key == "hidden":
                _check_hidden(path, where, findings, directory)


def _check_hidden(path: str, place: Place, findings: Findings, directory: str) -> None:
    expanded = os.path.expanduser(path)
    if os.path.lexists(os.path.join(directory, expanded)):
        return
    if os.path.isabs(expanded):  # of this machine, and another may have it
        findings.warn(place, f"hides nothing: there is no {path} on this machine")
        return
    parent = os.path.dirname(os.path.join(directory, path.rstrip("/")))
    there = os.listdir(parent) if os.path.isdir(parent) else []
    hint = nearest(os.path.basename(path.rstrip("/")), there)
    message = f"hides nothing: there is no {path} (a path starts at the suite's directory){hint}"
    findings.problem(place, message)


def _check_below(settings: Mapping[str, Any], place: Place, findings: Findings) -> None:
    for key, base in _BELOW.items():
        paths = settings.get(key)
        if paths is None:
            continue
        where = (*place, key)
        if not isinstance(paths, list):
            findings.problem(where, f"must be a list of paths, relative to {base}")
            continue
        for index, path in enumerate(paths):
            if (
                not isinstance(path, str)
                or not path.strip()
                or path.startswith(("/", "\\", "~"))
                or ".." in path.replace("\\", "/").split("/")
            ):
                message = f"must be a path relative to {base}, without .."
                findings.problem((*where, index), message)
