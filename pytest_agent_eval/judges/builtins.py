"""``builtin`` judges: a function named ``judge`` in a file of a known place."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from pytest_agent_eval.errors import SuiteError
from pytest_agent_eval.judges.arguments import copies_of
from pytest_agent_eval.judges.base import Judge, JudgeContext
from pytest_agent_eval.judges.builtin_files import BuiltinFile, find_builtins
from pytest_agent_eval.judges.frames import describe
from pytest_agent_eval.judges.problems import problem
from pytest_agent_eval.judges.signature import argument_problems, nearest

__all__ = ["make_builtin"]


def make_builtin(context: JudgeContext) -> Judge:
    """The builtin judge that a name or ``category/name`` stands for.

    Raises:
        SuiteError: an unknown name, a file without ``judge``, arguments that do not fit, no model
            for one that asks a model.
    """
    item = _find(context)
    if item.path.endswith(".md"):
        from pytest_agent_eval.judges.llm import make_llm_builtin  # which needs jinja2

        return make_llm_builtin(context, item.path)
    module = _load(context, item)
    function = getattr(module, "judge", None)
    if not callable(function):
        message = f"{item.path} defines no function judge(outputs, **arguments)"
        raise SuiteError(problem(context, "builtin", message))
    _check_arguments(context, module, function, types_too=item.shipped)
    arguments = copies_of(context.config.arguments)

    def judge(record: Mapping[str, Any]) -> Any:
        return function(outputs=record, **arguments())

    return judge


def _find(context: JudgeContext) -> BuiltinFile:
    name = context.config.builtin or ""
    known = find_builtins(context.builtin_dirs)
    item = known.get(name.rpartition("/")[2])
    if item is not None and name in (item.stem, item.name):
        return item
    if item is not None:
        message = f"no builtin judge is named {name}; did you mean {item.name}?"
        raise SuiteError(problem(context, "builtin", message))
    fits = nearest(name, [*known, *(item.name for item in known.values() if item.category)])
    if not fits.startswith("; did"):
        fits = f"; there is {', '.join(sorted(item.name for item in known.values()))}"
    raise SuiteError(problem(context, "builtin", f"no builtin judge is named {name}{fits}"))


def _load(context: JudgeContext, item: BuiltinFile) -> ModuleType:
    if item.shipped:
        return importlib.import_module(f"{__package__}.builtin.{item.category}.{item.stem}")
    try:
        return _load_file(item)
    except Exception as error:
        sentence, _ = describe(error)
        message = f"{item.path} cannot be imported: {sentence}"
        raise SuiteError(problem(context, "builtin", message)) from None


def _load_file(item: BuiltinFile) -> ModuleType:
    # Dataclasses and pickles look a module up by its name: it needs one that is nobody else's.
    mark = hashlib.sha256(item.path.encode()).hexdigest()[:12]
    name = f"agent_eval_judge_{item.stem}_{mark}"
    spec = importlib.util.spec_from_file_location(name, item.path)
    assert spec is not None  # the file ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _check_arguments(
    context: JudgeContext,
    module: ModuleType,
    function: Callable[..., Any],
    *,
    types_too: bool,
) -> None:
    arguments = context.config.arguments
    found = argument_problems(function, arguments, types_too=types_too)
    validate = getattr(module, "validate", None)
    if not found and callable(validate):
        found = list(validate(**arguments))
    if found:
        raise SuiteError(
            *(
                problem(context, f"arguments.{name}" if name else "arguments", message)
                for name, message in found
            )
        )
