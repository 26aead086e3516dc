"""What happens on a worker of the cluster, which has this package and nothing else of ours."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_agent_eval.cases.case import Case
from pytest_agent_eval.cluster.bundle import pack, unpack
from pytest_agent_eval.deadline import DeadlineThread
from pytest_agent_eval.errors import AgentEvalError
from pytest_agent_eval.execution.runtime import SuiteRuntime
from pytest_agent_eval.execution.trial import execute_steps
from pytest_agent_eval.runners import BUILTIN
from pytest_agent_eval.runners.base import Runner, RunnerContext
from pytest_agent_eval.suite import Suite

__all__ = ["Parcel", "Returned", "carry_out", "end_session"]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A trial on its way to a worker. The answer key and the judges stay at home.

    Attributes:
        session: identifies the session that sends it.
        suite: without judges; its directory is :attr:`files`.
        files: the suite's directory, packed.
        more_files: what of the root directory goes into it as well, packed; may be empty.
        digest: of both.
        case: without annotations; its directory is :attr:`case_files`.
        case_files: what the agent may see of it, packed.
        trial: 1-based.
        options: what else the runtime is made with: ``suite_key``, ``run_id``, ``model``,
            ``variant``, ``values``.
        max_output: cap of each of stdout and stderr, bytes.
        literal: names in braces of the command that stay as they are written.
        variables: of the caller's environment, those that the suite names.
    """

    session: str
    suite: Suite
    files: bytes
    more_files: bytes
    digest: str
    case: Case
    case_files: bytes
    trial: int
    options: Mapping[str, Any]
    max_output: int
    literal: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Returned:
    """A trial on its way back.

    Attributes:
        result: as of ``TrialResult.to_dict``, without verdicts of judges.
        recorded: there is something to judge.
        files: the trial's directory, packed.
    """

    result: Mapping[str, Any]
    recorded: bool
    files: bytes


class _Sessions:
    """The sessions whose trials this worker carries out; one object a worker process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled: dict[str, threading.Event] = {}
        self._runtimes: dict[tuple[str, str, str | None], SuiteRuntime] = {}
        self._unpacked: dict[str, str] = {}
        atexit.register(self._remove)

    def cancelled(self, session: str) -> threading.Event:
        with self._lock:
            return self._cancelled.setdefault(session, threading.Event())

    def runtime(self, parcel: Parcel) -> SuiteRuntime:
        variant = parcel.options["variant"]
        key = (parcel.session, parcel.options["suite_key"], variant)
        with self._lock:
            if key not in self._runtimes:
                directory = self._directory(parcel)
                suite = replace(
                    parcel.suite, directory=directory, file=directory / parcel.suite.file.name
                )
                self._runtimes[key] = _runtime(parcel, suite)
            return self._runtimes[key]

    def _directory(self, parcel: Parcel) -> Path:
        """The unpacked directory of a suite; of an older state of it no module stays loaded."""
        if parcel.digest not in self._unpacked:
            for old in self._unpacked.values():
                for name, module in list(sys.modules.items()):
                    if (getattr(module, "__file__", None) or "").startswith(old + os.sep):
                        del sys.modules[name]
            directory = tempfile.mkdtemp(prefix="agent-eval-suite-")
            unpack(parcel.files, directory)
            if parcel.more_files:
                unpack(parcel.more_files, directory)
            self._unpacked[parcel.digest] = directory
        return Path(self._unpacked[parcel.digest])

    def end(self, session: str) -> None:
        self.cancelled(session).set()
        with self._lock:
            for key in [key for key in self._runtimes if key[0] == session]:
                del self._runtimes[key]

    def _remove(self) -> None:
        for directory in self._unpacked.values():
            shutil.rmtree(directory, ignore_errors=True)


def carry_out(parcel: Parcel) -> Returned:
    """Let the agent work on one case; runs in a thread of a worker.

    Raises:
        RunnerError, TemplateError: the runner cannot be made.
    """
    sessions = _sessions_of_worker()
    cancelled = sessions.cancelled(parcel.session)
    shared = sessions.runtime(parcel)
    directory = tempfile.mkdtemp(prefix="agent-eval-trial-")
    try:
        case_directory = os.path.join(directory, "case")
        unpack(parcel.case_files, case_directory)
        stored, workspaces = os.path.join(directory, "stored"), os.path.join(directory, "w")
        os.mkdir(workspaces)
        steps = execute_steps(
            shared,
            replace(parcel.case, path=case_directory),
            parcel.trial,
            directory=stored,
            record_path="",
            workspace_root=workspaces,
            cancelled=cancelled,
        )
        executed = DeadlineThread("agent-eval-trial").drive(steps, cancelled=cancelled)
        names = sorted(os.listdir(stored)) if os.path.isdir(stored) else []
        return Returned(
            executed.result.to_dict(),
            executed.record is not None,
            pack(stored, names, what="what the agent left"),
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def end_session(session: str, dask_worker: Any = None) -> None:
    """End what a worker does for a session."""
    _sessions_of(dask_worker).end(session)


def _runtime(parcel: Parcel, suite: Suite) -> SuiteRuntime:
    kind = suite.config.runner.type
    if kind not in BUILTIN:
        raise AgentEvalError(f"runner type {kind} is a plugin's, which a cluster does not have")
    context = RunnerContext(
        suite=suite,
        rootdir=suite.directory,
        max_output_bytes=parcel.max_output,
        literal=parcel.literal,
        variables=parcel.variables,
    )

    def of_step(varied: Suite) -> Runner:
        return BUILTIN[varied.config.runner.type](replace(context, suite=varied))

    return SuiteRuntime.of(
        suite,
        runner=BUILTIN[kind](context),
        step_runner=of_step,
        judges=(),
        rootdir=suite.directory,
        variables=parcel.variables,
        **parcel.options,
    )


def _sessions_of_worker() -> _Sessions:
    from distributed import get_worker

    return _sessions_of(get_worker())


def _sessions_of(worker: Any) -> _Sessions:
    """Kept by the worker: two of them may share a process, as in a local cluster of threads."""
    found: _Sessions = vars(worker).setdefault("agent_eval_sessions", _Sessions())
    return found
