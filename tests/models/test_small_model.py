"""The example's LLM judge against a small real model, live and replayed."""

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

from tests.models.small_model import small_model

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
