"""What decides an execution, as one digest: whether a stored one still stands for the suite."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import xxhash

from pytest_agent_eval.suite.models.suite import SuiteConfig
from pytest_agent_eval.suite.tree_digest import tree_digest

__all__ = ["canonical_digest", "execution_digest", "file_digest"]

_PROSE = frozenset({"name", "description", "reason"})
"""Keys that are for people wherever they stand in the blocks that are read here."""

_HOOKS = ("before_all", "before_each", "before_step", "after_step")
"""Phases that an agent can notice; the others run when its work has been collected."""


def execution_digest(
    config: SuiteConfig,
    *,
    model: str = "",
    variant: str | None = None,
    directory: str | os.PathLike[str] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> str:
    """xxh3_128 (hexadecimal) over everything but the case that decides what an agent does.

    Two suites that differ only in judges, thresholds, reward, split, selection, trials,
    parallelism or in what is written for people have the same digest.

    Args:
        config: the suite's, or that of the variant.
        model: the model that the agent is run with, after command line and environment.
        variant: its name, or None.
        directory: of the suite: files that ``inputs.tools`` names are read from there, and what
            the agent is given with ``runner.plugin_dirs`` and ``project_files``.
        extra: what else decides, such as the variant's ``values``: anything YAML can hold.
    """
    given = _given(config, directory)
    return canonical_digest(
        {
            **({"given": given} if given else {}),
            "model": model,
            "variant": variant,
            "extra": dict(extra or {}),
            "skill": config.skill,
            "execution": _part(
                config.execution, leave_out=("parallelism", "trials", "pass", "retries")
            ),
            "runner": _part(config.runner),
            "models": _models(config),
            "permissions": _part(config.permissions),
            "tools": [
                {
                    **_part(tool),
                    "content": _content(tool.prompt_file, directory),
                }
                for tool in config.inputs.tools
            ],
            "workspace": _part(config.dataset.workspace),
            "leak": _leak(config),
            "outputs": [_part(item, leave_out=("schema", "types")) for item in config.outputs],
            "traces": _part(config.traces),
            "hooks": {phase: _parts(getattr(config.hooks, phase)) for phase in _HOOKS},
        }
    )


def _given(config: SuiteConfig, directory: str | os.PathLike[str] | None) -> list[str]:
    """One digest for each runner that is given directories or files of the project."""
    if directory is None:
        return []
    steps = [step.runner for step in config.execution.steps if step.runner is not None]
    found = []
    for runner in (config.runner, *steps):
        listed = runner.settings.get("project_files")
        paths = [*runner.plugin_dirs, *(listed if isinstance(listed, list | tuple) else ())]
        if paths:
            found.append(tree_digest(map(str, paths), directory))
    return found


def _models(config: SuiteConfig) -> dict[str, Any]:
    # The agent's own model is given resolved; the answerer matters where there are questions.
    models = config.models
    answerer = (models.hook or models.judge) if config.inputs.tools else None
    return {"subagent": models.subagent, "answerer": answerer}


def _leak(config: SuiteConfig) -> list[Any]:
    """What of the leak check can change the verdict on an execution."""
    dataset = config.dataset
    return ["error", list(dataset.answers)] if dataset.leak == "error" else []


def _parts(blocks: Iterable[Any]) -> list[Any]:
    return [_part(block) for block in blocks]


def _part(block: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """A block under the names of eval.yaml, without what is written for people."""
    found: dict[str, Any] = _without_prose(block.model_dump(by_alias=True, warnings=False))
    return {key: value for key, value in found.items() if key not in leave_out}


_AUTHORS = frozenset({"env", "settings"})
"""Mappings whose keys the author chose: a variable may be named ``name``."""


def _without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: item if key in _AUTHORS else _without_prose(item)
            for key, item in value.items()
            if key not in _PROSE
        }
    if isinstance(value, list | tuple):
        return [_without_prose(item) for item in value]
    return value


def _content(path: str | None, directory: str | os.PathLike[str] | None) -> str | None:
    if path is None or directory is None:
        return None
    return file_digest(os.path.join(directory, path))


def file_digest(path: str | os.PathLike[str]) -> str:
    """xxh3_128 of a file's bytes; of a directory, of the names and bytes of its files. Empty for
    what cannot be read.
    """
    name = os.fspath(path)
    if os.path.isdir(name):
        found = []
        for place, directories, files in os.walk(name):
            directories[:] = sorted(d for d in directories if d != "__pycache__")
            for file in sorted(files):
                whole = os.path.join(place, file)
                found.append([os.path.relpath(whole, name), file_digest(whole)])
        return canonical_digest(found)
    try:
        with open(name, "rb") as stream:
            return xxhash.xxh3_128_hexdigest(stream.read())
    except OSError:
        return ""


def canonical_digest(value: Any) -> str:
    """xxh3_128 (hexadecimal) of a value of YAML's types; the order of a mapping does not count."""
    text = json.dumps(_canonical(value), ensure_ascii=True, separators=(",", ":"))
    return xxhash.xxh3_128_hexdigest(text.encode())


def _canonical(value: Any) -> Any:
    """JSON that keeps apart what YAML keeps apart: ``1`` and ``"1"`` as keys, dates, sets."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Mapping):
        pairs = [[_canonical(key), _canonical(item)] for key, item in value.items()]
        return {"map": sorted(pairs, key=lambda pair: json.dumps(pair[0]))}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((_canonical(item) for item in value), key=json.dumps)}
    return {type(value).__name__: str(value)}
