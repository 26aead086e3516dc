"""Logging to a real store of MLflow."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugin.conftest import Project

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # there is no network here
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    mlflow = pytest.importorskip("mlflow")
    # A test in a directory of its own forgets the modules it was the first to import.
    pytest.importorskip("mlflow.store.tracking.sqlalchemy_store")

SUITE = """\
name: greetings
dataset: {path: cases}
runner: {type: cli, command: "cp input.yaml {output_dir}/copy.yaml"}
judges:
  - {name: copied, check: "return 'copy.yaml' in outputs['files']"}
  - {name: how long, check: "return len(outputs['case'])", score_range: [0, 10]}
thresholds: {copied: {min_pass_rate: 0.5}}
reward: {weights: {how long: 1}}
mlflow: {tags: {team: search}, tracking_uri: URI}
"""


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def logged(uri: str, experiment: str = "greetings") -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = mlflow.MlflowClient(tracking_uri=uri)
        found = client.get_experiment_by_name(experiment)
        assert found is not None
        runs = list(client.search_runs([found.experiment_id]))
    return sorted(runs, key=lambda run: run.info.end_time)


def artifact(run: Any, name: str) -> str:
    return Path(run.info.artifact_uri.removeprefix("file://"), name).read_text("utf-8")


def test_a_run_is_logged_and_again_when_it_is_gone_on_with(project: Project, uri: str) -> None:
    project.suite(SUITE.replace("URI", uri))
    project.cases(3)
    result = project.subprocess("--agent-eval", "--agent-eval-limit=1")
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    result.stdout.fnmatch_lines([f"MLflow: 1 run in experiment greetings at {uri}"])
    (first,) = logged(uri)
    header = json.loads((project.latest / "run.json").read_text("utf-8"))
    assert first.info.run_name == project.latest.name
    assert first.info.status == "FINISHED"
    assert first.info.end_time >= first.info.start_time > 1.7e12
    assert first.data.tags["team"] == "search"
    assert first.data.tags["agent_eval.outcome"] == "passed"
    assert first.data.params["runner"] == "cli"
    assert first.data.params["suite_digest"] == header["suites"][0]["digest"]
    metrics = first.data.metrics
    assert metrics["judge/copied/all/pass_rate"] == 1.0
    assert metrics["judge/copied/all/pass_rate_low"] < 1.0
    assert metrics["judge/how long/all/mean"] == 8.0
    assert metrics["reward/all/mean"] == pytest.approx(0.8)
    assert metrics["cases/passed"] == len(project.results())
    lines = artifact(first, "results.jsonl").splitlines()
    assert {json.loads(line)["case"] for line in lines} == set(project.results())
    assert yaml.safe_load(artifact(first, "summary.yaml"))["run_id"] == project.latest.name
    table = json.loads(artifact(first, "cases.json"))
    assert all(len(row) == len(table["columns"]) for row in table["data"])

    project.subprocess("--agent-eval", "--agent-eval-resume", "-n1")
    first, second = logged(uri)
    assert first.data.tags["agent_eval.superseded_by"] == second.info.run_id
    assert second.data.metrics["cases/passed"] == 3
    assert "agent_eval.superseded_by" not in second.data.tags
    assert len(project.runs) == 1


def test_each_variant_is_a_run_and_a_store_that_is_down_fails_nothing(
    project: Project, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    text = SUITE.replace(", tracking_uri: URI", ", experiment: both")
    project.suite(text + "variants: {one: {models: {skill: m1}}, two: {models: {skill: m2}}}\n")
    project.case("a")
    project.subprocess("--agent-eval").assert_outcomes(passed=2)
    found = {run.data.params["variant"]: run for run in logged(uri, "both")}
    assert {name: run.data.params["model"] for name, run in found.items()} == {
        "one": "m1",
        "two": "m2",
    }
    assert len(artifact(found["one"], "results.jsonl").splitlines()) == 1

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://user:geheim@127.0.0.1:9")
    result = project.subprocess("--agent-eval")
    assert result.ret == pytest.ExitCode.OK
    said = result.stdout.str()
    assert "logging to MLflow failed: both at http://127.0.0.1:9: " in said
    assert "geheim" not in said
    assert "Traceback" not in said
