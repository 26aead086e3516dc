"""The judges of a suite, all made before the first agent runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agent_eval.cases.conditions import (
    JUDGE_NAMES,
    VALUE_NAMES,
    Condition,
    compile_condition,
)
from pytest_agent_eval.deadline import DeadlineThread
from pytest_agent_eval.errors import AgentEvalError, ConditionError, Problem, SuiteError
from pytest_agent_eval.judges.base import Judge, JudgeContext, JudgeKind
from pytest_agent_eval.judges.bound import BoundJudge
from pytest_agent_eval.judges.builtins import make_builtin
from pytest_agent_eval.judges.code import make_check
from pytest_agent_eval.judges.definition import judge_digest
from pytest_agent_eval.judges.function import make_function
from pytest_agent_eval.judges.problems import problem
from pytest_agent_eval.judges.signature import nearest

if TYPE_CHECKING:
    from pytest_agent_eval.judges.errand import JudgingAgent
    from pytest_agent_eval.llm import Gateway
    from pytest_agent_eval.suite import Suite

__all__ = ["KINDS", "PAIRWISE", "make_judges"]


def _make_llm(context: JudgeContext) -> Judge:
    from pytest_agent_eval.judges.llm import make_llm  # which needs jinja2

    return make_llm(context)


def _make_agent(context: JudgeContext) -> Judge:
    from pytest_agent_eval.judges.agent import make_agent  # likewise

    return make_agent(context)


KINDS: Mapping[str, JudgeKind] = {
    "builtin": make_builtin,
    "check": make_check,
    "function": make_function,
    "llm": _make_llm,
    "agent": _make_agent,
}
PAIRWISE = "pairwise"
"""Reserved: this judge compares two runs, so it does not judge single trials."""


def make_judges(
    suite: Suite,
    *,
    rootdir: Path,
    kinds: Mapping[str, JudgeKind] | None = None,
    builtin_dirs: Iterable[Path | str] = (),
    gateway: Gateway | None = None,
    agents: Callable[[JudgeContext], JudgingAgent] | None = None,
) -> tuple[BoundJudge, ...]:
    """Make every judge of a suite, in the suite's order, without the one named ``pairwise``.

    Args:
        suite: a checked suite.
        rootdir: importable beside the suite's directory.
        kinds: judge kinds that plugins registered: name -> what makes a judge.
        builtin_dirs: the project's own directories of builtin judges.
        gateway: by which models are asked; None for one of the suite alone.
        agents: makes the agents of agent judges; None where no agent can be had.

    Raises:
        SuiteError: with the problems of all judges.
    """
    makers = {**KINDS, **(kinds or {})}
    directories = tuple(Path(item) for item in builtin_dirs)
    threads = DeadlineThread("agent-eval-judge")
    judges: list[BoundJudge] = []
    problems: list[Problem] = []
    for index, config in enumerate(suite.config.judges):
        if config.name == PAIRWISE:
            continue
        context = JudgeContext(
            config, suite, rootdir, directories, f"judges[{index}]", gateway, agents
        )
        try:
            judges.append(_make_judge(context, makers, threads))
        except SuiteError as error:
            problems.extend(_placed(item, context) for item in error.problems)
        except AgentEvalError as error:  # of a plugin's judge kind
            problems.append(problem(context, "", str(error)))
    if problems:
        raise SuiteError(*dict.fromkeys(problems))
    return tuple(judges)


def _make_judge(
    context: JudgeContext, makers: Mapping[str, JudgeKind], threads: DeadlineThread
) -> BoundJudge:
    config = context.config
    maker = makers.get(config.kind)
    if maker is None:
        message = f"unknown kind of judge: {config.kind}{nearest(config.kind, [*makers])}"
        raise SuiteError(problem(context, "", message))
    judge = maker(context)
    return BoundJudge(
        config,
        judge,
        gated=config.name in context.suite.config.thresholds,
        condition=_condition(context, "if", config.if_, JUDGE_NAMES),
        pass_if=_condition(context, "pass_if", config.pass_if, VALUE_NAMES),
        threads=threads,
        digest=judge_digest(context, judge, maker),
    )


def _condition(
    context: JudgeContext, key: str, source: str | None, names: frozenset[str]
) -> Condition | None:
    if not source:
        return None
    try:
        return compile_condition(source, names)
    except ConditionError as error:
        raise SuiteError(problem(context, key, str(error))) from None


def _placed(item: Problem, context: JudgeContext) -> Problem:
    """A problem that says where, also if its maker did not know."""
    if item.file or item.path:
        return item
    return problem(context, context.config.kind, item.message)
