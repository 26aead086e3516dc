"""Human-scored examples of a judge: read with the suite, wrong ones named by file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.errors import SuiteError
from pytest_agent_eval.suite import Suite, load_suite, unsupported

SUITE = """\
dataset: {{path: cases}}
runner: {{type: cli, command: x}}
judges:
  - name: tone
    examples: {examples}
    {judge}
"""
RUBRIC = "{llm_rubric: Is it kind?, feedback_type: bool}"
NUMERIC = "{prompt: How kind?, feedback_type: int, score_range: [1, 5]}"
PLAIN = "{source: examples.yaml}"
TWO = "a: {value: true, output: Hello}\nb: {value: false, output: What?}\n"
FIVE = "".join(f"c{n}: {{value: {n}, output: o}}\n" for n in range(1, 6))


class Loader:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def load(
        self, content: str | bytes | None, judge: str = RUBRIC, examples: str = PLAIN
    ) -> Suite:
        if content is not None:
            data = content if isinstance(content, bytes) else content.encode()
            (self.directory / "examples.yaml").write_bytes(data)
        lines = judge[1:-1].replace(", ", "\n    ").replace("1\n    5", "1, 5")
        text = SUITE.format(examples=examples, judge=lines)
        return load_suite(self.directory / "eval.yaml", rootdir=self.directory, text=text)

    def errors(self, *arguments: Any, **more: Any) -> list[str]:
        with pytest.raises(SuiteError) as caught:
            self.load(*arguments, **more)
        return [str(problem) for problem in caught.value.problems]

    def warnings(self, *arguments: Any, **more: Any) -> list[str]:
        return [str(warning) for warning in self.load(*arguments, **more).warnings]


@pytest.fixture
def loader(tmp_path: Path) -> Loader:
    return Loader(tmp_path)


def test_examples_are_read_with_the_suite(loader: Loader) -> None:
    content = """\
# from the review in March
case-1:
  value: true
  output: |
    Good morning!
  rationale: It greets.
  input: Say hello.
  x-by: Ada
case-2: {value: false, output: What?, rationale: null}
"""
    suite = loader.load(content)
    found = suite.examples["examples.yaml"]
    first, second = found.found
    assert (first.case, first.value, first.output) == ("case-1", True, "Good morning!\n")
    assert (first.rationale, first.input) == ("It greets.", "Say hello.")
    assert (second.case, second.value, second.rationale, second.input) == ("case-2", False, "", "")
    assert found.lines == {"case-1": 2, "case-2": 9}
    assert unsupported(suite) == ()
    assert suite.warnings == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "eval.yaml:5: judges[0].examples.source: examples.yaml cannot be read: No such"),
        ("", "examples.yaml:1: the file is empty; examples are a mapping of case names to scored"),
        ("- a\n", "examples.yaml:1: this is a list; examples are a mapping of case names"),
        ("a: {value: true, output: x}\nb: [\n", "examples.yaml:2:5: not valid YAML"),
        (TWO + "a: {value: true, output: x}\n", "examples.yaml:3: a: duplicate key 'a', first"),
        (TWO + "c: true\n", "examples.yaml:3: c: this is true, and no output that it was said of"),
        (TWO + "c:\n", "examples.yaml:3: c: this is nothing, and no output that it was said of"),
        (TWO + "c: {value: true}\n", "examples.yaml:3: c: no output that the value was given for"),
        (TWO + "c: {output: x}\n", "examples.yaml:3: c: no value: write {value: true, output"),
        (TWO + "c:\n  value: yes sir\n  output: x\n", "examples.yaml:4: c.value: a value is true"),
        (TWO + "c:\n  value: true\n  output: 3\n", "examples.yaml:5: c.output: must be text, not"),
        (TWO + "c: {value: true, output: ' '}\n", "examples.yaml:3: c.output: is empty: an exam"),
        (TWO + "c: {value: 1, output: x}\n", "examples.yaml:3: c: the values of tone are boolean"),
        (
            TWO + "c: {value: true, output: x, rational: y}\n",
            "examples.yaml:3: c.rational: unknown key; did you mean rationale?",
        ),
        (
            TWO + "c: {value: true, output: x, foo: y}\n",
            "examples.yaml:3: c.foo: unknown key; there is value, output, rationale, input",
        ),
        (TWO + "12: {value: true, output: x}\n", "examples.yaml:3: 12: a case's name is text"),
    ],
)
def test_what_is_wrong_with_a_file(loader: Loader, content: Any, message: str) -> None:
    (found,) = loader.errors(content)
    assert found.startswith(message)


def test_all_is_reported_at_once(loader: Loader) -> None:
    content = "a: true\nb: {value: 1, output: x}\nc: {value: x, outputs: y}\n"
    found = loader.errors(content, examples="{source: examples.yaml, mix: odd}")
    assert [line.partition(": ")[0] for line in found] == [
        "examples.yaml:1",
        "examples.yaml:2",
        "examples.yaml:3",
        "examples.yaml:3",
        "examples.yaml:3",
        "eval.yaml:5",
    ]


def test_values_must_fit_the_scale(loader: Loader) -> None:
    (found,) = loader.errors(FIVE + "d: {value: 7, output: x}\n", NUMERIC)
    assert found == "examples.yaml:6: d: 7 is outside of score_range [1, 5]"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("mix: odd", "judges[0].examples.mix: there is no mix 'odd'; it is balanced, natural or"),
        ("mix: balance", "there is no mix 'balance'; did you mean balanced?"),
        ("mix: 0.5", "judges[0].examples.mix: must be balanced, natural or numbers by value, such"),
        ("mix: []", "judges[0].examples.mix: must be balanced"),
        ("mix: {true: 1, false: 1.5}", "mix: false: must be a whole number of examples, not 1.5"),
        ("mix: {true: 1, false: -1}", "must be a whole number of examples, not -1"),
        ("mix: {1: 1}", "examples.yaml has no example of the value 1"),
        ("mix: {true: 0}", "asks for no example at all"),
        ("mix: {true: 2, false: 2}, count: 3", "asks for 4 examples, and count is 3; keep one"),
        ("count: 0", "judges[0].examples.count: "),
    ],
)
def test_what_is_wrong_with_the_choice(loader: Loader, more: str, message: str) -> None:
    (found,) = loader.errors(TWO, examples=f"{{source: examples.yaml, {more}}}")
    assert message in found


@pytest.mark.parametrize(
    "more",
    ["mix: balanced", "mix: natural", "mix: {true: 1}", "mix: {true: 1, false: 1}, count: 2"],
)
def test_choices_that_are_fine(loader: Loader, more: str) -> None:
    assert loader.warnings(TWO, examples=f"{{source: examples.yaml, {more}}}") == []
    assert loader.warnings(FIVE, NUMERIC, "{source: examples.yaml, mix: {1: 1, 5.0: 1}}") == []


def test_more_than_there_are_is_a_warning(loader: Loader) -> None:
    (found,) = loader.warnings(TWO, examples="{source: examples.yaml, count: 3}")
    assert "examples.count: examples.yaml has 2: no more are shown" in found


def test_who_takes_examples(loader: Loader) -> None:
    (found,) = loader.warnings(None, "{check: return 1}")
    assert "examples are ignored: no model gives this verdict" in found
    assert loader.warnings(TWO, "{builtin: no_harmful_content}") == []
    first, _ = loader.errors(None, "{agent: {}, feedback_type: bool}")
    assert "examples stand before a question, and this judge has none" in first
    text = (
        "dataset: {path: c}\nrunner: {type: cli, command: x}\n"
        "judges: [{name: pairwise, examples: {source: examples.yaml}}]\n"
    )
    with pytest.raises(SuiteError, match="pairwise compares two outputs"):
        load_suite(loader.directory / "eval.yaml", text=text)


def test_one_file_can_hold_labels_and_examples(loader: Loader) -> None:
    text = SUITE.format(
        examples="{source: both.yaml, count: 1}\n    labels: both.yaml",
        judge="llm_rubric: x\n    feedback_type: bool",
    )
    (loader.directory / "both.yaml").write_text(TWO)
    suite = load_suite(loader.directory / "eval.yaml", text=text)
    assert suite.labels["both.yaml"].values == {"a": True, "b": False}
    assert [one.case for one in suite.examples["both.yaml"].found] == ["a", "b"]
