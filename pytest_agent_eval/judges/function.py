"""``module`` + ``function`` judges: the user's own Python function."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from pytest_agent_eval.errors import Problem, SuiteError
from pytest_agent_eval.importing import import_module
from pytest_agent_eval.judges.arguments import copies_of
from pytest_agent_eval.judges.base import Judge, JudgeContext
from pytest_agent_eval.judges.frames import describe
from pytest_agent_eval.judges.problems import problem
from pytest_agent_eval.judges.signature import argument_problems, nearest

__all__ = ["make_function"]


def make_function(context: JudgeContext) -> Judge:
    """Import the function; it is called as ``function(outputs=record, **arguments)``.

    Raises:
        SuiteError: no such module or function, a module that cannot be imported, arguments that
            do not fit.
    """
    function = _find(context)
    problems = [
        problem(context, ".".join(filter(None, ("arguments", name))), message)
        for name, message in argument_problems(function, context.config.arguments)
    ]
    if problems:
        raise SuiteError(*problems)
    arguments = copies_of(context.config.arguments)

    def judge(record: Mapping[str, Any]) -> Any:
        return function(outputs=record, **arguments())

    return judge


def _find(context: JudgeContext) -> Callable[..., Any]:
    config = context.config
    name = config.function or ""
    directories = [os.fspath(context.suite.directory), os.fspath(context.rootdir)]
    try:
        module = import_module(config.module or "", directories)
    except Exception as error:
        raise SuiteError(_import_problem(context, error, directories)) from None
    except SystemExit as error:
        message = f"the module {config.module} ended the import with SystemExit({error.code!r})"
        raise SuiteError(problem(context, "module", message)) from None
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [key for key, value in vars(module).items() if _is_own(key, value, module)]
            message = f"the module {config.module} has no {name}{nearest(name, known)}"
            raise SuiteError(problem(context, "function", message))
        found = getattr(found, part)
    if not callable(found):
        message = f"{config.module}.{name} is no function but {type(found).__name__}"
        raise SuiteError(problem(context, "function", message))
    return found  # type: ignore[no-any-return]


def _is_own(key: str, value: object, module: object) -> bool:
    """Whether a global is a function that the module itself defines."""
    return (
        not key.startswith("_")
        and callable(value)
        and getattr(value, "__module__", "") == getattr(module, "__name__", "")
    )


def _import_problem(context: JudgeContext, error: Exception, directories: list[str]) -> Problem:
    name = context.config.module or ""
    top = name.partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and error.name == top:
        known = sorted({module for place in directories for module in _modules_in(place)})
        where = " and ".join(dict.fromkeys(directories))
        fits = nearest(top, known) if known else ""
        message = f"no module {top}; looked into {where} and the installed packages{fits}"
    else:
        sentence, _ = describe(error)
        message = f"the module {name} cannot be imported: {sentence}"
    return problem(context, "module", message)


def _modules_in(place: str) -> list[str]:
    try:
        names = os.listdir(place)
    except OSError:
        return []
    return [
        name.removesuffix(".py")
        for name in names
        if (name.endswith(".py") or os.path.isfile(os.path.join(place, name, "__init__.py")))
        and name != "conftest.py"
    ]
