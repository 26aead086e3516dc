from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.documents import (
    MAX_BYTES,
    MAX_NODES,
    format_place,
    parse_yaml,
    read_document,
    read_yaml,
)
from pytest_agent_eval.errors import DocumentError, Problem


def problems(text: bytes | str) -> tuple[Problem, ...]:
    with pytest.raises(DocumentError) as caught:
        parse_yaml(text, file="f.yaml")
    return caught.value.problems


SAME_AS_PYYAML = [
    "a: 1\nb: [1, 2.5, .inf, true, no, null, ~, 0x1F, 0o7, 012, 1_000, 1:30, 1e3, 1.0e+3]",
    "- 2024-01-02\n- 2024-01-02T03:04:05Z\n- !!binary aGVsbG8=\n- !!str 3\n- !!int '3'",
    "a: |\n  x\n   y\n\nb: >\n  x\n  y\nc: 'it''s'\nd: \"\\u00e9\\n\"",
    "base: &b {x: 1, y: {z: 2}}\nn: {<<: *b, x: 3}\nm: {<<: [*b, {w: 1}], y: 0}",
    "a: &s text\nb: *s\nc: [*s, *s]",
    "? 1\n: a\n? 2024-01-01\n: b\n? null\n: c",
    "",
    "# only a comment",
    "plain",
    "{}",
    "a: =",
]


@pytest.mark.parametrize("text", SAME_AS_PYYAML)
def test_values_are_those_of_pyyaml(text: str) -> None:
    if text == "a: =":
        assert parse_yaml(text).data == {"a": "="}
    else:
        assert parse_yaml(text).data == yaml.load(text, Loader=yaml.CSafeLoader)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
        | st.dates() | st.binary(max_size=9),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=4),
        max_leaves=20,
    )
)  # fmt: skip
def test_what_pyyaml_writes_is_read_back(value: Any) -> None:
    for text in (yaml.safe_dump(value), yaml.safe_dump(value, default_flow_style=True)):
        document = parse_yaml(text, positions=True)
        assert document.data == value
        assert all(1 <= line <= text.count("\n") + 1 for line, _ in document.positions.values())


@given(st.text(max_size=80) | st.binary(max_size=80))
def test_any_text_is_read_or_is_a_document_error(text: str | bytes) -> None:
    try:
        document = parse_yaml(text, positions=True)
    except DocumentError as error:
        found = error.problems
    else:
        found = document.problems
    assert all(problem.message for problem in found)


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a: 1\na: 2", 2, "duplicate key 'a', first used in line 1"),
        ("a:\n  b: 1\n  b: 2", 3, "first used in line 2"),
        ("1: a\ntrue: b", 2, "duplicate key True"),
        ("a: [1", 1, "not valid YAML"),
        ("a: 1\n\tb: 2", 2, "not valid YAML"),
        ("a: 1\n--- \nb: 1", 2, "document"),
        ("a: *b", 1, "undefined alias"),
        ("a: !x 1", 1, "tag"),
        ("a: !!python/name:os.system", 1, "tag"),
        ("a:\n - !!set {b, c}", 2, "tag"),
        ("\na: !!str {b: c}", 2, "tag"),
        ("\na: !!map [b]", 2, "tag"),
        ("\na: 2024-13-45", 2, "2024-13-45"),
        ("\na: !!int abc", 2, "abc"),
        ("\na: !!int ''", 2, "does not fit"),
        ("\na: !!float abc", 2, "abc"),
        ("\na: !!bool maybe", 2, "maybe"),
        ("\na: !!timestamp soon", 2, "soon"),
        ("\na: !!binary é", 2, "not valid YAML"),
        ("\na: 1" + "0" * 5000, 2, "digits"),
        ("a: 1\n? [x]\n: 2", 2, "plain value"),
        ("a: 1\n<<: 3", 2, "<<"),
        ("a: 1\nb: \x00", 2, "not valid YAML"),
        (b"a: 1\nb: \xff", 2, "not UTF-8: byte 0xff"),
        ("\n\na: &a [*a]", 3, "alias"),
        ("a: &a {b: *a}", 1, "alias"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str | bytes, line: int, word: str) -> None:
    (problem,) = problems(text)
    assert problem.line == line
    assert word in problem.message
    assert problem.file == "f.yaml"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: b: c\n", "f.yaml:1:5: not valid YAML: mapping values"),
        ("q: [1\n", "f.yaml:1:6: not valid YAML: did not find expected ','"),
        ("a: 1\r\nb: [é, 😀 \r\n\r\n", "f.yaml:2:9: not valid YAML"),
        ('a: "x\nb: 1\n\n', "f.yaml:2:5: not valid YAML: found unexpected end"),
        ("é: 1\nü: \x07", "f.yaml:2:4: not valid YAML: unacceptable character"),
        ("a: 1\nb: !x 1", "f.yaml:2:4: not valid YAML: the tag"),
        ("a: 1\na: 2", "f.yaml:2: a: duplicate key"),
    ],
)
def test_a_message_points_at_text_that_is_there(text: str, where: str) -> None:
    (problem,) = problems(text)
    assert str(problem).startswith(where)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": }', "f.json:1:7: not valid JSON"),
        ('{"a": [1\n\n', "f.json:1:9: not valid JSON"),
        ('{\n"é" 1}', "f.json:2:5: not valid JSON"),
    ],
)
def test_so_does_a_message_about_json(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "f.json").write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError) as raised:
        read_document(tmp_path / "f.json")
    assert str(raised.value).startswith(where)


def test_all_duplicates_are_reported_once() -> None:
    found = problems("a: &m {x: 1, x: 2}\nb: *m\nc: 1\nc: 2\nc: 3")
    assert [(problem.path, problem.line) for problem in found] == [("a.x", 1), ("c", 4), ("c", 5)]


def test_going_on_in_spite_of_duplicates() -> None:
    document = parse_yaml("a: 1\na: 2\nb: 3", keep_going=True)
    assert document.data == {"a": 1, "b": 3}
    assert [problem.path for problem in document.problems] == ["a"]


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_aliases_may_not_expand_too_far() -> None:
    assert parse_yaml(bomb(4)).data["a3"]
    (problem,) = problems(bomb(7))
    assert "alias" in problem.message


def test_a_large_file_is_no_alias_bomb() -> None:
    text = "- R&D *starred*\n" * (MAX_NODES + 10)
    assert len(parse_yaml(text).data) == MAX_NODES + 10


def test_deep_nesting_is_an_error() -> None:
    for depth, word in ((900, "nested too deeply"), (3000, "nesting depth")):
        (problem,) = problems("[" * depth + "]" * depth)
        assert word in problem.message
        assert problem.line == 1


def test_positions_are_those_of_keys_and_items() -> None:
    text = "a: 1\njudges:\n  - name: x\n    check: |\n      return 1\n  - {name: y}\n"
    document = parse_yaml(text, positions=True)
    assert document.positions["a",] == (1, 1)
    assert document.positions["judges", 0] == (3, 5)
    assert document.positions["judges", 0, "check"] == (4, 5)
    assert document.values["judges", 0, "check"] == (5, 12)
    assert document.positions["judges", 1, "name"] == (6, 6)
    assert document.position(("judges", 1, "absent", 3)) == (6, 5)
    assert document.position(("absent",)) == (1, 1)
    assert parse_yaml("").position(("a",)) == (None, None)
    assert parse_yaml(text).positions == {}


def test_merged_keys_have_the_place_where_they_are_written() -> None:
    text = "base: &b\n  x: 1\n  y: {z: 2}\nn:\n  <<: *b\n  x: 3\n"
    document = parse_yaml(text, positions=True)
    assert document.position(("n", "x")) == (6, 3)
    assert document.position(("n", "y", "z")) == (3, 7)
    assert all("<<" not in place and "<key>" not in place for place in document.positions)


def test_a_byte_order_mark_is_accepted() -> None:
    assert parse_yaml(b"\xef\xbb\xbfa: 1").data == {"a": 1}


def test_timestamps_become_dates() -> None:
    assert parse_yaml("a: 2024-01-02").data == {"a": datetime.date(2024, 1, 2)}


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((), ""),
        (("a",), "a"),
        (("judges", 2, "name"), "judges[2].name"),
        ((0, "a"), "[0].a"),
        (("a", True), "a.True"),
    ],
)
def test_format_place(place: tuple[Any, ...], text: str) -> None:
    assert format_place(place) == text


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("é: 1", encoding="utf-8")
    (tmp_path / "a.json").write_text('{"b": [1, 2.5, null]}')
    assert read_document(tmp_path / "a.yaml") == {"é": 1}
    assert read_document(tmp_path / "a.json") == {"b": [1, 2.5, None]}
    assert read_yaml(tmp_path / "a.yaml").file == "a.yaml"
    assert read_yaml(tmp_path / "a.yaml", file="x/a.yaml", positions=True).file == "x/a.yaml"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(DocumentError, match="larger than 5 MiB"):
        read_yaml(tmp_path / "big.yaml")
    with pytest.raises(DocumentError, match=r"none\.yaml: cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(DocumentError, match="cannot be read"):
        read_yaml(tmp_path)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b'{"a": 1, "a": 2}', "duplicate key 'a'"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": 1', "not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"", "not valid JSON"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "digits"),
    ],
)
def test_wrong_json(tmp_path: Path, data: bytes, word: str) -> None:
    file = tmp_path / "a.JSON"
    file.write_bytes(data)
    with pytest.raises(DocumentError, match=word) as caught:
        read_document(file)
    assert caught.value.problems[0].file == "a.JSON"


@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(), st.lists, max_leaves=9))
def test_json_is_read_back(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    file = tmp_path_factory.mktemp("json", numbered=True) / "a.json"
    file.write_text(json.dumps(value))
    assert read_document(file) == value


@pytest.mark.parametrize("broken", ["\x85", "\u2028", "\u2029"])
def test_lines_are_those_of_an_editor_and_not_those_of_yaml(broken: str) -> None:
    text = f"a: 'x{broken}y'\nb: {{c: 1}}\nb: 2\n"
    document = parse_yaml(text, positions=True, keep_going=True)
    assert document.data == {"a": "x y" if broken == "\x85" else f"x{broken}y", "b": {"c": 1}}
    assert document.position(("b", "c")) == (2, 5)
    assert document.values["b", "c"] == (2, 8)
    (problem,) = document.problems
    assert (problem.line, problem.column) == (3, 1)
    assert "first used in line 2" in problem.message


@pytest.mark.parametrize("broken", ["\x85", "\u2028", "\u2029"])
def test_the_line_of_bad_yaml_is_that_of_an_editor(broken: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_yaml(f"a: 'x{broken}y'\nb: [1\nc: 2\n")
    (problem,) = caught.value.problems
    assert problem.line == 3
