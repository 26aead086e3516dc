from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.errors import CaseError
from pytest_agent_eval.execution.batch_outputs import BatchOutput, attribute

CASES = ("late-parcel", "double-charge", "refund")


def own(files: list[str], *outputs: BatchOutput, cases: tuple[str, ...] = CASES) -> list[list[str]]:
    return attribute(files, outputs or (BatchOutput("out"),), cases).own


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("T-{n:03d}", ["T-001.md", "T-002.md", "T-003.md"]),
        ("T-{n}", ["T-1.md", "T-2.md", "T-3.md"]),
        ("{n}", ["1", "2", "3"]),
        ("case{n}-", ["case1-a", "case2-b", "case3-c"]),
        ("T-{n:03d}", ["T-001/deep/a.md", "T-002/b.md", "T-003/c.md"]),
        ("T-{n:03d}", ["md/T-001.md", "md/T-002.md", "md/T-003.md"]),
    ],
)
def test_by_a_pattern(pattern: str, names: list[str]) -> None:
    files = [f"out/{name}" for name in names]
    assert own(files, BatchOutput("out", pattern)) == [[file] for file in files]


def test_a_number_is_not_the_beginning_of_another() -> None:
    cases = tuple(f"c{number}" for number in range(1, 13))
    found = own(["out/T-12.md", "out/T-1.md"], BatchOutput("out", "T-{n}"), cases=cases)
    assert (found[0], found[11]) == (["out/T-1.md"], ["out/T-12.md"])


def test_a_case_may_have_several_files_or_none() -> None:
    found = own(["out/T-1.a", "out/T-1.b", "out/T-3.a"], BatchOutput("out", "T-{n}"))
    assert found == [["out/T-1.a", "out/T-1.b"], [], ["out/T-3.a"]]


def test_what_all_share() -> None:
    found = attribute(
        ["log/run.txt", "out/T-1", "else/where", "out/T-2"],
        (BatchOutput("out", "T-{n}"), BatchOutput("log", "*")),
        CASES[:2],
    )
    assert found.own == [["out/T-1"], ["out/T-2"]]
    assert found.shared == ["else/where", "log/run.txt"]


def test_by_the_names_of_cases() -> None:
    files = ["out/double-charge.md", "out/late-parcel/a.md", "out/refund_2.md"]
    assert own(files) == [[files[1]], [files[0]], [files[2]]]


def test_the_longest_name_counts() -> None:
    files = ["out/case-1.md", "out/case-12.md", "out/case-1-b.md"]
    cases = ("case-1", "case-1-b", "case-12")
    assert own(files, cases=cases) == [[files[0]], [files[2]], [files[1]]]


def test_names_come_before_numbers() -> None:
    """Two of three selected cases left a file; their numbers are no places in the batch."""
    cases = ("case-002", "case-003", "case-004")
    assert own(["out/case-002.md", "out/case-003.md"], cases=cases) == [
        ["out/case-002.md"],
        ["out/case-003.md"],
        [],
    ]


def test_by_a_common_prefix() -> None:
    files = ["out/TICKET-002-a.md", "out/TICKET-010.md", "out/TICKET-002-b.md", "out/TICKET-009.md"]
    assert own(files) == [[files[0], files[2]], [files[3]], [files[1]]]


def test_numbers_of_a_prefix_are_places() -> None:
    assert own(["out/T-003.md", "out/T-001.md"]) == [["out/T-001.md"], [], ["out/T-003.md"]]


def test_one_file_a_case_in_order() -> None:
    assert own(["out/page10", "out/page9", "out/page1"]) == [
        ["out/page1"],
        ["out/page9"],
        ["out/page10"],
    ]
    assert own(["out/a/1", "out/b/1", "out/b/2", "out/c/1"])[1] == ["out/b/1", "out/b/2"]


def test_one_single_file() -> None:
    assert own(["all.csv"], BatchOutput("all.csv"), cases=("one",)) == [["all.csv"]]
    assert attribute(["all.csv"], (BatchOutput("all.csv", "*"),), CASES).shared == ["all.csv"]


@pytest.mark.parametrize(
    ("files", "output", "said"),
    [
        (
            ["out/a", "out/b"],
            BatchOutput("out"),
            "2 files belong to no case of the batch: out/a, out/b; name them after the cases",
        ),
        (
            ["out/T-1", "out/T-4", "out/notes"],
            BatchOutput("out", "T-{n}"),
            "2 files belong to no case of the batch: out/T-4, out/notes; batch_pattern is T-{n}, "
            "so that their names begin with T-1 to T-3",
        ),
        (
            ["out/refund.md", "out/x\x1b.md"],
            BatchOutput("out"),
            "1 file belongs to no case of the batch: out/x\\x1b.md; ",
        ),
        (["out/T-101", "out/T-102"], BatchOutput("out"), "2 files belong to no case"),
    ],
)
def test_what_belongs_to_no_case(files: list[str], output: BatchOutput, said: str) -> None:
    with pytest.raises(CaseError) as caught:
        own(files, output)
    assert caught.value.message.startswith(said)


@given(
    st.lists(st.text("ab1-/", min_size=1, max_size=6), unique=True, max_size=8),
    st.lists(st.text("abT-12", min_size=1, max_size=5), unique=True, min_size=1, max_size=4),
    st.sampled_from(["", "T-{n}", "{n:02d}", "*"]),
)
def test_no_file_is_lost_or_given_twice(names: list[str], cases: list[str], pattern: str) -> None:
    files = sorted({f"out/{name}".strip("/") for name in names})
    try:
        found = attribute(files, (BatchOutput("out", pattern),), cases)
    except CaseError:
        return
    given = [path for paths in found.own for path in paths] + found.shared
    assert sorted(given) == files
