"""The models of judges and of the answerer of questions, and judges that have none."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_agent_eval.errors import Problem
from pytest_agent_eval.suite.known import MODEL_RUNNERS
from pytest_agent_eval.suite.models.judge import JudgeConfig
from pytest_agent_eval.suite.suite import Suite

__all__ = ["answerer_model", "asks_a_model", "missing_models", "takes_examples"]

VARIABLE = "EVAL_JUDGE_MODEL"


def missing_models(suite: Suite, environ: Mapping[str, str]) -> tuple[Problem, ...]:
    """One problem for each judge that asks a model and for which none is named.

    A judge's model is its own ``model``, else ``models.judge``, else the variable
    ``EVAL_JUDGE_MODEL``.
    """
    if suite.config.models.judge or environ.get(VARIABLE, "").strip():
        return ()
    return tuple(
        Problem(
            f"judge {judge.name} asks a model and none is named: set its model, models.judge, or "
            f"the variable {VARIABLE}",
            path=f"judges[{index}]",
            file=suite.shown,
            line=suite.line(f"judges[{index}]"),
        )
        for index, judge in enumerate(suite.config.judges)
        if asks_a_model(judge, suite) and not judge.model
    )


def takes_examples(judge: JudgeConfig, suite: Suite) -> bool:
    """Whether a judge of this suite puts human-scored examples before its question."""
    if judge.kind == "builtin":
        return judge.builtin in suite.known.llm_builtins
    return judge.kind in ("llm", "agent")


def asks_a_model(judge: JudgeConfig, suite: Suite) -> bool:
    """Whether a judge of this suite asks one."""
    if judge.kind == "builtin":
        return judge.builtin in suite.known.llm_builtins
    if judge.agent is not None and judge.kind == "agent":
        # The others have a model of their own, or ask none.
        runner = judge.agent.runner
        named = runner.type == "responses-api" and runner.settings.get("default_model")
        return runner.type in MODEL_RUNNERS and not named
    return judge.kind in ("llm", "pairwise")


def answerer_model(suite: Suite, environ: Mapping[str, str]) -> str:
    """The model that answers agents' questions: ``models.hook``, else ``hook_model`` of
    ``tool_handlers.yaml``, else that of the judges. Empty where there is no handler of questions,
    or no model.
    """
    handlers = suite.handlers
    if not handlers.answers_questions:
        return ""
    models = suite.config.models
    named = models.hook or handlers.hook_model.strip() or models.judge
    return named or environ.get(VARIABLE, "").strip()
