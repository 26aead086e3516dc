"""The hooks of one suite in one session: around the session, its cases and their steps."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.execution.hooks import (
    Handed,
    HookPlace,
    Ran,
    end_left_running,
    run_hooks,
)
from pytest_agent_eval.execution.names import plain
from pytest_agent_eval.execution.once import forget, once, recall, was_begun
from pytest_agent_eval.redaction import NO_SECRETS, Secrets

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case
    from pytest_agent_eval.suite.models.hooks import HooksConfig

__all__ = ["HOOKS", "CaseHooks", "SuiteHooks", "end_session"]

HOOKS = "hooks"
"""Name of the directory of logs in the run's directory."""


class SuiteHooks:
    """What runs around the cases of a suite; used from several threads.

    Several processes of a session each have one of these, and whichever comes first runs a hook
    that runs once; the others wait for it and know its outcome from a file in the run's directory.

    Args:
        hooks: of the suite.
        suite_file: its eval.yaml (absolute); hooks around the session run in its directory.
        rootdir: of the session.
        run_directory: of the run (absolute).
        run_id: its name.
        session_id: the same in all processes of a session, and in no other session.
        workspaces: the directory of this process that holds workspaces (absolute). All hooks of
            the session are told that of the process that began.
        label: directory for the logs below ``hooks``, where several suites or variants have
            hooks; may be empty.
        model: of the agent.
        env: ``execution.env``, resolved: hooks see it too.
        secrets: what nothing that is stored may hold.
    """

    def __init__(
        self,
        hooks: HooksConfig,
        *,
        suite_file: Path,
        rootdir: Path,
        run_directory: str,
        run_id: str,
        session_id: str,
        workspaces: str = "",
        label: str = "",
        model: str = "",
        env: Mapping[str, str] | None = None,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self.config = hooks
        self._file = str(suite_file)
        self._workspaces = workspaces
        self._run_directory = run_directory
        logs = os.path.join(run_directory, HOOKS, *filter(None, (label,)))
        self._state = os.path.join(logs, f".{session_id}")
        self._own = {
            **(env or {}),
            "AGENT_EVAL_RUN_ID": run_id,
            "AGENT_EVAL_CONFIG": str(suite_file),
            "AGENT_EVAL_PROJECT_ROOT": str(rootdir),
            "AGENT_EVAL_MODEL": model,
            "AGENT_EVAL_WORKSPACE": workspaces,
        }
        self._place = HookPlace(
            directory=str(suite_file.parent),
            env={**os.environ, **self._own},
            logs=logs,
            marker=f"hooks-{run_id}-{session_id}-{label}",
            secrets=secrets,
        )
        self._registered = False
        self._mutex = threading.Lock()
        self._begun: Mapping[str, Any] | None = None
        self._scoring: Mapping[str, Any] | None = None
        self._told: list[str] = []

    # -- around the session ----------------------------------------------------------------

    def begin(self, cancelled: threading.Event) -> Handed:
        """Run ``before_all`` unless it has been run; each trial asks, and the first one runs it.

        Raises:
            RunnerError: a hook failed: every case of the suite is in error for that reason.
        """
        if self._begun is None:
            self._register(cancelled)
            self._begun = self._once("before_all", cancelled)
        return _handed(self._begun)

    def begin_scoring(self, cancelled: threading.Event) -> None:
        """Run ``before_scoring`` unless it has been run; before the first judge is asked.

        Raises:
            RunnerError: a hook failed: no judge of the suite is asked.
        """
        self._register(cancelled)
        if self.config.before_scoring:
            if self._scoring is None:
                self._scoring = self._once("before_scoring", cancelled)
            _handed(self._scoring)

    def after_all(self) -> tuple[str, ...]:
        """Run ``after_all`` if any trial has begun, by the one process that ends the session.

        Returns:
            A note for each hook that failed.
        """
        if not was_begun(self._state_of("before_all")):
            return ()
        return self._last("after_all")

    def before_report(self) -> tuple[str, ...]:
        """Run ``before_report``, by the one process that reports; notes as :meth:`after_all`."""
        return self._last("before_report")

    def close(self) -> None:
        """Forget what hooks handed over, and end what they left running.

        No trial and no judge of the suite runs any more.
        """
        end_left_running(self._place.marker)
        for phase in ("before_all", "before_scoring", _SESSION):
            forget(self._state_of(phase))

    def notes(self) -> tuple[str, ...]:
        """Things worth telling about hooks that ran once, in this process; each told once."""
        with self._mutex:
            told, self._told = tuple(self._told), []
        return told

    # -- around a case ---------------------------------------------------------------------

    def of_case(self, case: Case, workspace: str, directory: str, begun: Handed) -> CaseHooks:
        """The hooks of one trial.

        Args:
            case: the case.
            workspace: its workspace (absolute), where they run.
            directory: where the trial is stored (absolute, in the run's directory).
            begun: what :meth:`begin` returned.
        """
        place = self._with(begun)
        inside = os.path.relpath(directory, self._run_directory).split(os.sep)[1:]
        place = replace(
            place,
            directory=workspace,
            env={
                **place.env,
                "CASE_ID": case.name,
                "CASE_WORKSPACE": workspace,
                "CASE_SOURCE_DIR": case.path,
                "CASE_INPUT": str(case.input_path),
                "PWD": workspace,
            },
            logs=os.path.join(self._run_directory, HOOKS, *inside),
            marker=f"{place.marker}-{'/'.join(inside)}",
        )
        return CaseHooks(self.config, place, begun)

    # -- inside ----------------------------------------------------------------------------

    def _register(self, cancelled: threading.Event) -> None:
        """Let the process that ends the session know what is to be run then."""
        if self._registered:
            return
        told = {
            "hooks": self.config.model_dump(mode="json"),
            "file": self._file,
            "env": self._own,
        }
        once(self._state_of(_SESSION), lambda: told, cancelled=cancelled)
        self._registered = True

    def _state_of(self, phase: str) -> str:
        return f"{self._state}.{phase}.json"

    def _once(self, phase: str, cancelled: threading.Event) -> Mapping[str, Any]:
        path = self._state_of(phase)
        done = once(path, partial(self._run_once, phase, cancelled), cancelled=cancelled)
        if done.here:
            with self._mutex:
                self._told += done.value["notes"]
        return done.value

    def _run_once(self, phase: str, cancelled: threading.Event) -> dict[str, Any]:
        # What runs later was handed things by before_all already.
        place = self._place if phase == "before_all" else self._with(self._known())
        ran = run_hooks(phase, getattr(self.config, phase), place, cancelled=cancelled)
        if ran.failure and cancelled.is_set():
            raise RunnerError(ran.failure)  # it did not fail by itself, so nobody is told
        return {
            "env": dict(ran.handed.env),
            "data": plain(ran.handed.data),
            "failure": ran.failure,
            "notes": list(ran.notes),
            "workspaces": self._workspaces,
        }

    def _known(self) -> Handed:
        value = self._begun or recall(self._state_of("before_all"))
        return Handed(value["env"], value["data"]) if value else Handed()

    def _with(self, handed: Handed) -> HookPlace:
        known = self._begun or recall(self._state_of("before_all")) or {}
        workspaces = known.get("workspaces") or self._workspaces
        env = {**self._place.env, "AGENT_EVAL_WORKSPACE": workspaces, **handed.env}
        return replace(self._place, env=env)

    def _last(self, phase: str) -> tuple[str, ...]:
        hooks = getattr(self.config, phase)
        if not hooks:
            return ()
        try:
            return run_hooks(phase, hooks, self._with(self._known())).notes
        except (RunnerError, OSError) as error:
            return (f"hooks.{phase} could not be run: {error}",)


_SESSION = "session"


def end_session(
    run_directory: str, session_id: str, *, secrets: Secrets = NO_SECRETS
) -> tuple[str, ...]:
    """Run ``after_all`` and ``before_report`` of all suites of which anything ran in the session.

    For the process that reports, which need not have opened any suite: the controller of
    pytest-xdist. Called when no trial and no judge runs any more, also after an interruption.

    Args:
        run_directory: of the run (absolute).
        session_id: as it was given to :class:`SuiteHooks`.
        secrets: what no log and no note may hold.

    Returns:
        A note for each hook that failed.
    """
    from pytest_agent_eval.suite.models.hooks import HooksConfig

    name = f".{session_id}.{_SESSION}.json"
    notes: list[str] = []
    for place, _, files in sorted(os.walk(os.path.join(run_directory, HOOKS))):
        told = recall(os.path.join(place, name)) if name in files else None
        if told is None:
            continue
        own = told["env"]
        hooks = SuiteHooks(
            HooksConfig.model_validate(told["hooks"]),
            suite_file=Path(told["file"]),
            rootdir=Path(own["AGENT_EVAL_PROJECT_ROOT"]),
            run_directory=run_directory,
            run_id=own["AGENT_EVAL_RUN_ID"],
            session_id=session_id,
            workspaces=own["AGENT_EVAL_WORKSPACE"],
            label=_label(place, run_directory),
            model=own["AGENT_EVAL_MODEL"],
            env=own,
            secrets=secrets,
        )
        notes += (*hooks.after_all(), *hooks.before_report())
        hooks.close()
    return tuple(notes)


def _label(place: str, run_directory: str) -> str:
    label = os.path.relpath(place, os.path.join(run_directory, HOOKS))
    return "" if label == os.curdir else label


class CaseHooks:
    """The hooks of one trial.

    Attributes:
        config: the suite's hooks.
        handed: what hooks have handed over so far.
        notes: things worth telling.
    """

    def __init__(self, config: HooksConfig, place: HookPlace, begun: Handed) -> None:
        self.config = config
        self._place = place
        self.handed = begun
        self.notes: list[str] = []

    def before_each(self, cancelled: threading.Event) -> None:
        """Run them; what they hand over is added to ``handed``.

        Raises:
            RunnerError: one failed.
        """
        self.handed = self.handed.plus(self._run("before_each", self._place, cancelled))

    def after_each(self) -> None:
        """Run them, also when the session stops; failures are notes.

        What hooks of the case have left running is ended then.
        """
        env = {**self._place.env, **self.handed.env}
        self._run("after_each", replace(self._place, env=env), None)
        end_left_running(self._place.marker)

    def before_step(self, step: str, index: int, cancelled: threading.Event) -> Mapping[str, str]:
        """Run them; variables for the agent in this step are returned.

        Args:
            step: its id.
            index: 0-based.
            cancelled: ends them early when set.

        Raises:
            RunnerError: one failed.
        """
        if not self.config.before_step:
            return {}
        return self._run("before_step", self._of_step(step, index), cancelled).env

    def after_step(self, step: str, index: int, exit_code: int | None) -> None:
        """Run them, also when the session stops; failures are notes."""
        if self.config.after_step:
            code = "" if exit_code is None else str(exit_code)
            self._run("after_step", self._of_step(step, index, STEP_EXIT_CODE=code), None)

    def _of_step(self, step: str, index: int, **more: str) -> HookPlace:
        own = {"STEP_ID": step, "STEP_INDEX": str(index), **more}
        env = {**self._place.env, **self.handed.env, **own}
        return replace(self._place, env=env, label=step)

    def _run(self, phase: str, place: HookPlace, cancelled: threading.Event | None) -> Handed:
        """Run the hooks of a phase.

        Raises:
            RunnerError: one failed whose failure counts.
        """
        hooks = getattr(self.config, phase)
        if not hooks:
            return Handed()
        try:
            ran = run_hooks(phase, hooks, place, cancelled=cancelled)
        except OSError as error:
            said = f"hooks.{phase} could not be run: {error}"
            after = phase.startswith("after_")
            ran = Ran(notes=(said,)) if after else Ran(failure=said)
        self.notes += ran.notes
        if ran.failure:
            raise RunnerError(ran.failure)
        return ran.handed


def _handed(value: Mapping[str, Any]) -> Handed:
    """What was handed over.

    Raises:
        RunnerError: a hook had failed.
    """
    if value["failure"]:
        raise RunnerError(value["failure"], lasting=True)  # it runs once a session
    return Handed(value["env"], value["data"])
