from __future__ import annotations

from typing import Any

import pytest

ANSWER_KEYS = [
    "annotations.yaml", "Annotations.YAML", "./annotations.yml", "answers.json", "ANSWERS.yaml",
    ".", "./", "./.", "annotations.yaml/", "ａｎｎｏｔａｔｉｏｎｓ.yaml",
    "annotations", ".//answers.yaml",
]  # fmt: skip


@pytest.mark.parametrize("entry", ANSWER_KEYS)
def test_the_answer_key_stays_behind(problems: Any, entry: str) -> None:
    found = problems(f"dataset: {{path: c, workspace: {{files: [ok.md, '{entry}']}}}}")
    assert list(found) == ["dataset.workspace.files[1]"]
    assert "answer key" in found["dataset.workspace.files[1]"]


@pytest.mark.parametrize(
    "entry",
    ["strategy.md", "docs/", "data/annotations.json", "my-annotations.yaml", "answersheet.md"],
)
def test_other_files_go_to_the_agent(load: Any, entry: str) -> None:
    suite = load(f"dataset: {{path: c, workspace: {{files: ['{entry}']}}}}")
    assert suite.config.dataset.workspace.files == (entry,)


@pytest.mark.parametrize("entry", ["/etc/passwd", "a/../b", "~/x", "C:\\x", "\\x"])
def test_entries_stay_inside_the_case(problems: Any, entry: str) -> None:
    found = problems(f"dataset: {{path: c, workspace: {{files: ['{entry}']}}}}")
    assert list(found) == ["dataset.workspace.files[0]"]


def test_condition(problems: Any, load: Any) -> None:
    text = "dataset: {path: c, if: \"annotations.get('tier') == 2\"}"
    assert load(text).config.dataset.if_ == "annotations.get('tier') == 2"
    found = problems("dataset: {path: c, if: outputs}")
    assert list(found) == ["dataset.if"]


def test_rules_on_names(load: Any) -> None:
    rules = load("dataset: {path: c, cases: [{include: 'a*'}, {exclude: ab}]}").config.dataset.cases
    assert [(rule.include, rule.exclude) for rule in rules] == [("a*", None), (None, "ab")]


@pytest.mark.parametrize("by", ["name", "annotations.pair", "annotations.a.b-c"])
def test_split_by(load: Any, by: str) -> None:
    assert load(f"dataset: {{path: c, split: {{by: {by}}}}}").config.dataset.split.by == by


def test_dataset_directory(load: Any) -> None:
    suite = load("dataset: {path: ./a/./b/}")
    assert suite.dataset_directory == suite.directory / "a" / "b"
    assert str(load("dataset: {path: /x/y}").dataset_directory) == "/x/y"
