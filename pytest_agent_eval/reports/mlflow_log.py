"""Logging to MLflow: one MLflow run for each suite that wants it, or for each of its variants.

MLflow takes seconds to import and is not there unless the extra ``mlflow`` is: it is imported when
the run has ended, and looked for before the first agent starts.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pytest_agent_eval.errors import ExportError
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.reports.handler import FinishedRun, ReportHandler
from pytest_agent_eval.reports.mlflow_record import MlflowRecord, record_of
from pytest_agent_eval.reports.numbers import count
from pytest_agent_eval.reports.printable import one_line
from pytest_agent_eval.results import TrialResult

__all__ = ["MlflowLog", "MlflowPlan", "handlers_of", "what_is_missing"]

DEFAULT_URI = "http://127.0.0.1:5000"
"""Where a store is looked for that neither the suite nor MLFLOW_TRACKING_URI names."""
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_VARIABLES = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""Set while we log, unless the user did: a store that is down costs seconds, not minutes."""
_SUPERSEDED = "agent_eval.superseded_by"
_BATCH = 500
"""Metrics in one request; MLflow takes 1,000."""


@dataclass(frozen=True)
class MlflowPlan:
    """The block ``mlflow`` of one suite, or of a variant of it.

    Attributes:
        suite, variant: as in ``TrialResult``.
        experiment: its name.
        tracking_uri: of the store; None for that of the environment.
        tags: of each MLflow run.
    """

    suite: str
    variant: str | None
    experiment: str
    tracking_uri: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types, from which ``MlflowPlan(**data)`` makes it again."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {
            "tags": dict(self.tags)
        }


def uri_of(plan: MlflowPlan, environment: Mapping[str, str]) -> str:
    """Where a suite's results are logged: what it names, the environment, or this machine."""
    return plan.tracking_uri or environment.get("MLFLOW_TRACKING_URI") or DEFAULT_URI


def what_is_missing(plan: MlflowPlan, environment: Mapping[str, str]) -> str:
    """What has to be installed before anything can be logged; empty if nothing is."""
    if importlib.util.find_spec("mlflow") is None:
        return "needs the extra mlflow: pip install 'pytest-agent-eval[mlflow]'"
    scheme = uri_of(plan, environment).partition(":")[0].partition("+")[0].lower()
    if scheme in _DATABASES and importlib.util.find_spec("sqlalchemy") is None:
        return f"a store of type {scheme} needs all of MLflow: pip install mlflow"
    return ""


def handlers_of(plans: Sequence[MlflowPlan]) -> list[ReportHandler]:
    """The reports that suites with a block ``mlflow`` ask for."""
    return [MlflowLog(plans)] if plans else []


class MlflowLog:
    """Logs the suites that ask for it when the run has ended."""

    def __init__(self, plans: Sequence[MlflowPlan]) -> None:
        self._plans = plans

    def trial(self, result: TrialResult) -> None:
        """Nothing: the run holds all trials."""

    def finished(self, run: FinishedRun) -> str:
        """Log.

        Raises:
            ExportError: the store cannot be reached, or refuses; the run is stored all the same.
        """
        plans = {(plan.suite, plan.variant): plan for plan in self._plans}
        told: dict[tuple[str, str], int] = {}
        for suite in run.summary.suites:
            plan = plans.get((suite.info.key, suite.info.variant))
            if plan is None or not suite.cases:
                continue
            uri = uri_of(plan, os.environ)
            record = record_of(run, suite, plan.tags)
            try:
                with _quietly():
                    _log(uri, plan.experiment, record, run)
            except Exception as error:  # of a foreign package: anything
                said = Secrets.of(os.environ).text(str(error) or type(error).__name__)
                why = one_line(said.replace(uri, shown_uri(uri)), 300)
                where = f"{one_line(plan.experiment)} at {shown_uri(uri)}"
                raise ExportError(f"logging to MLflow failed: {where}: {why}") from None
            place = (plan.experiment, shown_uri(uri))
            told[place] = told.get(place, 0) + 1
        return "\n".join(
            f"MLflow: {count(number, 'run')} in experiment {one_line(name)} at {one_line(uri)}"
            for (name, uri), number in told.items()
        )


def shown_uri(uri: str) -> str:
    """A store's address without a password."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """MLflow warns, logs and prints of its own; what a session needs to know of it we say."""
    added = {name: text for name, text in _VARIABLES.items() if name not in os.environ}
    os.environ.update(added)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _log(uri: str, experiment: str, record: MlflowRecord, run: FinishedRun) -> None:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

    client = MlflowClient(tracking_uri=uri)
    known = client.get_experiment_by_name(experiment)
    place = client.create_experiment(experiment) if known is None else known.experiment_id
    # What an earlier session logged of the same run, which this session went on with.
    mine = f"tags.`agent_eval.run_id` = '{run.run_id}'"
    before = [one for one in client.search_runs([place], mine) if _is_earlier(one, record)]
    started, ended = _ms(run.header.get("started")), _ms(run.header.get("ended"))
    made = client.create_run(
        place, start_time=started, tags=dict(record.tags), run_name=record.name
    )
    made_id = made.info.run_id
    try:
        now = ended or int(datetime.now(timezone.utc).timestamp() * 1000)
        metrics = [Metric(name, value, now, 0) for name, value in record.metrics.items()]
        parameters = [Param(name, text) for name, text in record.parameters.items()]
        client.log_batch(made_id, params=parameters)
        for start in range(0, len(metrics), _BATCH):
            client.log_batch(made_id, metrics=metrics[start : start + _BATCH])
        for name, text in record.files.items():
            client.log_text(made_id, text, name)
        for earlier in before:
            client.log_batch(earlier.info.run_id, tags=[RunTag(_SUPERSEDED, made_id)])
    except BaseException:
        with contextlib.suppress(Exception):
            client.set_terminated(made_id, "FAILED", end_time=ended)
        raise
    client.set_terminated(made_id, record.status, end_time=ended)


def _is_earlier(logged: Any, record: MlflowRecord) -> bool:
    tags = logged.data.tags
    names = ("agent_eval.suite", "agent_eval.variant")
    same = all(tags.get(name) == record.tags.get(name) for name in names)
    return same and _SUPERSEDED not in tags


def _ms(text: Any) -> int | None:
    """Milliseconds since 1970 of a time as ``run.json`` writes it; None where there is none."""
    try:
        return int(datetime.fromisoformat(str(text).replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return None
