from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_agent_eval.cluster.bundle as bundle
from pytest_agent_eval.cluster.bundle import pack, suite_files, unpack
from pytest_agent_eval.errors import RunnerError


def _write(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _read(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def test_an_archive_keeps_files_modes_and_links(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    _write(source, {"run.sh": b"#!/bin/sh\n", "data/deep/x.bin": bytes(range(256))})
    (source / "run.sh").chmod(0o755)
    (source / "data/link").symlink_to("deep/x.bin")
    unpack(pack(str(source), ["run.sh", "data"], what="it"), str(target))
    assert _read(target)["data/deep/x.bin"] == bytes(range(256))
    assert os.access(target / "run.sh", os.X_OK)
    assert os.readlink(target / "data/link") == "deep/x.bin"


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?\.x", fullmatch=True), st.binary()))
def test_what_is_packed_comes_out_again(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    source, target = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    _write(source, files)
    unpack(pack(str(source), sorted(os.listdir(source)), what="it"), str(target))
    assert _read(target) == files


def test_what_is_left_out_does_not_travel(tmp_path: Path) -> None:
    _write(tmp_path, {"input.yaml": b"a: 1\n", "annotations.yaml": b"key: 2\n"})
    data = pack(
        str(tmp_path),
        ["input.yaml", "annotations.yaml"],
        what="it",
        leave_out=lambda path: path.startswith("annotations"),
    )
    unpack(data, str(tmp_path / "out"))
    assert set(_read(tmp_path / "out")) == {"input.yaml"}


def test_a_suite_travels_without_answers_runs_and_what_can_be_made_again(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            "eval.yaml": b"",
            "other.eval.yaml": b"",
            "tools/agent.py": b"",
            "tools/__pycache__/agent.pyc": b"",
            ".agent-eval/runs/x/results.jsonl": b"",
            ".env": b"KEY=1",
            "cases/case-001/annotations.yaml": b"",
            "prompt.md": b"",
        },
    )
    (tmp_path / "link").symlink_to("/etc")
    found = set(suite_files(str(tmp_path), str(tmp_path / "cases")))
    assert found == {"tools/agent.py", "prompt.md"}


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MAX_BUNDLE_BYTES", 1024)
    _write(tmp_path, {"big": b"x" * 2048})
    with pytest.raises(RunnerError, match="too much to send to a cluster"):
        pack(str(tmp_path), ["big"], what="the directory of eval.yaml")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="it cannot be read"):
        pack(str(tmp_path), ["nothing"], what="it")
