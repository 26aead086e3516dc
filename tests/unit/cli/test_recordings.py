from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_agent_eval.cli import main
from pytest_agent_eval.llm.recordings import Recordings
from pytest_agent_eval.llm.request import ModelReply, ModelRequest
from pytest_agent_eval.results import Usage


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite's directory with three recorded calls of two models."""
    recordings = Recordings(tmp_path / "recordings")
    for number, (model, cost) in enumerate([("large", 0.5), ("large", 0.25), ("small", None)]):
        usage = Usage(cost_usd=cost, input_tokens=100, output_tokens=10 * number)
        reply = ModelReply("yes", usage=usage, model=model, date=f"2026-01-0{number + 1}T00:00:00")
        messages = ({"role": "user", "content": str(number)},)
        recordings.store(ModelRequest(f"openai/{model}", messages), reply)
    (tmp_path / "eval.yaml").write_text("dataset: {path: cases}")
    return tmp_path


@pytest.mark.parametrize("place", ["eval.yaml", "", "recordings"])
def test_calls_are_counted_by_model(
    suite: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recordings", "stats", str(suite / place)]) == 0
    first, large, small = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{suite / 'recordings'}: 3 calls, ")
    assert large == "  large: 2 calls, 200 tokens in, 10 out, $0.75, 2026-01-01 to 2026-01-02"
    assert small == "  small: 1 call, 100 tokens in, 20 out, cost unknown, 2026-01-03"


def test_as_json(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recordings", "stats", "--json", str(suite)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(row["model"], row["cost_usd"]) for row in said["models"]] == [
        ("large", 0.75),
        ("small", None),
    ]
    assert said["bytes"] == sum(path.stat().st_size for path in suite.glob("recordings/*/*"))


def test_edited_files_are_findings(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(suite.glob("recordings/*/*.json"))
    path.write_text(path.read_text().replace("openai/", "other/"))
    assert main(["recordings", "stats", str(suite)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "2 calls" in said
    assert "it was edited or renamed" in said


def test_nothing_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recordings", "stats", str(tmp_path)]) == 2
    assert "no model calls are recorded there" in capsys.readouterr().err
