from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.suite import is_suite


@pytest.mark.parametrize(
    "data",
    [
        b"dataset: {path: a}\nrunner: {}\n",
        b"{dataset: {path: a}, judges: []}",
        b"'dataset': x\n\"skill\": y\n",
        b"\xef\xbb\xbfdataset:\nexecution:\n",
        b"? [a, b]\n: c\ndataset: 1\njudges: 2\n",
        b"a: &x {judges: 1}\nb: *x\ndataset: 1\nskill: 2\n",
        b"dataset: {path: a\njudges:\n",
        b"dataset: \xff\njudges: []\n",
        b"dataset:\trunner\n  - x: [\nrunner: y\n",
    ],
)
def test_suites(data: bytes) -> None:
    assert is_suite(data).suite
    assert is_suite(data).reason == ""


@pytest.mark.parametrize(
    ("data", "missing", "reason"),
    [
        (b"", 2, "lacks dataset, and one of execution, skill, runner, judges"),
        (b"judges: []\n", 1, "lacks dataset"),
        (b"dataset: coco\n", 1, "lacks one of execution"),
        (b"- dataset\n- judges\n", 0, "not a mapping"),
        (b"dataset judges", 0, "not a mapping"),
        (b"a: {dataset: 1, judges: 2}\n", 2, "lacks dataset"),
        (b"[dataset, judges]: 1\n", 2, "lacks dataset"),
        (b"&a dataset: 1\n*a : 2\n", 1, "lacks one of"),
        (b"a: 1\n---\ndataset: 1\njudges: 2\n", 2, "lacks dataset"),
        (b"dataset: [\n", 1, "not valid YAML"),
        (b"\x00\x01\x02", 0, "binary"),
        (b"\x89PNG\x00dataset", 2, "not valid YAML"),
        (b"# dataset\n", 2, "lacks dataset"),
    ],
)
def test_other_files(data: bytes, missing: int, reason: str) -> None:
    recognition = is_suite(data)
    assert not recognition.suite
    assert len(recognition.missing) == missing
    assert reason in recognition.reason


def test_large_files_are_not_parsed() -> None:
    padding = b"".join(b"k%d: v\n" % number for number in range(40_000))
    assert is_suite(b"dataset: a\nrunner: b\n" + padding).suite
    assert not is_suite(b"dataset: a\n" + padding).suite


def test_files(tmp_path: Path) -> None:
    (tmp_path / "eval.yaml").write_bytes(b"dataset: a\njudges: b\n")
    assert is_suite(tmp_path / "eval.yaml").suite
    assert is_suite(str(tmp_path / "eval.yaml")).suite
    assert "cannot be read" in is_suite(tmp_path / "none.yaml").reason
    assert "cannot be read" in is_suite(tmp_path).reason


@given(st.binary(max_size=100) | st.text(max_size=100).map(str.encode))
def test_nothing_raises(data: bytes) -> None:
    for prefix in (b"", b"dataset: ", b"dataset: 1\njudges: "):
        recognition = is_suite(prefix + data)
        assert recognition.suite or recognition.reason
