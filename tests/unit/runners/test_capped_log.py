from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.runners.capped_log import CappedLog


def written(directory: str, chunks: list[bytes], cap: int) -> bytes:
    path = Path(directory, "log")
    log = CappedLog(str(path), cap)
    for chunk in chunks:
        log.write(chunk)
    log.close()
    assert log.total == sum(map(len, chunks))
    return path.read_bytes() if path.exists() else b""


@given(
    sizes=st.lists(st.integers(1, 900), max_size=12),
    cap=st.integers(1024, 3000),
)
def test_head_and_tail_are_kept_whatever_the_chunks(sizes: list[int], cap: int) -> None:
    data = bytes(number % 251 for number in range(sum(sizes)))
    chunks, position = [], 0
    for size in sizes:
        chunks.append(data[position : position + size])
        position += size
    with tempfile.TemporaryDirectory() as directory:
        kept = written(directory, chunks, cap)
    assert len(kept) <= cap
    if len(data) <= cap - 128:
        assert kept == data
        return
    head, marker, tail = kept.partition(b"\n[... ")
    dropped, _, tail = tail.partition(b" bytes dropped ...]\n")
    assert marker
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) == cap // 2
    assert int(dropped) + len(head) + len(tail) == len(data)


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"old and longer")
    assert written(str(tmp_path), [b"new"], 4096) == b"new"


def test_closing_twice_is_fine(tmp_path: Path) -> None:
    log = CappedLog(str(tmp_path / "log"), 4096)
    log.write(b"x")
    log.close()
    log.close()
    assert (tmp_path / "log").read_bytes() == b"x"


@given(
    before=st.integers(0, 1100),
    between=st.integers(0, 200),
    after=st.integers(0, 1100),
    size=st.integers(1, 700),
)
def test_the_cut_leaves_no_part_of_a_secret(
    before: int, between: int, after: int, size: int
) -> None:
    key = b"0123456789abcdefghij-jihgfedcba9876543210"
    data = b"." * before + key + b"." * between + key + b"." * after
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "log")
        log = CappedLog(str(path), 1024, Secrets.of({"MY_KEY": key.decode()}).filter())
        for at in range(0, len(data), size):
            log.write(data[at : at + size])
        log.close()
        assert log.total == len(data)
        kept = path.read_bytes()
    if len(data) < 1024 - 128:
        assert kept == data.replace(key, b"***MY_KEY***")
    assert len(kept) <= 1024
    head, _, tail = kept.partition(b"\n[... ")
    _, _, tail = tail.partition(b" bytes dropped ...]\n")
    assert not set(head + tail) & set(key)
