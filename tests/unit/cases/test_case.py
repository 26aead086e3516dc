from __future__ import annotations

import dataclasses

import pytest

from pytest_agent_eval.cases import BrokenCase
from pytest_agent_eval.errors import CaseError

from .conftest import Dataset


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "input.yaml is empty"),
        ("# nothing\n", "input.yaml is empty"),
        ("{}", "input.yaml is empty"),
        ("# a list\n- a\n", r"input\.yaml:2: must be a mapping, not a list"),
        ("text", r"input\.yaml:1: must be a mapping, not a text"),
        ("a: [1\n", r"input\.yaml:1:6: not valid YAML"),
        (b"a: \xff\n", r"input\.yaml:1: not UTF-8"),
        ("a: 1\na: 2\n", r"input\.yaml:2: a: duplicate key"),
    ],
)
def test_bad_input(dataset: Dataset, content: str | bytes, says: str) -> None:
    dataset.case("case-1", input=content)
    with pytest.raises(CaseError, match=f"^case-1: {says}"):
        dataset.one("case-1").input()


@pytest.mark.parametrize(
    ("content", "says"),
    [("[1]", r"input\.json:1: must be a mapping"), ('{"a": }', r"input\.json:1:7: not valid JSON")],
)
def test_bad_json_input(dataset: Dataset, content: str, says: str) -> None:
    dataset.case("case-1", input=content, input_name="input.json")
    with pytest.raises(CaseError, match=f"^case-1: {says}"):
        dataset.one("case-1").input()


def test_an_input_that_is_a_directory(dataset: Dataset) -> None:
    (dataset.case("case-1", input=None) / "input.yaml").mkdir()
    with pytest.raises(CaseError, match=r"^case-1: input\.yaml: cannot be read"):
        dataset.one("case-1").input()


def test_json_that_is_no_yaml(dataset: Dataset) -> None:
    dataset.case("case-1", input='[\t"\\ud83d\\ude00"]', input_name="input.json")
    with pytest.raises(CaseError, match=r"^case-1: input\.json.*: must be a mapping"):
        dataset.one("case-1").input()


def test_linked_input(dataset: Dataset) -> None:
    secret = dataset.path.parent / "secret.yaml"
    dataset.write(secret, "key: x\n")
    (dataset.case("out", input=None) / "input.yaml").symlink_to(secret)
    inside = dataset.case("in", input=None)
    dataset.write(inside / "other.yaml", "prompt: x\n")
    (inside / "input.yaml").symlink_to("other.yaml")
    with pytest.raises(CaseError, match=r"^out: input\.yaml: a link that leaves"):
        dataset.one("out").input()
    assert dataset.one("in").input() == {"prompt": "x"}


def test_answers(dataset: Dataset) -> None:
    directory = dataset.case("case-1")
    case = dataset.one("case-1")
    assert case.answers() == {}
    dataset.write(directory / "answers.yaml", "")
    assert case.answers() == {}
    dataset.write(directory / "answers.yaml", "who: me\n")
    assert case.answers() == {"who": "me"}
    dataset.write(directory / "answers.yaml", "- a\n")
    with pytest.raises(CaseError, match=r"^case-1: answers\.yaml:1: must be a mapping"):
        case.answers()


def test_the_input_is_read_late_and_anew(dataset: Dataset) -> None:
    directory = dataset.case("case-1")
    case = dataset.one("case-1")
    case.input()["prompt"] = "changed"
    assert case.input() == {"prompt": "hello"}
    dataset.write(directory / "input.yaml", "prompt: later\n")
    assert case.scope({"input", "name"}) == {"input": {"prompt": "later"}, "name": "case-1"}


def test_cases_are_frozen_and_small(dataset: Dataset) -> None:
    dataset.case("case-1")
    dataset.case("case-2", input=None)
    case, broken = dataset.read()
    assert isinstance(broken, BrokenCase)
    assert broken.directory == dataset.path / "case-2"
    for item in (case, broken):
        assert not hasattr(item, "__dict__")
        with pytest.raises(dataclasses.FrozenInstanceError):
            item.name = "x"  # type: ignore[misc]
