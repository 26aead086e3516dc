"""Where a session's results are stored: which run directory, and its writer."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_agent_eval.active_suite import ActiveSuite
    from pytest_agent_eval.options import Options
    from pytest_agent_eval.runs.baseline import Baseline
    from pytest_agent_eval.runs.stored import StoredRun
    from pytest_agent_eval.runs.writer import RunWriter

__all__ = ["RunStore"]

RUN = "agent_eval_run"
EARLIER = "agent_eval_earlier"
BASELINE = "agent_eval_baseline"
"""Keys under which the controller of pytest-xdist tells its workers the path of the run, of the run
that is gone on with or judged again, and of the one that it is compared with."""


class RunStore:
    """The run of one session; the directory is made when something is stored for the first time.

    Args:
        options: of the session.
        rootdir: of the session.
        suites: those that are open, by key.
        worker: what the controller of pytest-xdist told this worker; None in every other process.
    """

    def __init__(
        self,
        options: Options,
        rootdir: Path,
        suites: Mapping[str, ActiveSuite],
        worker: Mapping[str, Any] | None,
    ) -> None:
        self._options = options
        self._rootdir = rootdir
        self._suites = suites
        self._worker = worker
        self._path: Path | None = None
        self._earlier: StoredRun | None = None
        self._baseline: Baseline | None = None
        self._lock = threading.RLock()
        self._writer: RunWriter | None = None

    def writer(self) -> RunWriter:
        """The run's writer.

        Raises:
            RunDirectoryError: it cannot be made.
        """
        with self._lock:
            if self._writer is None:
                self._writer = self._open()
            return self._writer

    @property
    def opened(self) -> RunWriter | None:
        """The run's writer if it was made."""
        return self._writer

    @property
    def earlier(self) -> StoredRun | None:
        """The run that is gone on with, or judged again; None where the session is a new one.

        Raises:
            RunDirectoryError: no such run is stored, or it cannot be read.
        """
        asked = self._options.resume or self._options.rescore
        if asked is None:
            return None
        with self._lock:
            if self._earlier is None:
                from pytest_agent_eval.runs.finding import find_run
                from pytest_agent_eval.runs.stored import StoredRun

                told = (self._worker or {}).get(EARLIER)
                path = Path(told) if told else find_run(Path(self.directory()), asked)
                self._earlier = StoredRun.open(path)
            return self._earlier

    @property
    def baseline(self) -> Baseline | None:
        """The run that this one is compared with; None where none is named. Asked for before
        this session makes a run of its own, which would be the latest then.

        Raises:
            RunDirectoryError: no such run is stored, or it cannot be compared with.
        """
        asked = self._options.baseline
        if asked is None:
            return None
        with self._lock:
            if self._baseline is None:
                from pytest_agent_eval.runs.baseline import Baseline
                from pytest_agent_eval.runs.finding import find_run

                told = (self._worker or {}).get(BASELINE)
                if told:  # the controller has looked at it
                    self._baseline = Baseline.open(Path(told))
                else:
                    path = find_run(Path(self.directory()), asked)
                    self._baseline = Baseline.open(path, other_than=self.earlier)
            return self._baseline

    def reserve(self) -> Path:
        """The path of this session's run directory, which may not be there yet."""
        if self._path is None and self._options.resume is not None and self.earlier is not None:
            self._path = self.earlier.path
        if self._path is None:
            from pytest_agent_eval.runs.names import new_run_name

            self._path = Path(self.directory(), new_run_name())
        return self._path

    def directory(self) -> str:
        """Where runs are kept; beside the suite if the default place is in its dataset."""
        runs = self._options.runs
        for suite in self._suites.values():
            if runs.startswith(str(suite.suite.dataset_directory) + os.sep):
                return str(suite.suite.directory / ".agent-eval" / "runs")
        return runs

    def parts(self, suite: ActiveSuite, label: str) -> tuple[str, ...]:
        """Where a case lies in the run: by its name, below its suite if there are several."""
        if len(self._suites) == 1:
            return (label,)
        return (suite.key.replace("/", "~"), label)

    def _open(self) -> RunWriter:
        from pytest_agent_eval.runs.writer import RunWriter

        if self._worker is not None:
            return RunWriter.join(Path(self._worker[RUN]), str(self._worker["workerid"]))
        from pytest_agent_eval.redaction import Secrets
        from pytest_agent_eval.runs.header import make_header

        asked_for = self._options.to_dict()
        if self._baseline is not None:
            asked_for["baseline"] = self._baseline.name
        options = Secrets.of(os.environ).value(asked_for)
        header = make_header(suites=(), options=options, rootdir=self._rootdir)
        path = self.reserve()
        if self._options.resume is not None:
            writer = RunWriter.resume(path, header)
        else:
            if self._earlier is not None:
                header["rescored_from"] = self._earlier.path.name
            writer = RunWriter.create(path.parent, header, name=path.name)
        asked = [
            info.to_dict()
            for suite in self._suites.values()
            if suite.asked
            for info in suite.infos()
        ]
        if asked:  # a session that is killed cannot say it at its end
            writer.describe(asked)
        return writer
