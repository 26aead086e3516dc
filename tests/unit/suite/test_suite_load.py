from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_agent_eval.documents import MAX_BYTES
from pytest_agent_eval.errors import Problem, SuiteError
from pytest_agent_eval.suite import Suite, load_suite

SMALL = "dataset: {path: cases}\nrunner: {type: cli, command: x}\n"


def test_a_suite_knows_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "eval.yaml"
    file.parent.mkdir()
    file.write_text(SMALL)
    suite = load_suite(file, rootdir=tmp_path)
    assert suite.file == file
    assert suite.shown == "mine/eval.yaml"
    assert suite.directory == file.parent
    assert suite.dataset_directory == file.parent / "cases"
    assert suite.name == "mine"
    assert suite.digest == xxhash.xxh3_128_hexdigest(SMALL.encode())
    assert load_suite(file, rootdir=file.parent / "other").shown == str(file)


def test_relative_to_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "eval.yaml").write_text("judges: []\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SuiteError, match=r"^eval\.yaml:1: dataset: missing; it is required$"):
        load_suite("eval.yaml")


def test_lines(load: Any) -> None:
    suite: Suite = load("judges:\n  - name: a\n    check: |\n      return 1\n")
    assert suite.line("judges[0].name") == 3
    assert suite.line("judges[0].score_range") == 3
    assert suite.line("judges[0].arguments.deep.er") == 3
    assert suite.line("nothing") == 1
    assert suite.line("") == 1
    assert suite.value_line("judges[0].check") == 5
    assert suite.value_line("judges[0].nothing") == 3


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"# nothing\n", "the file is empty"),
        (b"- a\n", "it is a list"),
        (b"word\n", "it is 'word'"),
        (b"a: b: c\n", "not valid YAML"),
        (b"dataset: {path: a\n", "not valid YAML"),
        (b"a: 1\n\xff\xfe", "not UTF-8"),
        (b"a: 1\x00", "not valid YAML"),
        (b"a: 1\n---\nb: 1\n", "document"),
        (b"a: !!python/object:os.system x\n", "tag"),
        (b" " * (MAX_BYTES + 1), "larger than 5 MiB"),
    ],
)
def test_files_that_are_no_suites(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "eval.yaml").write_bytes(data)
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / "eval.yaml", rootdir=tmp_path)
    assert words in str(caught.value)
    assert all(problem.line for problem in caught.value.problems)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"eval\.yaml:1: cannot be read: No such file"):
        load_suite(tmp_path / "eval.yaml", rootdir=tmp_path)


def test_duplicate_keys_hide_nothing(problems: Any) -> None:
    found = problems("name: a\nname: b\nexecution: {timeout: 0}\n")
    assert set(found) == {"name", "execution.timeout"}


def test_a_problem_of_an_alias_is_told_for_each_use(problems: Any) -> None:
    found = problems("x-judge: &j {name: a, check: return 1, kind: x}\njudges: [*j]\n")
    assert found == {"judges[0].kind": found["judges[0].kind"]}


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    suite = load_suite(tmp_path / "eval.yaml", text=b"\xef\xbb\xbf" + SMALL.encode())
    assert suite.config.dataset.path == "cases"


def test_other_forms_of_line_ends(tmp_path: Path) -> None:
    text = SMALL.replace("\n", "\r\n") + "judges:\r\n  - name: a\r\n    check: return (\r\n"
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / "eval.yaml", text=text)
    assert caught.value.problems[0].line == 5


def test_names_are_imported_late() -> None:
    code = (
        "import sys, pytest_agent_eval.suite as suite\n"
        "suite.is_suite(b'dataset: 1')\n"
        "assert 'pydantic' not in sys.modules\n"
        "suite.load_suite\n"
        "heavy = {'jinja2', 'litellm', 'pytest', '_pytest', 'simpleeval'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_of_the_package() -> None:
    import pytest_agent_eval.suite as package

    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = package.no_such_thing


KEYS = st.sampled_from(
    ["name", "skill", "dataset", "path", "workspace", "files", "split", "holdout", "by", "cases", "include", "execution", "mode", "prompt", "arguments", "timeout", "steps", "id", "env", "runner", "type", "command", "function", "settings", "project_files", "models", "judge", "permissions", "allow", "deny", "tools", "outputs", "tool", "schema", "judges", "check", "builtin", "llm_rubric", "agent", "if", "pass_if", "feedback_type", "score_range", "samples", "module", "thresholds", "a", "min_mean", "min_pass_rate", "min_win_rate", "reward", "formula", "weights", "raw", "hooks", "before_all", "generation", "strategy", "seeds", "category", "count", "prompt_file", "builtin", "context", "variants", "values", "matrix", "factors", "replications", "mlflow", "x-y", "answers", "leak", "trials", "pass", "retries", "allow_exit_codes", "traces", "inputs", "match", "effort", "examples", "source", "labels", "step"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["cli", "python", "claude-code", "codex", "batch", "synthetic", "a", "pairwise", "weighted",
         "..", ".", "bool", "int", "x = (", "return 1", "annotations.yaml", "name", "repo", "any"]
    ),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | SCALARS, inner, max_size=6),
    max_leaves=25,
)


def problems_in(text: str | bytes) -> tuple[Problem, ...]:
    """What is wrong with a text; anything but a SuiteError is a failure."""
    try:
        load_suite("/nowhere/eval.yaml", text=text)
    except SuiteError as error:
        assert error.problems  # noqa: PT017 -- raising is optional here
        return error.problems
    return ()


@given(st.dictionaries(KEYS, VALUES, max_size=8))
@example({"name": {"\x85": None}, "skill": [], "dataset": "\x85"})
def test_any_data_loads_or_has_problems_with_lines(data: dict[str, Any]) -> None:
    import yaml

    text = yaml.safe_dump(data, allow_unicode=True)
    for problem in problems_in(text):
        assert problem.line is not None
        assert 1 <= problem.line <= text.count("\n") + 1
        assert problem.file
        assert "pydantic" not in problem.message


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode()))
def test_any_bytes_load_or_are_a_suite_error(data: bytes) -> None:
    problems = problems_in(b"dataset: {path: a}\n" + data)
    assert all(problem.line for problem in problems)
