"""Our side of a Dask cluster: sends trials there and stores what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_agent_eval.cases.case import Case
from pytest_agent_eval.cluster.bundle import pack, suite_files, unpack
from pytest_agent_eval.cluster.remote import Parcel, Returned, carry_out, end_session
from pytest_agent_eval.deadline import AwaitStep, DeadlineExceeded, Steps
from pytest_agent_eval.errors import AgentEvalError, RunnerError
from pytest_agent_eval.execution.manifest import case_digest, case_manifest
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.trial import Executed
from pytest_agent_eval.execution.workspace import is_answer_key
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runners.environment import references
from pytest_agent_eval.suite import Suite
from pytest_agent_eval.suite.digests import canonical_digest
from pytest_agent_eval.suite.models.hooks import HooksConfig
from pytest_agent_eval.suite.runner_models import asks_models

__all__ = ["Cluster", "ClusterError", "RemoteSuite"]

_CONNECT_S = 10
_STOP_S = 3
_RETRIES = 5
"""How often a trial goes to another worker when its own is lost."""


class ClusterError(AgentEvalError):
    """The cluster cannot be used."""


class Cluster:
    """A Dask cluster that somebody else runs.

    Attributes:
        address: of its scheduler.
        workers, threads: how many it had when we connected; ``threads`` trials run at once.
    """

    def __init__(self, address: str, client: Any, session: str) -> None:
        self.address = address
        self._client = client
        self._session = session
        counts = client.nthreads()
        self.workers = len(counts)
        self.threads = sum(counts.values())

    @classmethod
    def connect(cls, address: str, session: str) -> Cluster:
        """Connect to a scheduler.

        Args:
            address: ``tcp://host:port``, or what else ``distributed.Client`` takes.
            session: the same in no other session.

        Raises:
            ClusterError: not installed, nobody there, no worker, or no package on a worker.
        """
        try:
            from distributed import Client
        except ImportError:
            raise ClusterError(
                "distributed is not installed: pip install 'pytest-agent-eval[dask]'"
            ) from None
        if ":" not in address:
            raise ClusterError(
                f"{address}: no address of a Dask scheduler, such as tcp://host:8786"
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of versions that differ a little
                client = Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ClusterError(f"{address}: no Dask scheduler answers there: {error}") from None
        self = cls(address, client, session)
        try:
            self._check()
        except BaseException:
            self.close()
            raise
        return self

    def _check(self) -> None:
        if not self.workers:
            raise ClusterError(f"{self.address}: the scheduler has no worker")
        try:
            answers = self._client.run(_version, on_error="return")
        except Exception as error:
            raise ClusterError(f"{self.address}: the workers do not answer: {error}") from None
        ours = _version()
        for worker, answer in answers.items():
            if isinstance(answer, BaseException) or answer is None:
                raise ClusterError(f"worker {worker} does not have pytest-agent-eval installed")
            if answer != ours:
                raise ClusterError(
                    f"worker {worker} has pytest-agent-eval {answer}, we have {ours}"
                )

    def submit(self, parcel: Parcel) -> Any:
        """Send a trial."""
        return self._client.submit(carry_out, parcel, pure=False, retries=_RETRIES)

    def stop(self) -> None:
        """End the trials of this session on all workers."""

        def tell() -> None:
            with contextlib.suppress(Exception):  # the scheduler may be gone, with its workers
                self._client.run(end_session, self._session, on_error="ignore")

        # A worker that hangs must not keep us.
        thread = threading.Thread(target=tell, name="agent-eval-dask", daemon=True)
        thread.start()
        thread.join(_STOP_S)

    def close(self) -> None:
        """Leave the cluster as it is."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)


class RemoteSuite:
    """One suite (or a variant of it) whose trials are carried out on a cluster.

    Args:
        cluster: where.
        session: of :meth:`Cluster.connect`.
        suite: as the variant changes it.
        options: as of ``Parcel.options``.
        max_output: cap of each of stdout and stderr, bytes.
        literal: names in braces of the command that stay as they are written.
        rootdir: where modules of a Python runner may lie as well.
        env: variables for the agent, on top of ``execution.env``.

    Raises:
        RunnerError: it cannot be carried out there.
    """

    def __init__(
        self,
        cluster: Cluster,
        session: str,
        suite: Suite,
        *,
        options: Mapping[str, Any],
        max_output: int,
        literal: frozenset[str],
        rootdir: str,
        env: Mapping[str, str],
    ) -> None:
        _refuse(suite)
        config = suite.config
        self._cluster = cluster
        self._files = tuple(config.dataset.workspace.files)
        directory, dataset = str(suite.directory), str(suite.dataset_directory)
        what = f"the directory of {suite.shown}"
        examples = [one.examples.source for one in config.judges if one.examples is not None]
        labels = {  # a part of the answer key
            os.path.relpath(os.path.join(directory, path), directory)
            for path in (*suite.labels, *suite.examples, *examples)
        }
        paths = [path for path in suite_files(directory, dataset) if path not in labels]
        files = pack(directory, paths, what=what)
        module = _module_elsewhere(config.runner.function, directory, rootdir)
        self._parcel = Parcel(
            session=session,
            suite=_without_judges(suite, env),
            files=files,
            more_files=pack(rootdir, [module], what=module) if module else b"",
            digest=canonical_digest([files.hex(), module]),
            case=Case("", "", "", {}, "dev", None, {}, (), None),
            case_files=b"",
            trial=1,
            options=dict(options),
            max_output=max_output,
            literal=literal,
            variables={
                name: os.environ[name]
                for name in references({**config.execution.env, **config.runner.env}.values())
                if name in os.environ
            },
        )

    def steps(
        self,
        case: Case,
        trial: int,
        *,
        directory: str,
        record_path: str,
        cancelled: threading.Event,
    ) -> Steps[Executed]:
        """Let an agent work on a case on the cluster, and store what came of it here."""
        digest = case_digest(case.path, case_manifest(case.path))
        parcel = replace(
            self._parcel, case=_visible(case), case_files=self._visible_files(case), trial=trial
        )
        future = self._cluster.submit(parcel)
        try:
            yield AwaitStep(
                lambda: future.result() and None,
                float("inf"),
                start=lambda: _ended(future),
                limit=float("inf"),
                late=lambda: None,
            )
            returned: Returned = future.result()
        except DeadlineExceeded:
            future.cancel()
            raise RunnerError("cancelled before it ended") from None
        except (RunnerError, AgentEvalError):
            raise
        except (Exception, asyncio.CancelledError) as error:
            said = str(error) or type(error).__name__
            raise RunnerError(f"the cluster lost the trial: {said}") from None
        finally:
            future.release()
        unpack(returned.files, directory)
        result = replace(
            TrialResult.from_dict(returned.result),
            record=record_path,
            case_digest=digest,
            split=case.split,
            workspace="",
        )
        if not returned.recorded:
            return Executed(result, None)
        return Executed(result, Record.from_directory(directory, case=case))

    def _visible_files(self, case: Case) -> bytes:
        """The input and what ``workspace.files`` lists; what is missing is told by the trial."""
        paths = [case.input_name, *map(os.path.normpath, self._files)]
        there = [p for p in dict.fromkeys(paths) if os.path.lexists(os.path.join(case.path, p))]
        return pack(case.path, there, what=f"case {case.name}", leave_out=_is_key)


def _version() -> str:
    from pytest_agent_eval import __version__

    return __version__


def _is_key(path: str) -> bool:
    return os.sep not in path and is_answer_key(path)


def _visible(case: Case) -> Case:
    return replace(case, path="", annotations={})


def _without_judges(suite: Suite, env: Mapping[str, str]) -> Suite:
    execution = suite.config.execution
    execution = execution.model_copy(update={"env": {**execution.env, **env}})
    none = HooksConfig.model_validate({})
    config = suite.config.model_copy(
        update={"judges": (), "thresholds": {}, "hooks": none, "execution": execution}
    )
    return replace(
        suite,
        config=config,
        variants={},
        placeholders={},
        positions={},
        warnings=(),
        labels={},
        examples={},
    )


def _refuse(suite: Suite) -> None:
    config = suite.config
    if (config.runner.function or "").startswith("fixture:"):
        raise RunnerError(
            "a fixture lives in this process and cannot be the agent on a cluster", lasting=True
        )
    if config.runner.workspace_mode == "repo":
        raise RunnerError(
            "workspace_mode repo needs this checkout, which a cluster does not have", lasting=True
        )
    if asks_models(config):
        raise RunnerError(
            "a model is asked from this process, beside its recordings (litellm, responses-api); a "
            "cluster has neither",
            lasting=True,
        )
    if suite.handlers:
        raise RunnerError(
            "questions and tool calls (inputs.tools) are answered in this process, beside the "
            "answers; an agent on a cluster cannot ask here",
            lasting=True,
        )
    if config.execution.mode == "batch":
        raise RunnerError(
            "mode batch is one task, which a cluster would not make faster", lasting=True
        )
    for phase in ("before_each", "after_each", "before_step", "after_step"):
        if getattr(config.hooks, phase):
            raise RunnerError(
                f"hooks.{phase} runs in the workspace, which is on a cluster", lasting=True
            )


def _module_elsewhere(function: str | None, directory: str, rootdir: str) -> str:
    """The module or package of a Python runner that lies in the root directory, relative to it."""
    top = (function or "").partition(":")[0].partition(".")[0]
    if not top:
        return ""
    for place in (directory, rootdir):
        for name in (f"{top}.py", top):
            if os.path.exists(os.path.join(place, name)):
                return "" if place == directory else name
    return ""


async def _ended(future: Any) -> None:
    """Until the future has ended, in whichever way."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    future.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
    await ended.wait()
