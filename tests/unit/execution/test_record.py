from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.cases.case import Case
from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.execution.record import Record
from pytest_agent_eval.execution.stored_files import StoredFiles

DATA: dict[str, Any] = {
    "case": "refund_yes",
    "trial": 2,
    "variant": None,
    "exit_code": 0,
    "timed_out": False,
    "duration_s": 1.25,
    "cost_usd": 0.5,
    "token_usage": {"input": 1, "output": 2, "cache_read": None, "cache_create": None},
    "num_turns": 3,
    "model": "m",
    "models_used": ["m"],
    "per_model_usage": {},
    "workspace": "/ws",
    "output": "42",
    "outputs": ["reports/daily", "sum.md"],
    "tools": ["Rea"],
}

TABLE = (
    *("files", "main_content", "main_file", "daily_content", "daily_file", "sum.md_content"),
    *("sum.md_file", "modified_files", "tool_calls", "events", "conversation", "reasoning"),
    *("final_message", "exit_code", "timed_out", "duration_s", "cost_usd", "token_usage"),
    *("num_turns", "model", "models_used", "per_model_usage", "stdout", "stderr", "annotations"),
    *("input", "answers", "inputs", "annotation_reference_content", "evidence", "case", "split"),
    *("tags", "group", "trial", "variant", "case_dir", "workspace", "input_path"),
    *("hook_outputs", "steps"),
)


@pytest.fixture
def known(case: Path) -> Case:
    return Case(
        name="refund_yes",
        path=str(case),
        input_name="input.yaml",
        annotations={
            "expected": "forty-two",
            "reference": "gold.txt",
            "list": [1, 2],
            "outside": "../trial/record.json",
            "absolute": "/etc/passwd",
            "lines": "a\nb",
            "long": "x" * 300,
            "directory": "data",
            "empty": "",
        },
        split="dev",
        group="pair-1",
        tags={"length": "short"},
        flat_tags=(),
        category="refunds",
    )


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    trial = tmp_path / "trial"
    for path, data in {
        "output/z.txt": b"z",
        "output/metrics.json": b"{}",
        "reports/daily/b.md": "b ä".encode(),
        "reports/daily/a.md": b"a",
        "reports/daily/img.png": b"\x89PNG\0\0",
        "_modified/notes.md": b"changed",
    }.items():
        file = trial / "files" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    Record.write(str(trial), DATA)
    return trial


@pytest.fixture
def record(trial: Path, known: Case) -> Record:
    return Record.from_directory(str(trial), case=known)


def events(trial: Path, *items: Mapping[str, Any]) -> None:
    (trial / "events.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))


def test_every_documented_key_is_there(record: Record) -> None:
    for key in TABLE:
        record[key]
        assert key in record
    assert set(TABLE) | {"category"} == set(record)
    assert len(record) == len(set(record))


def test_files_are_text_or_a_marker(record: Record) -> None:
    files = record["files"]
    assert list(files) == [
        "_modified/notes.md",
        "output/metrics.json",
        "output/z.txt",
        "reports/daily/a.md",
        "reports/daily/b.md",
        "reports/daily/img.png",
    ]
    assert len(files) == 6
    assert files["reports/daily/b.md"] == "b ä"
    assert files["reports/daily/b.md"] == "b ä"
    assert files["reports/daily/img.png"] == {
        "_binary": True,
        "path": "reports/daily/img.png",
        "name": "img.png",
        "size": 6,
    }
    assert "output/none" not in files
    assert repr(files).startswith("<6 files: _modified/notes.md, ")
    with pytest.raises(KeyError, match=r"did you mean 'output/z\.txt'"):
        files["output/z.tx"]
    with pytest.raises(KeyError, match="the agent left no file 'qqqqq'"):
        files["qqqqq"]


def test_main_and_named_outputs(record: Record) -> None:
    assert (record["main_file"], record["main_content"]) == ("reports/daily/a.md", "a")
    assert (record["daily_file"], record["daily_content"]) == ("reports/daily/a.md", "a")
    assert (record["sum.md_file"], record["sum.md_content"]) == (None, "")
    assert dict(record["modified_files"]) == {"notes.md": "changed"}


def test_main_falls_back_to_output_and_then_to_the_message(trial: Path, known: Case) -> None:
    for path in (trial / "files" / "reports" / "daily").iterdir():
        path.unlink()
    record = Record.from_directory(str(trial), case=known)
    assert (record["main_file"], record["main_content"]) == ("output/z.txt", "z")
    (trial / "files" / "output" / "z.txt").unlink()
    record = Record.from_directory(str(trial), case=known)
    assert (record["main_file"], record["main_content"]) == (None, "42")


def test_a_file_output(trial: Path, known: Case) -> None:
    (trial / "files" / "sum.md").write_text("sum")
    record = Record.from_directory(str(trial), case=known)
    assert (record["sum.md_file"], record["sum.md_content"]) == ("sum.md", "sum")


def test_the_case_is_in_it(record: Record, known: Case, case: Path) -> None:
    assert record["input"] == {"prompt": "What is 6 x 7?"}
    assert record["inputs"] == "**prompt**: What is 6 x 7?"
    assert record["annotations"] == known.annotations
    assert record["answers"] == {}
    assert record["annotation_reference_content"] == "42\n"
    assert record["case_dir"] == str(case)
    assert record["input_path"] == str(case / "input.yaml")
    assert (record["case"], record["split"], record["group"]) == ("refund_yes", "dev", "pair-1")
    assert (record["tags"], record["trial"], record["variant"]) == ({"length": "short"}, 2, None)


def test_only_files_inside_the_case_are_read_for_annotations(record: Record) -> None:
    contents = [key for key in record if key.startswith("annotation_")]
    assert contents == ["annotation_reference_content"]


def test_an_annotated_link_out_of_the_case(case: Path, trial: Path, known: Case) -> None:
    (case / "gold.txt").unlink()
    (case / "gold.txt").symlink_to("/etc/passwd")
    record = Record.from_directory(str(trial), case=known)
    assert "annotation_reference_content" not in record


def test_values_that_are_no_text_are_shown_as_json(trial: Path, known: Case, case: Path) -> None:
    (case / "input.yaml").write_text("a: [1, {b: ä}]\nc: true\nd: text\ne: 2024-01-01\n")
    record = Record.from_directory(str(trial), case=known)
    assert record["inputs"] == (
        '**a**: [1, {"b": "ä"}]\n\n**c**: true\n\n**d**: text\n\n**e**: "2024-01-01"'
    )


def test_without_events_the_output_speaks(record: Record) -> None:
    assert record["final_message"] == record["conversation"] == record["reasoning"] == "42"
    assert record["events"] == record["tool_calls"] == []


def test_with_events(trial: Path, known: Case) -> None:
    events(
        trial,
        {"type": "thinking", "text": "hm"},
        {"type": "message", "text": "Let me see."},
        {"type": "tool_call", "id": "1", "name": "Read", "input": {"file_path": "a.md"}},
        {"type": "tool_result", "id": "1", "text": "no", "is_error": True},
        {"type": "tool_call", "id": "2", "name": "Write", "input": {"path": "b.md"}},
        {"type": "tool_call", "id": "3", "name": "write", "input": "no mapping"},
        {"type": "message", "text": "Done."},
    )
    (trial / "stdout.log").write_text("progress ...")
    record = Record.from_directory(str(trial), case=known)
    assert record["final_message"] == "Done."
    assert record["conversation"] == "Let me see.\n\nDone."
    assert record["reasoning"] == "hm\n\nLet me see.\n\nDone."
    assert [call["name"] for call in record["tool_calls"]] == ["Read"]
    assert record["evidence"].splitlines() == [
        "turns: 3",
        "cost: $0.5000",
        "duration: 1.2 s",
        "tool calls: Read 1, Write 1, write 1 (1 failed)",
        "files read: a.md",
        "files written: b.md",
        "output files: _modified/notes.md, output/metrics.json, output/z.txt, "
        "reports/daily/a.md, reports/daily/b.md, reports/daily/img.png",
    ]


def test_what_a_function_returned_wins_over_its_events(trial: Path, known: Case) -> None:
    events(trial, {"type": "message", "text": "from the events"})
    record = Record.from_directory(str(trial), case=known)
    assert record["final_message"] == "42"


def test_evidence_without_anything(tmp_path: Path, known: Case) -> None:
    record = Record(str(tmp_path), {"duration_s": 0.0}, known)
    lines = record["evidence"].splitlines()
    assert lines[0] == "turns: unknown"
    assert lines[1] == "cost: unknown"
    assert lines[3] == "tool calls: none recorded"
    assert lines[-1] == "output files: none"


def test_logs_keep_nul_and_escapes_and_replace_what_is_no_utf8(trial: Path, known: Case) -> None:
    (trial / "stdout.log").write_bytes(b"a\0b\x1b[31m\xff\xed\xa0\x80z")
    record = Record.from_directory(str(trial), case=known)
    assert record["stdout"].startswith("a\0b\x1b[31m�")
    assert record["stdout"].endswith("z")
    record["stdout"].encode()
    assert record["stderr"] == ""


def test_a_missing_key_names_the_nearest(record: Record) -> None:
    with pytest.raises(KeyError, match="the record has no 'fles'; did you mean 'files'"):
        record["fles"]
    with pytest.raises(KeyError, match="'qqqqqq'"):
        record.view()["qqqqqq"]
    assert record.get("fles", 3) == 3
    assert record.get("trial") == 2
    assert record.view().get("fles") is None
    assert record.view().get("trial") == 2
    assert "fles" not in record.view()
    keys: list[object] = list(record.view())
    assert 3 not in keys


def test_what_one_judge_changes_no_other_sees(record: Record, known: Case) -> None:
    first, second = record.view(), record.view()
    first["annotations"]["list"].append(3)
    first["annotations"]["expected"] = "mine"
    first["input"]["prompt"] = "mine"
    first["token_usage"]["input"] = 99
    first["models_used"].clear()
    first["files"]["reports/daily/img.png"]["size"] = 0
    for other in (second, record.view(), record):
        assert other["annotations"]["list"] == [1, 2]
        assert other["annotations"]["expected"] == "forty-two"
        assert other["input"] == {"prompt": "What is 6 x 7?"}
        assert other["token_usage"]["input"] == 1
        assert other["models_used"] == ["m"]
        assert other["files"]["reports/daily/img.png"]["size"] == 6
    assert known.annotations["list"] == [1, 2]
    assert first["annotations"]["list"] == [1, 2, 3]


def test_a_record_cannot_be_written(record: Record) -> None:
    with pytest.raises(TypeError):
        record.view()["files"] = {}  # type: ignore[index]
    with pytest.raises(TypeError):
        record["files"]["a"] = "b"


def test_nothing_is_read_before_it_is_looked_at(trial: Path, known: Case) -> None:
    record = Record.from_directory(str(trial), case=known)
    (trial / "stdout.log").write_text("later")
    (trial / "files" / "output" / "later.txt").write_text("later")
    assert record["stdout"] == "later"
    assert "output/later.txt" in record["files"]
    (trial / "files" / "output" / "z.txt").unlink()
    with pytest.raises(KeyError, match="cannot be read"):
        record["files"]["output/z.txt"]


def test_views_list_the_same_keys(record: Record) -> None:
    view = record.view()
    assert list(view) == list(record)
    assert len(view) == len(record)
    assert repr(view) == repr(record) == "<record of refund_yes, trial 2>"


@pytest.mark.parametrize("text", ["", "[1]", "{", None])
def test_a_damaged_record_is_an_error(trial: Path, known: Case, text: str | None) -> None:
    if text is None:
        (trial / "record.json").unlink()
    else:
        (trial / "record.json").write_text(text)
    with pytest.raises(RunDirectoryError, match="no usable record"):
        Record.from_directory(str(trial), case=known)


def test_a_long_text_is_cut_with_a_marker(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(b"x" * (4 * 1024**2 + 1234))
    text = StoredFiles(str(tmp_path))["long.txt"]
    assert text == "x" * 4 * 1024**2 + "\n[... cut: 1,234 more bytes]"


def test_mostly_text_is_text(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("Grüße an alle".encode("latin-1"))
    (tmp_path / "noise.bin").write_bytes(os.urandom(5000).replace(b"\0", b"\xff"))
    files = StoredFiles(str(tmp_path))
    assert files["latin.txt"] == "Gr��e an alle"
    assert files["noise.bin"]["_binary"] is True


def test_no_directory_is_no_files(tmp_path: Path) -> None:
    assert dict(StoredFiles(str(tmp_path / "none"))) == {}


def test_evidence_of_a_call_that_changes_several_files(trial: Path, known: Case) -> None:
    changes = [{"path": "a.py", "kind": "add"}, {"path": "b.py", "kind": "update"}, 7]
    events(trial, {"type": "tool_call", "name": "file_change", "input": {"changes": changes}})
    record = Record.from_directory(str(trial), case=known)
    assert "files written: a.py, b.py" in record["evidence"].splitlines()
