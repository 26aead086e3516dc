"""Agents that judge: an errand of a judge, as a task of a runner."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Any

from pytest_agent_eval.cases.templates import placeholders
from pytest_agent_eval.deadline import Steps
from pytest_agent_eval.errors import (
    AgentEvalError,
    CaseError,
    RunnerError,
    SuiteError,
    TemplateError,
)
from pytest_agent_eval.execution.collect import METRICS_FILE
from pytest_agent_eval.execution.files import read_file
from pytest_agent_eval.execution.invocation import invoke
from pytest_agent_eval.execution.metrics import merge_usage, read_metrics
from pytest_agent_eval.execution.verdict import judge_execution
from pytest_agent_eval.judges.base import JudgeContext
from pytest_agent_eval.judges.errand import Errand, ErrandResult
from pytest_agent_eval.judges.problems import problem
from pytest_agent_eval.judges.question import judging_model
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.results import Usage
from pytest_agent_eval.runners.base import Execution, Runner, RunnerContext, RunnerType, Task
from pytest_agent_eval.runners.command import PLACEHOLDERS
from pytest_agent_eval.runners.environment import resolve_variables
from pytest_agent_eval.runners.tool_names import claude_permissions, model_tools
from pytest_agent_eval.suite import Suite
from pytest_agent_eval.suite.known import MODEL_RUNNERS
from pytest_agent_eval.suite.models.agent import PermissionsConfig
from pytest_agent_eval.suite.models.judge import AgentConfig, JudgeConfig
from pytest_agent_eval.suite.models.runner import RunnerConfig

__all__ = ["JudgingAgents"]

_TOLD_BY_ARGUMENT = frozenset({"cli", "claude-code", "codex"})
_LONGEST_ARGUMENT = 100_000
"""Bytes of an argument of a program; Linux takes 131,071."""

_MAX_METRICS = 1024 * 1024


class JudgingAgents:
    """Makes the agents of a session's agent judges.

    Args:
        runner_types: type -> what makes a runner.
        max_output_bytes: kept of each of an agent's stdout and stderr.
        replay: nothing live may be asked.
    """

    def __init__(
        self, runner_types: Mapping[str, RunnerType], *, max_output_bytes: int, replay: bool
    ) -> None:
        self._types = runner_types
        self._cap = max_output_bytes
        self._replay = replay

    def __call__(self, context: JudgeContext) -> RunnerJudge:
        """The agent of one judge.

        Raises:
            SuiteError: its runner cannot be made, or asks a model and none is named.
        """
        config = context.config
        assert config.agent is not None
        model = judging_model(context)
        agent = config.agent
        suite = _suite_of(context.suite, config, agent)
        command = agent.runner.command
        literal = placeholders(command) - PLACEHOLDERS - {"allowed_tools"} if command else ()
        runner_context = RunnerContext(
            suite=suite,
            rootdir=context.rootdir,
            max_output_bytes=self._cap,
            literal=frozenset(literal),
            gateway=context.gateway,
        )
        try:
            runner = self._types[agent.runner.type](runner_context)
        except AgentEvalError as error:
            said = str(error).partition("\n")[0]
            raise SuiteError(problem(context, "agent.runner", said)) from None
        return RunnerJudge(agent, runner, model=model, replay=self._replay)


class RunnerJudge:
    """Runs the errands of one agent judge with a runner.

    Args:
        agent: the judge's block ``agent``.
        runner: made for it.
        model: of the agent; empty for the runner's own.
        replay: nothing live may be asked.
    """

    def __init__(self, agent: AgentConfig, runner: Runner, *, model: str, replay: bool) -> None:
        self._agent = agent
        self._runner = runner
        self._model = model
        self._live = not getattr(runner, "replays", False)
        self._replay = replay
        env, _ = resolve_variables(agent.runner.env, os.environ, key="agent.runner.env")
        self._secrets = Secrets.of(os.environ, env)

    def steps(self, errand: Errand) -> Steps[ErrandResult]:
        """Run one errand; what goes wrong with the agent is in the result, not raised."""
        kind = self._agent.runner.type
        if self._replay and self._live:
            models = " and ".join(sorted(MODEL_RUNNERS))
            return ErrandResult(
                started=False,
                error=f"the judging agent was not started (--agent-eval-llm replay): what runner "
                f"type {kind} asks is not recorded, only what {models} ask; a stored verdict is "
                "kept by --agent-eval-resume",
            )
        try:
            execution = yield from invoke(self._runner, self._task(errand))
        except (RunnerError, TemplateError, CaseError) as error:
            said, _, more = str(error).replace("{case}", errand.case).partition("\n")
            why = f"the judging agent did not work: {said}"
            return ErrandResult(error=why, detail=more, started=False)
        return self._result(errand, execution)

    def _task(self, errand: Errand) -> Task:
        agent, prompt = self._agent, errand.prompt
        if agent.runner.type in _TOLD_BY_ARGUMENT and len(prompt.encode()) > _LONGEST_ARGUMENT:
            prompt = errand.short_prompt
        return Task(
            input={},
            workspace=errand.workspace,
            output_dir=errand.workspace / "output",
            log_dir=errand.log_dir,
            prompt=prompt,
            timeout=errand.timeout,
            max_budget_usd=agent.max_budget_usd,
            model=self._model,
            effort=agent.runner.effort or "",
            system_prompt=agent.runner.system_prompt,
            trial_id=token_hex(8),
            trial=errand.sample + 1,
            values={"allowed_tools": ",".join(agent.allowed_tools)},
            secrets=self._secrets,
            cancelled=errand.cancelled,
        )

    def _result(self, errand: Errand, execution: Execution) -> ErrandResult:
        if execution.failure == "infrastructure":
            execution = replace(execution, error=execution.error.replace("{case}", errand.case))
        usage = merge_usage(execution.usage, self._told(errand))
        verdict, kind = judge_execution(
            execution,
            usage=usage,
            budget=self._agent.max_budget_usd,
            allowed=(0,),
            produced=True,
            directory=str(errand.log_dir),
        )
        if execution.recorded:
            usage = replace(usage, cost_usd=execution.paid_usd)
        return ErrandResult(
            output=self._secrets.text(execution.output),
            error=f"the judging agent failed: {verdict.rationale}" if kind else "",
            detail=verdict.detail,
            usage=usage,
            recorded=execution.recorded,
        )

    def _told(self, errand: Errand) -> Usage:
        """What the agent says in ``output/metrics.json`` that it took."""
        try:
            data = read_file(os.path.join(errand.workspace, METRICS_FILE), _MAX_METRICS)
        except OSError:
            return Usage()
        return read_metrics(data, self._secrets)[0]


def _suite_of(suite: Suite, config: JudgeConfig, agent: AgentConfig) -> Suite:
    """The suite as the judge's runner sees it: with its own block, and what it may do."""
    runner, allow, deny = agent.runner, agent.allowed_tools, tuple[str, ...]()
    if runner.type == "claude-code":
        allow, deny = claude_permissions(agent.allowed_tools)
    elif runner.type in MODEL_RUNNERS:
        runner = _of_model(runner, config, agent)
    changed = suite.config.model_copy(
        update={"runner": runner, "permissions": PermissionsConfig(allow=allow, deny=deny)}
    )
    return replace(suite, config=changed)


def _of_model(runner: RunnerConfig, config: JudgeConfig, agent: AgentConfig) -> RunnerConfig:
    settings: dict[str, Any] = {"tools": list(model_tools(agent.allowed_tools))}
    if config.temperature is not None:
        settings["temperature"] = config.temperature
    return runner.model_copy(update={"settings": {**settings, **runner.settings}})
