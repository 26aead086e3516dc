"""When a judge is another judge: its digest."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.judges import JudgeContext, make_judges
from pytest_agent_eval.suite import Known, load_suite

Digest = Callable[..., str]

HEAD = 'dataset: {path: cases}\nrunner: {type: cli, command: "true"}\njudges:\n'


@pytest.fixture
def digest(tmp_path: Path) -> Digest:
    """The digest of the only judge of a suite, from the entry's YAML."""

    def digest(entry: str, more: str = "", known: Known | None = None, **settings: Any) -> str:
        folder = tmp_path / "evals"
        (folder / "cases").mkdir(parents=True, exist_ok=True)
        text = HEAD + textwrap.indent(textwrap.dedent(entry).strip(), "  ") + "\n" + more
        (folder / "eval.yaml").write_text(text, "utf-8")
        suite = load_suite(folder / "eval.yaml", rootdir=tmp_path, known=known or Known())
        (judge,) = make_judges(suite, rootdir=tmp_path, **settings)
        assert judge.judge({"case": "a"}).digest == judge.digest
        return judge.digest

    return digest


CHECK = "- {name: a, check: 'return 3', arguments: {x: 1, y: 2}}"


@pytest.mark.parametrize(
    "entry",
    [
        "- {name: a, check: 'return 3 ', arguments: {x: 1, y: 2}}",
        "- {name: a, check: 'return 3', arguments: {x: 1, y: '2'}}",
        "- {name: a, check: 'return 3', arguments: {x: 1}}",
        "- {name: a, check: 'return 3', arguments: {x: 1, y: 2}, if: 'split == \"dev\"'}",
        "- {name: a, check: 'return 3', arguments: {x: 1, y: 2}, pass_if: 'value > 2'}",
        "- {name: a, check: 'return 3', arguments: {x: 1, y: 2}, feedback_type: int}",
        "- {name: a, check: 'return 3', arguments: {x: 1, y: 2}, score_range: [0, 5]}",
    ],
)
def test_what_makes_it_another_judge(digest: Digest, entry: str) -> None:
    assert digest(CHECK) != digest(entry)


@pytest.mark.parametrize(
    ("entry", "more"),
    [
        ("- {arguments: {y: 2, x: 1}, check: 'return 3', name: a}", ""),
        ("- {name: b, check: 'return 3', arguments: {x: 1, y: 2}}", ""),
        ("- {name: a, description: d, check: 'return 3', arguments: {x: 1, y: 2}}", ""),
        ("- {name: a, timeout: 7, check: 'return 3', arguments: {x: 1, y: 2}}", ""),
        ("- {name: a, x-mine: 1, check: 'return 3', arguments: {x: 1, y: 2}}", ""),
        (CHECK, "thresholds: {a: {min_mean: 1}}\n"),
        (CHECK, "models: {skill: m}\ntitle: t\n"),
    ],
)
def test_what_does_not(digest: Digest, entry: str, more: str) -> None:
    assert digest(CHECK) == digest(entry, more)


FUNCTION = "- {name: a, module: my_judges, function: judge}"


def test_the_python_of_a_judge_counts_with_what_it_imports_of_the_project(
    digest: Digest, tmp_path: Path
) -> None:
    folder = tmp_path / "evals"
    (folder / "pkg").mkdir(parents=True)
    files: Mapping[str, str] = {
        "evals/pkg/__init__.py": "",
        "evals/pkg/a.py": "from .b import BOUND\n",
        "evals/pkg/b.py": "BOUND = 1\n",
        "helpers_of_root.py": "WORD = 'x'\n",
        "evals/my_judges.py": textwrap.dedent("""
            import json
            from pkg import a

            def judge(outputs):
                import helpers_of_root
                return True
        """),
        "evals/unrelated.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    seen = [digest(FUNCTION)]
    for name in files:
        (tmp_path / name).write_text(files[name] + "# changed\n")
        seen.append(digest(FUNCTION))
    assert seen[-1] == seen[-2], "a file that nothing imports"
    assert len(set(seen)) == len(files)


def test_a_check_that_imports_counts_what_it_imports(digest: Digest, tmp_path: Path) -> None:
    entry = "- {name: a, check: 'import bounds_of_mine; return True'}"
    (tmp_path / "bounds_of_mine.py").write_text("A = 1\n")
    one = digest(entry)
    (tmp_path / "bounds_of_mine.py").write_text("A = 2\n")
    assert digest(entry) != one


def test_a_builtin_of_the_project_counts_its_file(digest: Digest, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "short.py").write_text("def judge(outputs):\n    return True\n")
    one = digest("- {name: a, builtin: short}", known=_knows("short"), builtin_dirs=[own])
    (own / "short.py").write_text("def judge(outputs):\n    return False\n")
    assert digest("- {name: a, builtin: short}", known=_knows("short"), builtin_dirs=[own]) != one


def _knows(name: str) -> Known:
    known = Known()
    return Known(builtins=known.builtins | {name})


def test_a_shipped_builtin_counts_its_arguments(digest: Digest) -> None:
    entry = "- {name: a, builtin: quality/contains, arguments: {text: %s}}"
    one = digest(entry % "x")
    assert digest(entry % "x") == one
    assert digest(entry % "y") != one


class Asks:
    def __init__(self, model: str) -> None:
        self.definition = {"model": model}

    def __call__(self, record: Mapping[str, Any]) -> Any:
        return True


def test_a_plugin_says_what_makes_its_judge_what_it_is(digest: Digest) -> None:
    known = Known(judge_kinds=frozenset({"ask"}))

    def of(model: str, question: str = "q") -> str:
        def kind(context: JudgeContext) -> Asks:
            return Asks(model)

        return digest(f"- {{name: a, ask: {question}}}", known=known, kinds={"ask": kind})

    assert of("m") == of("m")
    assert len({of("m"), of("n"), of("m", "r")}) == 3
