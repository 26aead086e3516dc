from __future__ import annotations

import os
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.cases import BrokenCase, Case, Split, natural_key, read_cases
from pytest_agent_eval.errors import SelectionError

from .conftest import Dataset


def names(cases: list[Case | BrokenCase]) -> list[str]:
    return [case.name for case in cases]


def test_a_case_is_what_its_directory_says(dataset: Dataset) -> None:
    directory = dataset.case("case-1", "pair: p\ntags: [a, b]\ncategory: nav\n")
    (case,) = dataset.read(Split(by="annotations.pair"))
    assert isinstance(case, Case)
    assert case.directory == directory
    assert case.input_path == directory / "input.yaml"
    assert case.annotations == {"pair": "p", "tags": ["a", "b"], "category": "nav"}
    assert (case.group, case.category) == ("p", "nav")
    assert case.tags == {"a": "yes", "b": "yes"}
    assert case.flat_tags == ("a", "b")
    assert case.split == Split().half("p")


def test_natural_order_whatever_the_listing_is(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("case-10", "case-2", "case-1", "b", "case-02", "a10b2", "a10b10", "a9"):
        dataset.case(name)
    wanted = ["a9", "a10b2", "a10b10", "b", "case-1", "case-02", "case-2", "case-10"]
    assert names(dataset.read()) == wanted

    scandir = os.scandir

    class Backwards:
        def __init__(self, path: str) -> None:
            with scandir(path) as entries:
                self._entries = sorted(entries, key=lambda entry: entry.name, reverse=True)

        def __enter__(self) -> Any:
            return iter(self._entries)

        def __exit__(self, *args: object) -> None: ...

    monkeypatch.setattr(os, "scandir", Backwards)
    assert names(dataset.read()) == wanted


@given(st.lists(st.text(min_size=1), unique=True))
def test_the_order_is_total(all_names: list[str]) -> None:
    backwards = all_names[::-1]
    assert sorted(backwards, key=natural_key) == sorted(all_names, key=natural_key)


@given(st.text(st.characters(categories=["L"])), st.integers(0), st.integers(0))
def test_numbers_are_compared_as_numbers(text: str, one: int, other: int) -> None:
    before = natural_key(f"{text}{one}") < natural_key(f"{text}{other}")
    assert before == (one < other)


def test_hidden_directories_and_plain_files_are_not_looked_at(dataset: Dataset) -> None:
    dataset.case("case-1")
    dataset.case(".hidden")
    dataset.case("_drafts", input=None)
    dataset.write(dataset.path / "readme.md", "x")
    assert names(dataset.read()) == ["case-1"]


def test_a_directory_without_input_is_an_error(dataset: Dataset) -> None:
    dataset.case("case-1")
    dataset.case("empty", input=None)
    dataset.case("typo", input_name="Input.yaml")
    assert dataset.broken("empty") == "no input.yaml (input.yml or input.json would do)"
    assert dataset.broken("typo").endswith("; there is Input.yaml")


def test_a_nested_layout_is_explained(dataset: Dataset) -> None:
    dataset.case("group/inner-1")
    dataset.case("group/inner-2")
    message = dataset.broken("group")
    assert message.startswith("no input.yaml")
    assert "inner-1 and 1 more" in message


@pytest.mark.parametrize("name", ["input.yaml", "input.yml", "input.json"])
def test_each_input_name_will_do(dataset: Dataset, name: str) -> None:
    dataset.case("case-1", input='{"prompt": "x"}', input_name=name)
    assert dataset.one("case-1").input() == {"prompt": "x"}


def test_several_input_files_are_an_error(dataset: Dataset) -> None:
    dataset.case("case-1")
    dataset.case("case-1", input_name="input.json", input="{}")
    assert dataset.broken("case-1") == "has input.yaml and input.json; keep one"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tags: [a\nb: 1\n", "annotations.yaml:2:2: not valid YAML"),
        ("a:\n\tb: 1\n", "annotations.yaml:2:1: not valid YAML"),
        ("a: 1\na: 2\n", "annotations.yaml:2: a: duplicate key 'a', first used in line 1"),
        ("a: 1\n---\nb: 2\n", "annotations.yaml:2:1: not valid YAML: but found another document"),
        ("- a\n", "annotations.yaml:1: must be a mapping, not a list"),
        ("just text\n", "annotations.yaml:1: must be a mapping, not a text"),
        ("3\n", "annotations.yaml:1: must be a mapping, not 3"),
        (b"note: caf\xe9\n", "annotations.yaml:1: not UTF-8"),
        ("x: 1\ntags:\n  - a\n  - no\n", "annotations.yaml:4: tags[1]: must be a text"),
        ("x: 1\ncategory: 3\n", "annotations.yaml:2: category: must be a text"),
        ("a: 2024-13-45\n", "annotations.yaml:1:4: "),
    ],
)
def test_bad_annotations(dataset: Dataset, text: str | bytes, says: str) -> None:
    dataset.case("case-1", text)
    dataset.case("case-2")
    assert dataset.broken("case-1").startswith(says)
    assert isinstance(dataset.read()[1], Case)


def test_all_problems_of_a_file_are_reported(dataset: Dataset) -> None:
    dataset.case("case-1", "tags: [no,\n  on,\n  1.0]\n")
    lines = dataset.broken("case-1").splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        f"annotations.yaml:{number}" for number in (1, 2, 3)
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "null\n", "{}\n", "\ufeff", None])
def test_no_annotations(dataset: Dataset, text: str | None) -> None:
    dataset.case("case-1", text)
    assert dataset.one("case-1").annotations == {}


def test_a_byte_order_mark_is_fine(dataset: Dataset) -> None:
    dataset.case("case-1", "\ufeffcategory: nav\n")
    assert dataset.one("case-1").category == "nav"


def test_annotations_too_large(dataset: Dataset) -> None:
    dataset.case("case-1", b"#" * (5 * 1024 * 1024 + 1))
    assert dataset.broken("case-1") == "annotations.yaml: larger than 5 MiB"


@pytest.mark.parametrize("name", ["annotations.yml", "annotations.json"])
def test_annotations_under_another_name_are_not_ignored(dataset: Dataset, name: str) -> None:
    dataset.write(dataset.case("case-1") / name, "{}")
    assert dataset.broken("case-1") == f"{name} is not read; the file is called annotations.yaml"
    dataset.case("case-1", "category: x\n")
    assert dataset.one("case-1").category == "x"


@pytest.mark.parametrize(
    ("name", "shown", "says"),
    [
        ("a::b", "a::b", "::"),
        ("a\tb", "a\\tb", "control character"),
        ("a\x1bb", "a\\x1bb", "control character"),
        ("a\u2028b", "a\\u2028b", "control character"),
        (os.fsdecode(b"a\xffb"), "a\\udcffb", "UTF-8"),
        (" a", " a", "blank"),
        ("a\u00a0", "a\u00a0", "blank"),
    ],
)
def test_names_that_pytest_cannot_address(
    dataset: Dataset, name: str, shown: str, says: str
) -> None:
    dataset.case(name)
    dataset.case("case-1")
    assert says in dataset.broken(shown)
    assert isinstance(dataset.one("case-1"), Case)


@pytest.mark.parametrize(
    "name",
    ["with space", "Größe", "案例-1", "\U0001f468\u200d\U0001f469", "a[b]", "a\u00a0b", "-x"],
)
def test_names_of_all_kinds(dataset: Dataset, name: str) -> None:
    dataset.case(name)
    assert dataset.one(unicodedata.normalize("NFC", name)).input() == {"prompt": "hello"}


def test_with_variants_a_name_must_not_look_like_one(dataset: Dataset) -> None:
    dataset.case("a[b]")
    dataset.case("[a] b")
    broken, fine = sorted(dataset.read(variants=True), key=lambda case: isinstance(case, Case))
    assert isinstance(broken, BrokenCase)
    assert "variant" in str(broken.error)
    assert fine.name == "[a] b"


def test_names_are_normalised(dataset: Dataset) -> None:
    dataset.case("nai\u0308ve")
    (case,) = dataset.read()
    assert case.name == "na\u00efve"
    assert case.directory.is_dir()
    assert names(dataset.read(names=frozenset({"nai\u0308ve"}))) == ["na\u00efve"]


def test_two_directories_of_one_name_are_both_broken(dataset: Dataset) -> None:
    dataset.case("nai\u0308ve")
    dataset.case("na\u00efve")
    cases = dataset.read()
    assert len(cases) == 2
    assert all(isinstance(case, BrokenCase) for case in cases)
    assert all(
        isinstance(case, BrokenCase) for case in dataset.read(names=frozenset({"na\u00efve"}))
    )


def test_links(dataset: Dataset) -> None:
    outside = dataset.path.parent / "outside"
    Dataset(dataset.path.parent).case("outside")
    inside = dataset.case("case-1")
    dataset.write(dataset.path / "file", "x")
    for name, target in {
        "in": inside,
        "out": outside,
        "up": dataset.path,
        "gone": dataset.path / "nowhere",
        "loop": dataset.path / "loop",
        "file-link": dataset.path / "file",
    }.items():
        (dataset.path / name).symlink_to(target)
    assert names(dataset.read()) == ["case-1", "gone", "in", "loop", "out", "up"]
    assert dataset.one("in").input() == {"prompt": "hello"}
    assert "leaves the dataset" in dataset.broken("out")
    assert "leaves the dataset" in dataset.broken("up")
    assert "does not exist" in dataset.broken("gone")
    assert "does not exist" in dataset.broken("loop")


def test_a_dataset_that_is_a_link_itself(dataset: Dataset) -> None:
    (dataset.case("case-1").parent / "again").symlink_to("case-1")
    link = dataset.path.parent / "link"
    link.symlink_to(dataset.path)
    assert all(isinstance(case, Case) for case in read_cases(link, Split()))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_cannot_be_read(dataset: Dataset) -> None:
    dataset.case("case-1").chmod(0)
    assert "cannot be read" in dataset.broken("case-1")


def test_an_annotations_directory(dataset: Dataset) -> None:
    (dataset.case("case-1") / "annotations.yaml").mkdir()
    assert dataset.broken("case-1") == "cannot be read: Is a directory"


def test_no_dataset(dataset: Dataset) -> None:
    with pytest.raises(SelectionError, match=rf"dataset\.path: no case in {dataset.path}: "):
        dataset.read()
    missing = Dataset(dataset.path / "x" / ".." / "missing")
    with pytest.raises(SelectionError, match=f"no directory {dataset.path}/missing"):
        missing.read()
    dataset.write(dataset.path / "input.yaml", "a: 1")
    with pytest.raises(SelectionError, match="is a case itself"):
        dataset.read()
    with pytest.raises(SelectionError, match="is a file"):
        Dataset(dataset.path / "input.yaml").read()


def test_some_cases_only(dataset: Dataset) -> None:
    for number in range(5):
        dataset.case(f"case-{number}", "broken: [")
    dataset.case("case-3", "category: x")
    (case,) = dataset.read(names=frozenset({"case-3", "case-99"}))
    assert isinstance(case, Case)
    assert dataset.read(names=frozenset({"case-99"})) == []
