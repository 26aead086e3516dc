"""Human labels of a judge: read with the suite, wrong ones named by file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import SuiteError
from pytest_agent_eval.suite import load_suite, unsupported

SUITE = """\
dataset: {{path: cases}}
runner: {{type: cli, command: x}}
judges:
  - name: tone
    labels: {labels}
    {judge}
"""
CHECK = "check: return True"
NUMERIC = "{feedback_type: int, score_range: [1, 5], check: return 1}"


@pytest.fixture
def errors(tmp_path: Path) -> Any:
    """The messages about a label file with this content (None: no file) and judge."""

    def errors(content: str | bytes | None, judge: str = CHECK) -> list[str]:
        if content is not None:
            data = content if isinstance(content, bytes) else content.encode()
            (tmp_path / "labels.yaml").write_bytes(data)
        text = SUITE.format(labels="labels.yaml", judge=judge)
        try:
            load_suite(tmp_path / "eval.yaml", rootdir=tmp_path, text=text)
        except SuiteError as error:
            return [str(problem) for problem in error.problems]
        return []

    return errors


def test_labels_are_read_with_the_suite(tmp_path: Path) -> None:
    (tmp_path / "a" / "human").mkdir(parents=True)
    (tmp_path / "a" / "human" / "tone.yaml").write_text("# by two people\nx: true\n'12': false\n")
    text = SUITE.format(labels="human/tone.yaml", judge=CHECK)
    suite = load_suite(tmp_path / "a" / "eval.yaml", rootdir=tmp_path, text=text)
    labels = suite.labels["human/tone.yaml"]
    assert labels.values == {"x": True, "12": False}
    assert labels.lines == {"x": 2, "12": 3}
    assert labels.file == "a/human/tone.yaml"
    assert unsupported(suite) == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "eval.yaml:5: judges[0].labels: labels.yaml cannot be read: No such file"),
        ("", "labels.yaml:1: the file is empty; labels are a mapping of case names"),
        ("# nothing yet\n", "labels.yaml:1: the file is empty"),
        ("{}", "labels.yaml:1: the file is empty"),
        ("false", "labels.yaml:1: this is false; labels are a mapping of case names"),
        ("- a\n- b\n", "labels.yaml:1: this is a list; labels are a mapping of case names"),
        ("a: true\nb: [\n", "labels.yaml:2:5: not valid YAML"),
        (b"a: true\nb: \xff\n", "labels.yaml:2: not UTF-8"),
        ("a: true\nb: false\na: false\n", "labels.yaml:3: a: duplicate key 'a', first used in"),
        ("a: true\nb:\n", "labels.yaml:2: b: no value: a label is true, false or a number"),
        ("a: true\nb: good\n", "labels.yaml:2: b: a label is true, false or a number, not 'good'"),
        ("a: 1\nb: .nan\n", "labels.yaml:2: b: a label is true, false or a number, not nan"),
        ("a: 1\nb: {c: 1}\n", "labels.yaml:2: b: a label is true, false or a number, not a map"),
        ("a: true\n12: true\n", "labels.yaml:2: 12: a case's name is text: put it in quotes"),
        ("a: true\nb: 1\n", "labels.yaml:2: b: the labels above are booleans, this label is 1"),
        ("a: 1\nb: true\n", "labels.yaml:2: b: the labels above are numbers, this label is true"),
    ],
)
def test_what_is_wrong_with_a_file(errors: Any, content: Any, message: str) -> None:
    (found,) = errors(content)
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("judge", "content", "message"),
    [
        (
            "{feedback_type: bool, check: return 1}",
            "a: true\nb: 1\n",
            "labels.yaml:2: b: the values of tone are booleans, this label is 1",
        ),
        (
            "{builtin: no_harmful_content}",
            "a: 1\n",
            "labels.yaml:1: a: the values of tone are booleans, this label is 1",
        ),
        (NUMERIC, "a: true\n", "labels.yaml:1: a: the values of tone are numbers, this label is"),
        (NUMERIC, "a: 1\nb: 6\n", "labels.yaml:2: b: 6 is outside of score_range [1, 5]"),
        (
            "{llm_rubric: Is it kind?}",
            "a: false\n",
            "labels.yaml:1: a: the values of tone are numbers, this label is false",
        ),
    ],
)
def test_labels_must_fit_the_judge(errors: Any, judge: str, content: str, message: str) -> None:
    (found,) = errors(
        content, judge.strip("{}").replace(", ", "\n    ").replace("1\n    5", "1, 5")
    )
    assert found.startswith(message)


def test_all_is_reported_at_once(errors: Any) -> None:
    found = errors("a: true\nb: 2\nc: x\na: false\n", "feedback_typ: bool\n    check: return 1")
    assert [message.partition(": ")[0] for message in found] == [
        "labels.yaml:2",
        "labels.yaml:3",
        "labels.yaml:4",
        "eval.yaml:6",
    ]


def test_a_rating_between_two_points_is_a_label(errors: Any) -> None:
    judge = "feedback_type: int\n    score_range: [1, 5]\n    check: return 1"
    assert errors("a: 3.5\nb: 1\n", judge) == []


def test_a_file_that_two_judges_and_a_variant_share_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "labels.yaml").write_text("a: true\nb: maybe\n")
    text = """\
dataset: {path: cases}
runner: {type: cli, command: x}
judges:
  - {name: tone, labels: labels.yaml, check: return True}
  - {name: manners, labels: labels.yaml, check: return True}
variants:
  fast: {execution: {timeout: 5}}
"""
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / "eval.yaml", rootdir=tmp_path, text=text)
    assert [str(problem) for problem in caught.value.problems] == [
        "labels.yaml:2: b: a label is true, false or a number, not 'maybe'"
    ]


def test_comparing_two_runs_takes_no_labels(tmp_path: Path) -> None:
    text = """\
dataset: {path: cases}
runner: {type: cli, command: x}
judges:
  - {name: pairwise, labels: labels.yaml}
"""
    with pytest.raises(SuiteError, match=r"judges\[0\].labels: pairwise compares two runs"):
        load_suite(tmp_path / "eval.yaml", rootdir=tmp_path, text=text)


@pytest.mark.parametrize("path", ["../labels.yaml", '""', "[]", "3"])
def test_a_path_that_is_none_is_one_problem(tmp_path: Path, path: str) -> None:
    text = SUITE.format(labels=path, judge=CHECK)
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / "eval.yaml", rootdir=tmp_path, text=text)
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == ("judges[0].labels", 5)
