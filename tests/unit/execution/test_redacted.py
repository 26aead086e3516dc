from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_agent_eval.cases.case import Case
from pytest_agent_eval.execution.collect import Collected, collect
from pytest_agent_eval.execution.events import read_events
from pytest_agent_eval.execution.metrics import read_metrics
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.redacted import redact_logs, redacted_execution
from pytest_agent_eval.execution.workspace import Contents, Workspace, create_workspace
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.results import Usage
from pytest_agent_eval.runners.base import Execution

KEY = "sk-0123456789"
HIDDEN = "***MY_KEY***"
SECRETS = Secrets.of({"MY_KEY": KEY})


@pytest.fixture
def workspace(case: Path, tmp_path: Path) -> Workspace:
    return create_workspace(
        str(tmp_path / "ws"),
        case="refund_yes",
        case_directory=str(case),
        input_name="input.yaml",
        contents=Contents(files=("notes.md",), outputs=("reports",)),
    )


@pytest.fixture
def ws(workspace: Workspace) -> Path:
    return Path(workspace.directory)


def collected(
    workspace: Workspace, tmp_path: Path, secrets: Secrets = SECRETS, *outputs: str
) -> tuple[Collected, dict[str, bytes]]:
    trial = tmp_path / "trial"
    found = collect(workspace, str(trial), ("reports", *outputs), secrets=secrets)
    files = trial / "files"
    return found, {
        str(path.relative_to(files)): path.read_bytes()
        for path in files.rglob("*")
        if path.is_file()
    }


def test_collected_files_hold_no_secret(workspace: Workspace, ws: Path, tmp_path: Path) -> None:
    (ws / "output" / "a.txt").write_text(f"my key is {KEY}.")
    (ws / "output" / "b.bin").write_bytes(b"\0\xff" + KEY.encode() + b"\xff")
    # Longer than what is read at once, the secret across the border.
    (ws / "reports" / "big.txt").write_text("." * (1024 * 1024 - 4) + KEY + "." * 2_000_000)
    (ws / "notes.md").write_text(KEY)
    found, files = collected(workspace, tmp_path)
    assert files == {
        "output/a.txt": b"my key is ***MY_KEY***.",
        "output/b.bin": b"\0\xff***MY_KEY***\xff",
        "reports/big.txt": b"." * (1024 * 1024 - 4) + HIDDEN.encode() + b"." * 2_000_000,
        "_modified/notes.md": HIDDEN.encode(),
    }
    assert (found.files, found.modified, found.notes) == (3, 1, ())
    assert (ws / "output" / "a.txt").read_text() == f"my key is {KEY}."


def test_names_of_files_hold_no_secret(workspace: Workspace, ws: Path, tmp_path: Path) -> None:
    (ws / "output" / KEY).mkdir()
    (ws / "output" / KEY / f"{KEY}.txt").write_text("a")
    (ws / "output" / f"{HIDDEN}.txt").write_text("b")
    (ws / "output" / f"{KEY}.txt").write_text("c")
    (ws / f"{KEY}.md").write_text("d")
    os.symlink("nowhere", ws / "output" / f"link-{KEY}")
    found, files = collected(workspace, tmp_path)
    assert files == {
        f"output/{HIDDEN}/{HIDDEN}.txt": b"a",
        f"output/{HIDDEN}.txt": b"b",
        f"output/{HIDDEN}-2.txt": b"c",
        f"_modified/{HIDDEN}.md": b"d",
    }
    assert found.notes == (f"not collected: output/link-{HIDDEN} is a symbolic link",)


def test_paths_that_the_suite_names_stay(workspace: Workspace, ws: Path, tmp_path: Path) -> None:
    # Names such as S3_KEY look secret and often are not.
    secrets = Secrets.of({"S3_KEY": "reports/customer", "OUT_KEY": "customer"})
    (ws / "output" / "customer.md").write_text("a")
    (ws / "output" / "customer").mkdir()
    (ws / "output" / "customer" / "customer.md").write_text("b")
    _, files = collected(workspace, tmp_path, secrets, "output/customer.md", "output/customer")
    assert files == {"output/customer.md": b"a", "output/customer/***OUT_KEY***.md": b"b"}


def test_deleted_files_are_named_without_secrets(case: Path, tmp_path: Path) -> None:
    (case / f"{KEY}.md").write_text("x")
    workspace = create_workspace(
        str(tmp_path / "ws"),
        case="refund_yes",
        case_directory=str(case),
        input_name="input.yaml",
        contents=Contents(files=(f"{KEY}.md",)),
    )
    (Path(workspace.directory) / f"{KEY}.md").unlink()
    assert collected(workspace, tmp_path)[0].notes == (f"the agent deleted {HIDDEN}.md",)


def test_metrics_and_events_of_a_workspace(workspace: Workspace, ws: Path, tmp_path: Path) -> None:
    (ws / "output" / "metrics.json").write_text(
        json.dumps({"model": KEY, "num_turns": "x" * 50 + KEY})
    )
    event = {"type": "message", "text": f"key {KEY}"}
    (ws / "output" / "events.jsonl").write_text(json.dumps(event) + "\n")
    found, files = collected(workspace, tmp_path)
    assert found.usage == Usage(model=HIDDEN)
    assert found.events == ({"type": "message", "text": f"key {HIDDEN}", "agent": "root"},)
    # The note is cut in the middle of the value.
    assert found.notes == (
        f'metrics.json: num_turns is "{"x" * 50}***MY_KEY, expected a count; ignored',
    )
    assert KEY.encode() not in b"".join(files.values())


def test_keys_of_metrics_and_events_survive_secrets_that_look_like_them() -> None:
    secrets = Secrets.of(
        {"A_KEY": "cost_usd", "B_KEY": "tool_call", "C_KEY": "is_error", "D_KEY": "12345678"}
    )
    usage, notes = read_metrics(b'{"cost_usd": 1.5, "model": "cost_usd", "num_turns": 3}', secrets)
    assert (usage, notes) == (Usage(cost_usd=1.5, model="***A_KEY***", num_turns=3), ())
    lines = (
        b'{"type": "tool_call", "name": "tool_call", "is_error": true, "input": {"pin": 12345678}}'
    )
    events, _ = read_events(lines, secrets=secrets)
    assert events == [
        {
            "type": "tool_call",
            "name": "***B_KEY***",
            "is_error": True,
            "input": {"pin": "***D_KEY***"},
            "agent": "root",
        }
    ]


def test_a_record_is_stored_without_secrets(tmp_path: Path, case: Path) -> None:
    secrets = Secrets.of({"MY_KEY": KEY, "N_KEY": "duration_s"})
    data = {
        "suite": KEY,
        "case": KEY,
        "trial": 1,
        "variant": None,
        "duration_s": 2.5,
        "model": f"m-{KEY}",
        "output": f"quoted \\ {KEY} duration_s",
        "outputs": [f"out/{KEY}"],
    }
    stored = Record.write(str(tmp_path), data, secrets)
    assert json.loads((tmp_path / "record.json").read_text()) == stored
    assert stored == {
        **data,
        "model": f"m-{HIDDEN}",
        "output": f"quoted \\ {HIDDEN} ***N_KEY***",
    }
    opened = Record.from_directory(
        str(tmp_path), case=Case("c", str(case), "input.yaml", {}, "dev", None, {}, (), None)
    )
    assert opened["final_message"] == stored["output"]
    assert opened["duration_s"] == 2.5


def test_what_a_runner_returns() -> None:
    execution = Execution(
        output=KEY,
        error=KEY,
        failure="agent",
        events=({"type": "message", "text": KEY}, {"strange": KEY}),
        usage=Usage(models_used=(KEY,)),
        notes=(KEY,),
    )
    assert redacted_execution(execution, NO_SECRETS) is execution
    assert redacted_execution(execution, SECRETS) == Execution(
        output=HIDDEN,
        error=HIDDEN,
        failure="agent",
        events=(
            {"type": "message", "text": HIDDEN, "agent": "root"},
            {"type": "other", "raw": {"strange": HIDDEN}},
        ),
        usage=Usage(models_used=(HIDDEN,)),
        notes=(HIDDEN,),
    )


def test_logs_that_a_runner_left(tmp_path: Path) -> None:
    big = b"." * 1_500_000 + KEY.encode() + b"\xff"
    (tmp_path / "stdout.log").write_bytes(big)
    (tmp_path / "stderr.log").write_bytes(b"nothing")
    (tmp_path / "events.jsonl").write_text(json.dumps({"type": "message", "text": KEY}) + "\n")
    before = (tmp_path / "stderr.log").stat()
    redact_logs(str(tmp_path), NO_SECRETS)
    assert (tmp_path / "stdout.log").read_bytes() == big
    redact_logs(str(tmp_path), SECRETS)
    assert (tmp_path / "stdout.log").read_bytes() == big.replace(KEY.encode(), HIDDEN.encode())
    after = (tmp_path / "stderr.log").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert read_events((tmp_path / "events.jsonl").read_bytes())[0][0]["text"] == HIDDEN
    assert len(list(tmp_path.iterdir())) == 3


def test_no_logs_at_all(tmp_path: Path) -> None:
    redact_logs(str(tmp_path), SECRETS)
    assert list(tmp_path.iterdir()) == []
