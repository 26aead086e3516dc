"""A small real model as the example's judge and as agents, live and replayed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_cpp", reason="needs a model: python3 -m tox -e live")

from tests.models.small_model import NAME, small_model

EXAMPLE = Path(__file__).parents[2] / "example_project"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with small_model() as base:
        yield base


def warm(project: Path, mode: str, **environment: str) -> dict[str, dict[str, Any]]:
    """Case -> verdict of the judge that asks a model, of a few cases of the example."""
    # A plugin that shuffles would have the limit choose others each time.
    plugins = ["-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "evals/eval.yaml"]
    done = subprocess.run(
        [*command, "--agent-eval-llm", mode, "--agent-eval-limit", "3"],
        cwd=project,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    lines = (project / ".agent-eval/runs/latest/results.jsonl").read_text().splitlines()
    found = {}
    for line in map(json.loads, lines):
        for verdict in line.get("verdicts", ()):
            if verdict["judge"] == "warm":
                found[line["case"]] = verdict
    return found


def test_a_real_model_judges_and_its_recordings_say_the_same(tmp_path: Path, server: str) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("recordings", ".agent-eval"))
    live = warm(project, "record", OPENAI_API_BASE=server, OPENAI_API_KEY="none")
    assert len(live) == 6
    for verdict in live.values():
        assert verdict["value"] in (1, 2, 3, 4, 5)
        assert verdict["rationale"]
        assert verdict["asked"]["output_tokens"] > 0
        assert verdict["asked"]["recorded"] == 0
    replayed = warm(project, "replay", OPENAI_API_BASE="http://127.0.0.1:9/v1", OPENAI_API_KEY="")
    assert replayed.keys() == live.keys()
    for case, verdict in replayed.items():
        assert verdict["asked"]["recorded"] == 1
        for key in ("value", "rationale", "passed"):
            assert verdict[key] == live[case][key]


AGENTS = """\
name: small
dataset: {path: cases}
models: {skill: openai/MODEL}
execution: {prompt: "Write one short sentence about {thing}.", timeout: 300}
runner:
  type: litellm
  system_prompt: You write one short sentence.
  settings: {temperature: 0, max_tokens: 40, seed: 1}
judges:
  - name: wrote
    check: |
      said = outputs["final_message"]
      return bool(said.strip()), said
  - name: counted
    builtin: token_budget
    arguments: {max_tokens: 4000}
"""


def outcomes(project: Path, mode: str, **environment: str) -> dict[str, Any]:
    """Case -> all that a replay may not change."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--agent-eval"]
    done = subprocess.run(
        [*command, "eval.yaml", "--agent-eval-llm", mode],
        cwd=project,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    run = project / ".agent-eval/runs/latest"
    found = {}
    for line in map(json.loads, (run / "results.jsonl").read_text().splitlines()):
        if "case" not in line:
            continue
        record = run / line["record"]
        verdicts = [(one["judge"], one["value"], one["rationale"]) for one in line["verdicts"]]
        tokens = (line["usage"]["input_tokens"], line["usage"]["output_tokens"])
        assert all(tokens)
        output = json.loads((record / "record.json").read_text())["output"]
        events = (record / "events.jsonl").read_text()
        found[line["case"]] = (line["status"], verdicts, tokens, output, events)
    return found


def test_a_real_model_is_the_agent_and_its_recordings_end_the_same(
    tmp_path: Path, server: str
) -> None:
    (tmp_path / "eval.yaml").write_text(AGENTS.replace("MODEL", NAME))
    for thing in ("tea", "rain", "bridges"):
        case = tmp_path / "cases" / thing
        case.mkdir(parents=True)
        (case / "input.yaml").write_text(f"thing: {thing}\n")
    live = outcomes(tmp_path, "record", OPENAI_API_BASE=server, OPENAI_API_KEY="none")
    assert len(live) == 3
    assert {status for status, *_ in live.values()} == {"passed"}
    assert len({output for *_, output, _ in live.values()}) == 3
    offline = {"OPENAI_API_BASE": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": ""}
    assert outcomes(tmp_path, "replay", **offline) == live
