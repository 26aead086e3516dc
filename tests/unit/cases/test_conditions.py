from __future__ import annotations

import datetime
import string
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.cases import DATASET_NAMES, JUDGE_NAMES, VALUE_NAMES, compile_condition
from pytest_agent_eval.errors import ConditionError


class Lazy(Mapping[str, Any]):
    """A mapping that is no dict, as the record of a trial is."""

    def __init__(self, **values: Any) -> None:
        self._values = values
        self.read: list[str] = []

    def __getitem__(self, key: str) -> Any:
        self.read.append(key)
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


SCOPE: dict[str, Any] = {
    "annotations": {
        "tier": 2,
        "tags": ["dedup", "long"],
        "rows": [{"a": 1}, {"a": 2}],
        "due": datetime.date(2024, 1, 2),
        "text": "Hello, World",
        "none": None,
        "nested": {"k": {"v": 1}},
    },
    "input": {"prompt": "Find it"},
    "name": "case-001",
    "split": "dev",
    "tags": {"dedup": "yes"},
    "group": None,
    "outputs": Lazy(files={"a.md": "x"}, cost_usd=0.5),
    "trial": 1,
    "variant": None,
    "case": "case-001",
}


def value(source: str, scope: Mapping[str, Any] = SCOPE) -> Any:
    return compile_condition(source, JUDGE_NAMES).value(scope)


def refused(source: str, names: frozenset[str] = JUDGE_NAMES) -> str:
    with pytest.raises(ConditionError) as caught:
        compile_condition(source, names)
    return str(caught.value)


def raised(source: str) -> str:
    condition = compile_condition(source, JUDGE_NAMES)
    with pytest.raises(ConditionError) as caught:
        condition.value(SCOPE)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("1 + 2 * 3 - 4 / 2 ** 2 // 1 % 5", 1 + 2 * 3 - 4 / 2**2 // 1 % 5),
        ("-1 + +2", 1),
        ("not None", True),
        ("1 < 2 <= 2 != 3 > 1 >= 1", True),
        ("1 < 2 > 5 < (1/0)", False),
        ("'a' in 'abc' and 'd' not in 'abc'", True),
        ("None is None, 1 is not None", (True, True)),
        ("0 or '' or 'last'", "last"),
        ("1 and 2", 2),
        ("'yes' if tags.get('dedup') else 'no'", "yes"),
        ("annotations['text'][0] + annotations['text'][-5:]", "HWorld"),
        ("annotations['text'][::-1]", "dlroW ,olleH"),
        ("annotations['nested']['k']['v']", 1),
        ("annotations.get('x', 7)", 7),
        ("[t for t in annotations['tags'] if t != 'long']", ["dedup"]),
        ("{t: len(t) for t in annotations['tags']}", {"dedup": 5, "long": 4}),
        ("{t[0] for t in annotations['tags']} == {'d', 'l'}", True),
        ("sum(row['a'] for row in annotations['rows'])", 3),
        ("[(k, v) for k, v in tags.items()]", [("dedup", "yes")]),
        ("[a + b for a in [1, 2] for b in [10, 20] if a * b > 10]", [21, 12, 22]),
        ("[[y * x for y in [x, 1]] for x in [2, 3]]", [[4, 2], [9, 3]]),
        ("[x for x, (y, z) in [(1, (2, 3))]]", [1]),
        ("any(row['a'] == 1 or row['missing'] for row in annotations['rows'])", True),
        ("all(row['a'] < 2 and 1 for row in annotations['rows'])", False),
        ("any([]), all([])", (False, True)),
        ("sorted(annotations['tags'], reverse=True)", ["long", "dedup"]),
        ("min(3, 1, 2), max([1, 5]), min([], default=0)", (1, 5, 0)),
        ("max(len(t) for t in annotations['tags'])", 5),
        ("len(annotations['tags']) + len('abc') + len(tags)", 6),
        ("str(1) + str(True) + str()", "1True"),
        ("int('12') + int(3.9) + int() + int('ff', 16)", 270),
        ("float('1.5') + float()", 1.5),
        ("bool([]), bool(1), bool()", (False, True, False)),
        ("abs(-3), round(2.567, 1), round(2.5)", (3, 2.6, 2)),
        ("sum([1, 2.5], 1)", 4.5),
        ("'%' in 'a%b' and {'a': 1} == {'a': 1}", True),
        ("[1, 2] + [3], 'ab' * 2, 2 * [0], (1,) * 2", ([1, 2, 3], "abab", [0, 0], (1, 1))),
        ("annotations['tags'].count('dedup') + annotations['tags'].index('long')", 2),
        ("annotations['text'].lower().split(', ')", ["hello", "world"]),
        ("' x '.strip() + 'xay'.strip('xy') + 'aB'.casefold()", "xaab"),
        ("'a b c'.rsplit(' ', maxsplit=1)", ["a b", "c"]),
        ("'abc'.startswith(('x', 'a'))", True),
        ("'ab'.removeprefix('a').removesuffix('b')", ""),
        ("'1'.isdigit() and 'a'.isalpha() and 'A'.isupper() and ' '.isspace()", True),
        ("sorted(annotations['nested'].keys()), tags.values()", (["k"], ["yes"])),
        ("annotations['due'].get if False else 1", None),
        ("1000 < 10**3 + 1 and 2 ** -1 == 0.5 and 1 ** 100000 == 1", True),
        ("-7 // 2, -7 % 3", (-4, 2)),
    ],
)
def test_values(source: str, wanted: Any) -> None:
    if ".get if" in source:
        assert ".get is a method; call it" in refused(source)
    else:
        assert value(source) == wanted


def test_a_condition_over_several_lines() -> None:
    assert value("annotations['tier'] == 2\n  and split == 'dev'\n") is True


def test_any_mapping_will_do() -> None:
    assert value("outputs['cost_usd'] + outputs.get('x', 1)") == 1.5
    assert value("'files' in outputs and 'x' not in outputs and len(outputs) == 2") is True
    assert value("'a.md' in outputs['files']") is True
    assert value("[key for key in outputs]") == ["files", "cost_usd"]


def test_only_the_names_that_are_read_are_taken_from_the_scope() -> None:
    scope = Lazy(**SCOPE)
    condition = compile_condition("[name for x in tags if x == split] or trial", JUDGE_NAMES)
    assert condition.reads == {"name", "tags", "split", "trial"}
    assert condition.value(scope) == 1
    assert set(scope.read) == condition.reads


def test_the_names() -> None:
    assert {"annotations", "input", "name", "split", "tags", "group"} == DATASET_NAMES
    assert {"outputs", "trial", "variant", "case"} | DATASET_NAMES == JUDGE_NAMES
    assert compile_condition("value >= 4", VALUE_NAMES).evaluate({"value": 4}) is True
    assert "outputs: unknown name" in refused("outputs['x']", DATASET_NAMES)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("annotation.get('x')", "annotation: unknown name; did you mean annotations?"),
        ("category == 'x'", "write annotations.get('category')"),
        ("expected_output", "write annotations.get('expected_output')"),
        ("_x", "_x: unknown name; there are annotations, case"),
        ("len", "len is a function; call it"),
        ("length('x')", "length(): there is no such function; did you mean len?"),
        ("open('x')", "there are abs, all, any"),
        ("eval('1')", "there is no such function"),
        ("name.uper()", ".uper() is not allowed; did you mean upper?"),
        ("name.format(1)", ".format() is not allowed"),
        ("name.join([])", ".join() is not allowed"),
        ("annotations.tier", "write ['tier'] or .get('tier')"),
        ("annotations.pop('x')", ".pop() is not allowed"),
        ("name.__class__", ".__class__ is not allowed"),
        ("name._x", "._x is not allowed"),
        ("lambda: 1", "lambda is not allowed"),
        ("(x := 1)", ":= is not allowed"),
        ("f'{name}'", "an f-string is not allowed"),
        ("[*tags]", "* is not allowed"),
        ("len(*tags)", "* is not allowed"),
        ("{**tags}", "** is not allowed"),
        ("sorted(tags, **tags)", "** is not allowed"),
        ("sorted(tags, key=len)", "len is a function"),
        ("(x for x in tags)", "as an argument only"),
        ("[x for name in tags]", "name has a meaning already"),
        ("[1 for __x in tags]", "must not begin with two underscores"),
        ("[1 for tags['a'] in tags]", "a loop variable must be a name"),
        ("[x async for x in tags]", "async is not allowed"),
        ("[x for x in tags] + x", "x: unknown name"),
        ("1 | 2", "the operator BitOr is not allowed"),
        ("~1", "the operator Invert is not allowed"),
        ("1 << 9", "the operator LShift is not allowed"),
        ("1 @ 2", "the operator MatMult is not allowed"),
        ("b'x'", "b'x' is not allowed"),
        ("1j", "1j is not allowed"),
        ("...", "... is not allowed"),
        ("tags.get('a')('b')", "only functions and methods can be called"),
        ("await name", "await is not allowed"),
        ("(yield)", "yield is not allowed"),
        ("1 +", "not a Python expression: invalid syntax"),
        ("split = 'dev'", "not a Python expression"),
        ("a; b", "not a Python expression"),
        ("a\0b", "not a Python expression"),
        ("", "is empty"),
        (" \n ", "is empty"),
        ("1" + "+1" * 1000, "longer than 2,000 characters"),
        ("1" + "+1" * 150, "too large: 301 parts"),
        ("(" * 900 + ")" * 900, ""),
        ("-" * 1900 + "1", ""),
    ],
)
def test_refused_when_loaded(source: str, says: str) -> None:
    assert says in refused(source)


def test_warnings_of_python_are_not_the_users_concern() -> None:
    assert value("1if True else 2") == 1
    assert value(r"'\d' == '\\d'") is True


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("annotations['x'] == 1", "raised KeyError: 'x'; .get('x') gives None where it is absent"),
        ("annotations['tier'].lower()", "raised TypeError: a number has no .lower()"),
        ("annotations['none'].get('x')", "raised TypeError: None has no .get()"),
        ("annotations['due'].count(1)", "a date has no .count()"),
        ("annotations['tags'].get('x')", "a list has no .get()"),
        ("tags.upper()", "a mapping has no .upper()"),
        ("(1 < 2).upper()", "a boolean has no .upper()"),
        ("name['x']", "raised TypeError"),
        ("annotations['tier'][0]", "a number has no parts to pick"),
        ("[x for x in annotations['tier']]", "a number has no items to walk over"),
        ("any(3)", "a number has no items"),
        ("[x for x, y in annotations['tags']]", "met 5 values"),
        ("1 / 0", "raised ZeroDivisionError"),
        ("annotations < 1", "raised TypeError"),
        ("int('x')", "raised ValueError"),
        ("'%5d' % 1", "% needs numbers, not a text"),
        ("'a' ** 2", "** needs numbers"),
        ("sum(['a'])", "sum() adds numbers, not a text"),
        ("sum([[1]], [])", "sum() adds numbers, not a list"),
        ("{annotations['tags']: 1}", "raised TypeError"),
        ("len()", "raised TypeError"),
        ("len(x for x in name) + len(1)", "raised TypeError"),
    ],
)
def test_raises_for_a_case(source: str, says: str) -> None:
    message = raised(source)
    assert message.startswith(source)
    assert says in message


def test_what_the_scope_raises_is_told_too() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Broken(Lazy):
        def __getitem__(self, key: str) -> Any:
            raise Hostile

    with pytest.raises(ConditionError, match="raised Hostile"):
        compile_condition("outputs['x']", JUDGE_NAMES).value({"outputs": Broken()})

    class NoTruth:
        def __bool__(self) -> bool:
            raise ValueError("neither")

    with pytest.raises(ConditionError, match="raised ValueError: neither"):
        compile_condition("value", VALUE_NAMES).evaluate({"value": NoTruth()})


# What would take hours or all memory without a bound: that the test ends is the test.
_LAUGHS = "[1 for a in [[1] * 9] " + " ".join(
    f"for {new} in [[{old}, {old}, {old}, {old}, {old}, {old}]]"
    for old, new in zip("abcdefghijklmno", "bcdefghijklmnop", strict=True)
)


@pytest.mark.parametrize(
    "source",
    [
        "9**9**9",
        "2**99999999",
        "(-9)**99999999",
        "9**999 * 9**999 * 9**999",
        "'a' * 10**9",
        "10**9 * 'a'",
        "[0] * 10**9",
        "((0,) * 50000) * 50000",
        "[[0] * 90000] * 90000",
        "('a' * 90000) + ('a' * 90000)",
        "str([[0] * 90000] * 90000)",
        "[[0] * 900] * 900 == [[0] * 900] * 900",
        "[[0] * 900] * 900 < [[0] * 900] * 900",
        "[0] in [[[0] * 900] * 900]",
        "sorted([[0] * 900] * 900)",
        "max([[0] * 900] * 900)",
        "max([0] * 900, [[0] * 900] * 900)",
        "[[0] * 900] * 900",
        "sorted([1] * 100000)",
        "sum([y for x in [1] * 50000 for y in [1] * 50000])",
        "sum([a * b for a in [1] * 50000 for b in [1] * 50000])",
        "any(0 for a in [1] * 9999 for b in [1] * 9999 for c in [1] * 9999)",
        "all(any(0 for b in [1] * 9999) or 1 for a in [1] * 99999)",
        "[0 for a in [1] * 99999 if ('ab' * 40000).split('b')]",
        "[0 for a in [1] * 99999 if ('a' * 90000).upper()]",
        "[0 for a in [1] * 99999 if ('a' * 90000)[1:]]",
        "[0 for a in [1] * 99999 if 'b' in 'a' * 90000]",
        "[0 for a in [1] * 99999 if 5 in [0] * 90000]",
        "[0 for a in [1] * 99999 if [0] * 90000]",
        "('a' * 90000).strip('b' * 90000 + 'a')",
        "[0 for a in [1] * 99999 if ('a' * 90000).strip('b' * 90000 + 'a')]",
        "int('9' * 90000)",
        "round(5, -10**9)",
        "round(5.5, 10**9)",
        "int(1e308) ** 5",
        "{((1,) * 900,) * 900: 1}",
        "tags.get((((1,) * 900,) * 900,) * 900)",
        "{((((1,) * 90,) * 90,) * 90,) * 90}",
        "[str(x) for x in [[0] * 90000] * 90000]",
        "[" + _LAUGHS[1:] + " if str(p)]",
        "[" + _LAUGHS[1:] + " if p == [o, o, o, o, o, o]]",
        "[" + _LAUGHS[1:] + " if [p] == [[o, o, o, o, o, o]]]",
    ],
)
def test_work_is_bounded(source: str) -> None:
    message = raised(source)
    assert any(word in message for word in ("too much work", "too large", "longer than", "digits"))


def test_ordinary_sizes_are_within_the_bounds() -> None:
    text = "word " * 100_000
    scope = {
        "outputs": {
            "output": text,
            "files": {f"{number}.md": text for number in range(1000)},
            "events": [{"type": "tool", "name": "read"}] * 20_000,
        }
    }
    for source, wanted in {
        "len(outputs['output'].split())": 100_000,
        "'error' in outputs['output'].lower()": False,
        "any(e['name'] == 'write' for e in outputs['events'])": False,
        "len([f for f in outputs['files'] if f.endswith('.md')])": 1000,
        "sorted(outputs['files'].keys())[0]": "0.md",
    }.items():
        assert value(source, scope) == wanted


def test_a_condition_can_be_used_from_several_threads() -> None:
    condition = compile_condition("[x + trial for x in [y for y in [1, 2]]]", JUDGE_NAMES)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda trial: condition.value({"trial": trial}), range(500)))
    assert results == [[1 + trial, 2 + trial] for trial in range(500)]


def test_evaluating_leaves_the_scope_alone() -> None:
    scope = {"tags": {"a": "b"}}
    value("[k for k, v in tags.items()]", scope)
    assert scope == {"tags": {"a": "b"}}


def test_a_condition_shows_its_source() -> None:
    condition = compile_condition("  split == 'dev' ", JUDGE_NAMES)
    assert condition.source == "split == 'dev'"
    assert repr(condition) == """Condition("split == 'dev'")"""


def value_or_error(source: str) -> None:
    """Whatever else is raised fails the test."""
    with suppress(ConditionError):
        compile_condition(source, JUDGE_NAMES).value(SCOPE)


@given(st.text())
def test_any_text_gives_a_value_or_a_condition_error(source: str) -> None:
    value_or_error(source)


_atoms = st.sampled_from(
    [
        *("annotations", "tags", "name", "outputs", "group", "trial", "1", "0", "-3", "2.5"),
        *("None", "[]", "{}", "'ab'", "'tier'", "x", "len", "range", "__import__", "'__class__'"),
    ]
)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    methods = [
        "get",
        "keys",
        "items",
        "lower",
        "split",
        "count",
        "index",
        "strip",
        "__class__",
        "format",
        "startswith",
    ]
    return st.one_of(
        st.tuples(
            inner,
            st.sampled_from(
                ["+", "-", "*", "/", "//", "%", "**", "<", "==", "in", "and", "or", "is"]
            ),
            inner,
        ).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        st.tuples(inner, st.sampled_from(methods), inner).map(
            lambda parts: f"{parts[0]}.{parts[1]}({parts[2]})"
        ),
        st.tuples(
            st.sampled_from(["len", "any", "all", "sum", "str", "int", "sorted", "max", "round"]),
            inner,
        ).map(lambda parts: f"{parts[0]}({parts[1]})"),
        pair.map(lambda parts: f"{parts[0]}[{parts[1]}]"),
        pair.map(lambda parts: f"[{parts[0]} for x in {parts[1]}]"),
        pair.map(lambda parts: f"any({parts[0]} for x in {parts[1]} if x)"),
        pair.map(lambda parts: f"[{parts[0]}, {parts[1]}]"),
        inner.map(lambda part: f"(not {part})"),
    )


@given(st.recursive(_atoms, _grow, max_leaves=12))
def test_any_expression_gives_a_value_or_a_condition_error(source: str) -> None:
    value_or_error(source)


@given(
    st.sampled_from(["name", "annotations", "''", "()", "[]", "tags.get('x')", "(1)", "any([])"]),
    st.text(string.ascii_lowercase, min_size=1, max_size=12).map("x{}".format),
    st.sampled_from(
        ["{}.__{}__", "{}.__{}__()", "{}._{}", "{}.{}.__{}__", "[x.__{1}__ for x in {0}]"]
    ),
)
def test_underscored_attributes_are_never_reached(start: str, word: str, form: str) -> None:
    assert "not allowed" in refused(form.format(start, word, word))


def test_importing_the_room_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest_agent_eval.cases as cases\n"
        "heavy = {'jinja2', 'simpleeval', 'pydantic'}\n"
        "assert not heavy & set(sys.modules)\n"
        "for name in cases.__all__: getattr(cases, name)\n"
        "cases.compile_template('{a}').render({'a': 1})\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "cases.compile_condition('1', frozenset())\n"
        "assert heavy & set(sys.modules) == {'simpleeval'}\n"
        "cases.compile_template('{{ input }}')\n"
        "assert heavy & set(sys.modules) == {'simpleeval', 'jinja2'}\n"
        "try: cases.nothing\n"
        "except AttributeError: pass\n"
        "else: raise SystemExit('cases.nothing exists')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
