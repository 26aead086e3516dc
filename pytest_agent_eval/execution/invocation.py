"""Asking a runner to carry out one task."""

from __future__ import annotations

from pytest_agent_eval.baton import BATON
from pytest_agent_eval.deadline import Steps
from pytest_agent_eval.errors import CaseError, RunnerError, TemplateError
from pytest_agent_eval.execution.interaction import TrialInteraction
from pytest_agent_eval.runners.base import Execution, Runner, Task

__all__ = ["invoke"]


def invoke(runner: Runner, task: Task) -> Steps[Execution]:
    """What came of the task.

    Args:
        runner: carries it out.
        task: its ``interaction`` is that of the trial.

    Raises:
        RunnerError: the agent could not be started, or the runner itself failed.
        CaseError, TemplateError: the task cannot be put into the runner's words.
    """
    interaction = task.interaction
    if isinstance(interaction, TrialInteraction):
        interaction.begin(task)
        execution = yield from _invoke(runner, task)
        return interaction.concluded(execution)
    return (yield from _invoke(runner, task))


def _invoke(runner: Runner, task: Task) -> Steps[Execution]:
    try:
        # Asking whether it is a SteppedRunner would cost far more.
        steps = getattr(runner, "steps", None)
        if steps is not None:
            execution: Execution = yield from steps(task)
            return execution
        if getattr(runner, "lets_others_work", False):
            return runner.run(task)
        with BATON.waiting():
            return runner.run(task)
    except (RunnerError, TemplateError, CaseError):
        raise
    except Exception as error:  # a runner of a plugin: its fault is not the agent's
        from pytest_agent_eval.runners.python import describe

        raise RunnerError(f"the runner {describe(error)}") from error
