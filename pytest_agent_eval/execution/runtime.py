"""What all trials of a suite share, worked out once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agent_eval.cases.templates import Template, compile_template
from pytest_agent_eval.evidence.reward import RewardRule
from pytest_agent_eval.execution.answerer import Answerer
from pytest_agent_eval.execution.interaction import Interactions
from pytest_agent_eval.execution.steps import StepPlan, plan_steps
from pytest_agent_eval.execution.suite_hooks import SuiteHooks
from pytest_agent_eval.execution.workspace import Contents
from pytest_agent_eval.llm import Gateway, provider_name
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.results import Verdict
from pytest_agent_eval.runners.base import Runner
from pytest_agent_eval.runners.environment import resolve_variables
from pytest_agent_eval.suite.digests import execution_digest
from pytest_agent_eval.suite.judge_models import answerer_model

if TYPE_CHECKING:
    import threading

    from pytest_agent_eval.suite import Suite, SuiteConfig

__all__ = ["SuiteRuntime", "TrialJudge"]


class TrialJudge(Protocol):
    """A judge of the suite, ready to judge records. Never raises for a judge's fault."""

    @property
    def name(self) -> str:
        """Unique in the suite."""
        ...

    @property
    def gated(self) -> bool:
        """Whether it has a threshold."""
        ...

    def judge(
        self, record: Mapping[str, Any], *, cancelled: threading.Event | None = None
    ) -> Verdict:
        """The verdict on one record."""
        ...


@dataclass(frozen=True, slots=True)
class SuiteRuntime:
    """One suite, ready to run trials; shared by threads. Made by :meth:`of`.

    Attributes:
        suite: the suite.
        config: the suite's configuration, or that of the variant.
        suite_key: its eval.yaml relative to the root directory, with slashes.
        runner: carries out tasks.
        judges: in the suite's order.
        rootdir: of the session.
        run_id: identifies the run.
        model: of the agent; empty when unset.
        variant: name of the variant, or None.
        contents: of the workspaces.
        prompt, arguments: compiled templates, or None.
        env: ``execution.env``, resolved.
        values: placeholders of the command, of the variant.
        notes: about variables that were left out; each trial carries them.
        gated: names of judges with a threshold.
        tools: each ``outputs[].tool``.
        execution_digest: of all that decides an execution besides the case.
        secrets: what nothing that is stored or printed may hold.
        directory: the working directory of the session, which judges must leave as it is.
        steps: of the pipeline; empty without one.
        hooks: of the suite in this session; None where no hook is to run.
        interactions: what agents are answered.
        reward: how a trial's reward is made; None where it has none.
    """

    suite: Suite
    config: SuiteConfig
    suite_key: str
    runner: Runner
    judges: tuple[TrialJudge, ...]
    rootdir: Path
    run_id: str
    model: str
    variant: str | None
    contents: Contents
    prompt: Template | None
    arguments: Template | None
    env: Mapping[str, str]
    values: Mapping[str, str]
    notes: tuple[str, ...]
    gated: frozenset[str]
    tools: tuple[str, ...]
    execution_digest: str
    directory: str
    secrets: Secrets = field(default=NO_SECRETS, repr=False)
    steps: tuple[StepPlan, ...] = ()
    hooks: SuiteHooks | None = None
    interactions: Interactions = field(default_factory=Interactions)
    reward: RewardRule | None = None

    @classmethod
    def of(
        cls,
        suite: Suite,
        *,
        suite_key: str,
        runner: Runner,
        judges: Sequence[TrialJudge],
        rootdir: Path,
        run_id: str,
        model: str = "",
        variant: str | None = None,
        values: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        step_runner: Callable[[Suite], Runner] | None = None,
        hooks: SuiteHooks | None = None,
        gateway: Gateway | None = None,
    ) -> SuiteRuntime:
        """Work out what the trials of a suite share.

        Args:
            suite: the suite, as the variant changes it.
            suite_key: as in the attribute.
            runner: made for this suite.
            judges: made for this suite.
            rootdir: of the session.
            run_id: of the run.
            model: replaces ``models.skill`` when not empty.
            variant: name of the variant.
            values: its placeholders of the command.
            variables: the caller's environment; None for that of this process.
            step_runner: makes the runner of a step that has a block ``runner`` of its own: it gets
                the suite with that block in place of the suite's.
            hooks: of the suite in this session.
            gateway: by which the answerer of questions is asked; None where it is not.

        Raises:
            TemplateError: a template that cannot be parsed.
            RunnerError: a step's runner cannot be made.
        """
        config = suite.config
        execution = config.execution
        caller = os.environ if variables is None else variables
        env, notes = resolve_variables(execution.env, caller, key="execution.env")
        steps, step_notes = plan_steps(suite, runner, step_runner, caller)
        handlers = suite.handlers
        answerer = answerer_model(suite, os.environ)
        extra: dict[str, Any] = {"values": dict(values or {})}
        if handlers:
            extra["handlers"] = {**handlers.to_dict(), "model": answerer}
        return cls(
            suite=suite,
            config=config,
            suite_key=suite_key,
            runner=runner,
            judges=tuple(judges),
            rootdir=rootdir,
            run_id=run_id,
            model=model or config.models.skill or "",
            variant=variant,
            contents=Contents(
                files=tuple(config.dataset.workspace.files),
                outputs=tuple(output.path for output in config.outputs if output.path),
                project_files=tuple(config.runner.settings.get("project_files") or ()),
                project_directory=str(suite.directory),
                dataset_directory=str(suite.dataset_directory),
            ),
            prompt=_template(execution.prompt),
            arguments=_template(execution.arguments),
            env=env,
            values=values or {},
            notes=(*notes, *step_notes),
            gated=frozenset(judge.name for judge in judges if judge.gated),
            tools=tuple(output.tool for output in config.outputs if output.tool),
            execution_digest=execution_digest(
                config,
                model=model or config.models.skill or "",
                variant=variant,
                directory=suite.directory,
                extra=extra,
            ),
            directory=os.getcwd(),
            secrets=secrets_of(suite, caller),
            steps=steps,
            hooks=hooks,
            interactions=Interactions(
                handlers,
                Answerer(gateway, provider_name(answerer)) if answerer and gateway else None,
            ),
            reward=RewardRule.of(config.reward, config.judges) if config.reward else None,
        )


def secrets_of(suite: Suite, caller: Mapping[str, str]) -> Secrets:
    """The secrets that an agent of the suite, or of a judge, may know: those of this process, of
    the caller's environment, and those that the suite sets.
    """
    config = suite.config
    blocks = [(config.execution.env, "execution.env"), (config.runner.env, "runner.env")]
    for step in config.execution.steps:
        blocks.append((step.env, "step.env"))
        if step.runner is not None:
            blocks.append((step.runner.env, "step.runner.env"))
    for judge in config.judges:
        if judge.agent is not None:
            blocks.append((judge.agent.runner.env, "agent.runner.env"))
    own = [resolve_variables(values, caller, key=key)[0] for values, key in blocks]
    return Secrets.of(os.environ, caller, *own)


def _template(source: str | None) -> Template | None:
    return compile_template(source) if source else None
