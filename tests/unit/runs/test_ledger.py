from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.runs.ledger import Look, add_look, ledger_of, read_ledger, record_look

LOOK = Look("2026-01-03T10:00:00Z", "r1", "eval.yaml", "v", "d", 3, {"passed": 3}, "c0ffee", False)


def test_it_is_beside_the_dataset_and_never_in_it(tmp_path: Path) -> None:
    assert ledger_of(tmp_path / "cases") == tmp_path / "cases.holdout.yaml"
    assert ledger_of(tmp_path / "evals" / ".") == tmp_path / "evals.holdout.yaml"
    assert ledger_of(tmp_path / "evals" / ".." / "c") == tmp_path / "c.holdout.yaml"


def test_one_line_an_entry_and_yaml(tmp_path: Path) -> None:
    path = tmp_path / "cases.holdout.yaml"
    assert read_ledger(path) == ((), ())
    second = replace(LOOK, run="r2", commit=None, dirty=None, revealed=("a", "naïve\u2028: [x"))
    add_look(path, LOOK)
    add_look(path, second)
    text = path.read_text()
    assert text.count("\n- {") == 2
    assert text.startswith("# Each look at the holdout half")
    assert "merge=union" in text
    assert [entry["run"] for entry in yaml.safe_load(text)] == ["r1", "r2"]
    assert yaml.safe_load(text)[1]["revealed"] is True
    assert read_ledger(path) == ((LOOK, second), ())


@given(
    st.builds(
        Look,
        *[st.text(st.characters(exclude_categories=["Cs"]))] * 5,
        st.integers(0),
        st.dictionaries(st.sampled_from(["passed", "failed", "error"]), st.integers(0)),
        st.none() | st.text(max_size=5),
        st.none() | st.booleans(),
        st.lists(st.text(max_size=5), max_size=3).map(tuple),
    )
)
def test_whatever_an_entry_holds_is_one_line(look: Look) -> None:
    assert Look.from_dict(look.to_dict()) == look
    assert len(json.dumps(look.to_dict()).splitlines()) == 1


def test_several_sessions_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cases.holdout.yaml"
    gate = threading.Barrier(8)

    def write(number: int) -> None:
        gate.wait()
        for again in range(10):
            add_look(path, replace(LOOK, run=f"{number}-{again}"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries, notes = read_ledger(path)
    assert notes == ()
    assert len({entry.run for entry in entries}) == len(entries) == 80


def test_a_broken_ledger_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "cases.holdout.yaml"
    add_look(path, LOOK)
    torn = path.read_text()[:-20] + "\n<<<<<<< HEAD\n- {run: 3}\n- []\n" + '- {"run": "x"}'
    path.write_text(torn)
    entries, (note,) = read_ledger(path)
    assert entries == ()
    assert note == "cases.holdout.yaml, line 4 and 4 more: no entry of a ledger, not counted"
    add_look(path, LOOK)  # what somebody left without a newline is not continued
    assert read_ledger(path)[0] == (LOOK,)
    path.unlink()
    path.mkdir()
    assert "cannot be read" in read_ledger(path)[1][0]


def test_what_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="this look at the holdout half is not recorded"):
        add_look(tmp_path / "gone" / "cases.holdout.yaml", LOOK)
    _, notes = record_look(tmp_path / "gone" / "cases.holdout.yaml", LOOK)
    assert notes == (
        "cases.holdout.yaml: this look at the holdout half is not recorded: "
        "No such file or directory",
    )


def test_a_run_that_says_the_same_again_is_no_further_entry(tmp_path: Path) -> None:
    path = tmp_path / "cases.holdout.yaml"
    assert record_look(path, LOOK) == ((), ())
    assert record_look(path, replace(LOOK, date="2026-02-01T00:00:00Z")) == ((LOOK,), ())
    more = replace(LOOK, cases=4, counts={"passed": 4})
    record_look(path, more)
    assert read_ledger(path)[0] == (LOOK, more)
