from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.suite.digests import canonical_digest, execution_digest, file_digest
from tests.unit.suite.conftest import Load

BASE = """
    runner: {type: cli, command: "agent {model}", env: {name: x}}
    execution: {prompt: do it, timeout: 60}
    models: {skill: m}
    outputs: [{path: out}]
    hooks: {before_each: [{command: make}]}
"""


def of(load: Load, text: str, **settings: Any) -> str:
    return execution_digest(load(text).config, **settings)


@pytest.mark.parametrize(
    "changed",
    [
        BASE.replace("agent", "other"),
        BASE.replace("{name: x}", "{name: y}"),
        BASE.replace("timeout: 60", "timeout: 61"),
        BASE.replace("do it", "do it now"),
        BASE.replace("path: out", "path: out2"),
        BASE.replace("command: make", "command: make x"),
        BASE + "    permissions: {deny: [Bash]}\n",
        BASE + "    traces: {events: false}\n",
        BASE + "    dataset: {path: cases, workspace: {files: [data.csv]}}\n",
        BASE + "    dataset: {path: cases, leak: error}\n",
        BASE.replace("timeout: 60", "timeout: 60, allow_exit_codes: any"),
    ],
)
def test_what_decides_the_execution(load: Load, changed: str) -> None:
    assert of(load, BASE) != of(load, changed)


@pytest.mark.parametrize(
    "changed",
    [
        BASE + "    judges: [{name: j, check: return True}]\n    thresholds: {j: {min_cases: 1}}\n",
        BASE + "    title: t\n    description: d\n    name: n\n",
        BASE.replace("timeout: 60", "timeout: 60.0, trials: 3, parallelism: 2, pass: any"),
        BASE.replace("command: make", "command: make, description: makes it"),
        BASE.replace("path: out", "path: out, schema: prose, types: {a: b}"),
        BASE + "    dataset: {path: other, split: {holdout: 0.2}, cases: [{include: a}]}\n",
        BASE + "    x-note: mine\n",
        BASE.replace("models: {skill: m}", "models: {judge: j, skill: m}"),
        BASE.replace("hooks: {", "hooks: {after_all: [{command: rm}], "),
    ],
)
def test_what_does_not(load: Load, changed: str) -> None:
    assert of(load, BASE) == of(load, changed)


@pytest.mark.parametrize("key", ["plugin_dirs: [given]", "settings: {project_files: [given]}"])
def test_the_content_of_what_the_agent_is_given(load: Load, tmp_path: Path, key: str) -> None:
    (tmp_path / "given").mkdir()
    file = tmp_path / "given" / "SKILL.md"
    file.write_text("Greet.")
    for text in (
        f"runner: {{type: claude-code, {key}}}\nexecution: {{prompt: x}}",
        f"execution: {{steps: [{{id: a, prompt: x, runner: {{type: codex, {key}}}}}]}}",
    ):
        before = of(load, text, directory=tmp_path)
        assert of(load, text, directory=tmp_path) == before
        file.write_text(file.read_text() + "!")
        assert of(load, text, directory=tmp_path) != before


def test_the_model_the_variant_and_what_else_is_given(load: Load) -> None:
    seen = [
        of(load, BASE),
        of(load, BASE, model="a"),
        of(load, BASE, model="b"),
        of(load, BASE, variant="v"),
        of(load, BASE, variant="v", extra={"values": {"a": "1"}}),
        of(load, BASE, variant="v", extra={"values": {"a": 1}}),
    ]
    assert len(set(seen)) == len(seen)


def test_a_file_that_says_how_to_answer(load: Load, tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("one")
    text = BASE + "    inputs: {tools: [{match: questions, prompt_file: p.md}]}\n"
    one = of(load, text, directory=tmp_path)
    (tmp_path / "p.md").write_text("two")
    assert of(load, text, directory=tmp_path) != one


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text() | st.integers(2, 9), values, max_size=4))
def test_the_order_of_a_mapping_does_not_count(data: dict[Any, Any]) -> None:
    assert canonical_digest(dict(reversed(data.items()))) == canonical_digest(data)


def test_what_yaml_keeps_apart_stays_apart() -> None:
    different: list[Any] = [1, "1", True, "true", 1.5, None, "", [], {}, [1], {1: 1}, {"1": 1}]
    assert len({canonical_digest(value) for value in different}) == len(different)


def test_a_directory_is_its_files(tmp_path: Path) -> None:
    place = tmp_path / "d"
    (place / "in").mkdir(parents=True)
    (place / "a").write_text("x")
    one = file_digest(place)
    (place / "in" / "b").write_text("y")
    two = file_digest(place)
    (place / "in" / "b").rename(place / "in" / "c")
    assert len({one, two, file_digest(place), file_digest(tmp_path / "missing")}) == 4
