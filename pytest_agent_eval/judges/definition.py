"""What a judge is, as one digest: whether a stored verdict still is what it would say."""

from __future__ import annotations

import inspect
import os
import shlex
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pytest_agent_eval.errors import SuiteError
from pytest_agent_eval.judges.base import Judge, JudgeContext, JudgeKind
from pytest_agent_eval.judges.builtin_files import BuiltinFile, find_builtins
from pytest_agent_eval.judges.sources import imported_files, module_files
from pytest_agent_eval.suite.digests import canonical_digest, file_digest
from pytest_agent_eval.suite.models.runner import RunnerConfig

__all__ = ["MODEL_VARIABLE", "judge_digest"]

MODEL_VARIABLE = "EVAL_JUDGE_MODEL"
"""Names the model of judges where neither the judge nor ``models.judge`` does."""

_NO_PART = {"name", "description", "labels", "timeout"}
"""Keys that change no verdict; a judgement that ran out of time is an error, asked again anyway."""
_LIMITS = ("timeout", "max_budget_usd")
"""Keys of ``agent`` of which the same is true."""


def judge_digest(context: JudgeContext, judge: Judge, kind: JudgeKind) -> str:
    """xxh3_128 (hexadecimal) over a judge's entry and the content of what it points at.

    Counted are its Python (its module, and the modules of the project that this one imports), its
    prompt, its context files, the model it asks, and of an agent the project's files that its
    runner's block names. A judge may have an attribute ``definition``
    (anything YAML can hold) with what else makes it what it is. Names, descriptions, time limits
    and thresholds do not count.
    """
    config = context.config
    entry = config.model_dump(by_alias=True, exclude=_NO_PART, warnings=False)
    if config.agent is not None:
        for key in _LIMITS:
            del entry["agent"][key]
    return canonical_digest(
        {
            "kind": config.kind,
            "entry": entry,
            "extra": config.extra,
            "definition": getattr(judge, "definition", None),
            "files": [file_digest(path) for path in _named_files(context)],
            **_code(context, kind),
            **_model(context),
        }
    )


def _named_files(context: JudgeContext) -> list[str]:
    """The files that its entry names, in order, absolute."""
    config = context.config
    named = [config.prompt_file, *config.context]
    if config.agent is not None:
        named += config.agent.context
        named += _runner_files(context, config.agent.runner)
    if config.examples is not None:
        named.append(config.examples.source)
    return [os.path.join(context.suite.directory, path) for path in named if path is not None]


def _runner_files(context: JudgeContext, runner: RunnerConfig) -> list[str]:
    """What of the project a runner starts: scripts of its command, a module, plugins."""
    home = os.fspath(context.suite.directory)
    found = list(map(os.path.expanduser, runner.plugin_dirs))
    if runner.command is not None:
        command = runner.command
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError:  # said where it is checked
            words = ()
        for word in words:
            path = os.path.join(home, word.replace("{config_dir}", home))
            if path.startswith(os.path.join(home, "")) and os.path.isfile(path):
                found.append(path)
    if runner.function is not None:
        module = runner.function.partition(":")[0]
        found += module_files(module, [home, os.fspath(context.rootdir)])
    return found


def _code(context: JudgeContext, kind: JudgeKind) -> dict[str, Any]:
    """What its Python is made of."""
    config = context.config
    places = [os.fspath(context.suite.directory), os.fspath(context.rootdir)]
    if config.kind == "function":
        files = module_files(config.module, places)
    elif config.kind == "check":
        files = imported_files(config.check, places)
    elif config.kind == "builtin":
        item = _builtin(context)
        if item is None:
            return {}
        files = [item.path]
        if item.shipped:
            # What a shipped judge shares with others changes with the release.
            return {"code": [file_digest(item.path)], "version": _version()}
        if item.path.endswith(".py"):
            with open(item.path, "rb") as stream:
                files += imported_files(stream.read(), places)
    elif config.kind in context.suite.known.judge_kinds:
        files = _source_of(kind)
    else:
        return {}
    return {"code": [file_digest(path) for path in files]}


def _version() -> str:
    try:
        return version("pytest-agent-eval")
    except PackageNotFoundError:  # imported from a checkout that is not installed
        return ""


def _builtin(context: JudgeContext) -> BuiltinFile | None:
    try:
        known = find_builtins(context.builtin_dirs)
    except SuiteError:
        return None
    return known.get(context.config.builtin.rpartition("/")[2])


def _source_of(kind: JudgeKind) -> list[str]:
    """The file in which a plugin defines its kind of judge."""
    try:
        path = inspect.getsourcefile(inspect.unwrap(kind))
    except TypeError:  # an object that is called
        try:
            path = inspect.getsourcefile(type(kind))
        except TypeError:
            return []
    return [path] if path else []


def _model(context: JudgeContext) -> dict[str, Any]:
    """The model it asks, of the judges that ask one."""
    config, suite = context.config, context.suite
    asks = config.kind in ("llm", "agent") or (
        config.kind == "builtin" and config.builtin in suite.known.llm_builtins
    )
    if not asks:
        return {}
    return {"model": config.model or suite.config.models.judge or os.environ.get(MODEL_VARIABLE)}
