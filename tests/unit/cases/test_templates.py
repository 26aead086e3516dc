from __future__ import annotations

import datetime
import json
import shlex
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_agent_eval.cases import command_words, compile_template
from pytest_agent_eval.errors import TemplateError

INPUT: dict[str, Any] = {
    "prompt": "Find it",
    "n": 3,
    "x": 2.5,
    "zero": 0,
    "no": False,
    "list": ["ä", {"k": None}],
    "empty_list": [],
    "nested": {"k": {"deep": "v"}, "none": None},
    "a.b": "exact",
    "a": {"b": "walked", "c": "c"},
    "day": datetime.date(2024, 1, 2),
    "when": datetime.datetime(2024, 1, 2, 3, 4, 5),
    "dates": {datetime.date(2024, 1, 2): datetime.date(2024, 1, 3)},
    "bytes": b"abc",
    "null": None,
    "blank": "",
    "items": "mine",
    "placeholder": "{n} {{ input.n }} {% raw %}",
}


def render(source: str, values: dict[str, Any] | None = None) -> str:
    return compile_template(source).render(INPUT if values is None else values, case="case-1")


def fails(source: str) -> str:
    with pytest.raises(TemplateError) as caught:
        render(source)
    return str(caught.value)


VALUES = [
    ("prompt", "Find it"),
    ("n", "3"),
    ("x", "2.5"),
    ("zero", "0"),
    ("no", "false"),
    ("list", '["ä", {"k": null}]'),
    ("empty_list", "[]"),
    ("day", "2024-01-02"),
    ("when", "2024-01-02T03:04:05"),
    ("dates", '{"2024-01-02": "2024-01-03"}'),
    ("bytes", "abc"),
    ("placeholder", "{n} {{ input.n }} {% raw %}"),
]


@pytest.mark.parametrize(("field", "text"), VALUES)
def test_values_in_both_styles(field: str, text: str) -> None:
    assert render(f"<{{{field}}}>") == f"<{text}>"
    assert render(f"<{{{field}?}}>") == f"<{text}>"
    assert render(f"<{{{{ input.{field} }}}}>") == f"<{text}>"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{null?}{blank?}{absent?}{nested.x?}{n.x?}", ""),
        ("{nested.k.deep}", "v"),
        ("{nested.k}", '{"deep": "v"}'),
        ("{a.b} {a.c}", "exact c"),
        ('{"a": 1} {} { n } {1} {n:03d} {n!r} }{', '{"a": 1} {} { n } {1} {n:03d} {n!r} }{'),
        ('{"a": {"b": {n}}}', '{"a": {"b": 3}}'),
        ("", ""),
        ("trailing\n", "trailing\n"),
    ],
)
def test_braces(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{absent}", "case-1: {absent}: there is no field absent"),
        ("{promt}", "did you mean {prompt}?"),
        ("{null}", "case-1: {null}: the field null is null; write {null?}"),
        ("{blank}", "case-1: {blank}: the field blank is empty; write {blank?}"),
        ("{nested.none}", "is null"),
        ("{nested.x}", "no field nested.x"),
    ],
)
def test_a_required_field_that_cannot_be_filled(source: str, says: str) -> None:
    assert says in fails(source)


def test_without_a_case_the_field_is_named() -> None:
    with pytest.raises(TemplateError, match=r"^\{a\}: there is no field a; there is none"):
        compile_template("{a}").render({})


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ input.n }} {n}", "3 {n}"),
        ("{{ input['prompt'] }}", "Find it"),
        ("{{ input.nested.k }}", '{"deep": "v"}'),
        ("{{ input.null }}", "null"),
        ("{{ input.get('absent') or 'x' }}", "x"),
        ("{{ input.absent | default('x') }}", "x"),
        ("{% if input.absent is defined %}a{% else %}b{% endif %}", "b"),
        ("{% for i in input.list %}{{ loop.index }}{{ i }};{% endfor %}", '1ä;2{"k": null};'),
        ("{% for i in range(3) %}{{ i }}{% endfor %}", "012"),
        ("{{ input.items }}", "mine"),
        ("{{ '<b>\"&' }}", '<b>"&'),
        ("{{ input.list | tojson }}", '["ä", {"k": null}]'),
        ("{{ {'a': '<'} | tojson(indent=1) }}", '{\n "a": "<"\n}'),
        ("{{ 'a' * 3 ~ 2 ** 3 ~ 7 % 4 ~ 'a' + 'b' }}", "aaa83ab"),
        ("{{ '%s-%03d' % ('a', 5) }} {{ '%s'|format(1) }} {{ '{:>3}'.format(1) }}", "a-005 1   1"),
        ("{{ 'a\nb\n\nc' | indent(2) }}", "a\n  b\n\n  c"),
        ("{{ 'a\n\nb' | indent(1, true, true) }}", " a\n \n b"),
        ("{{ steps.one.output }}", "done"),
        ("{{ 1 }}\n", "1\n"),
    ],
)
def test_jinja(source: str, text: str) -> None:
    template = compile_template(source)
    assert template.render(INPUT, steps={"one": {"output": "done"}}) == text


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{{ input.absent }}", "case-1: there is no field absent; its fields are a, a.b"),
        ("{{ input.absent.x }}", "case-1: there is no field absent"),
        ("{{ input.nested.x }}", "there is no field x; its fields are k, none"),
        ("{{ input.n.x }}", "int has no x"),
        ("{{prompt}}", "prompt is undefined; a field of the input is input.prompt"),
        ("{{ steps.two.output }}", "there is no field two"),
        ("{{ input.get }}", "no value that can be written out"),
        ("{{ ''.__class__.__mro__ }}", "not allowed in a template"),
        ("{{ input.__class__ }}", "not allowed in a template"),
        ("{{ ''|attr('__class__') }}", "__class__"),
        ("{{ input.update({}) }}", "not allowed in a template"),
        ("{{ input.list.append(1) }}", "not allowed in a template"),
        ("{% include 'x' %}", "no loader"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ 'a' * 10**9 }}", "longer than"),
        ("{{ 10**9 * 'a' }}", "longer than"),
        ("{{ [0] * 10**9 }}", "longer than"),
        ("{{ ('a' * 5000000) + ('a' * 5000000) }}", "longer than"),
        ("{{ 9 ** (9 ** 9) }}", "too large"),
        ("{{ 2 ** 4000 * 2 ** 4000 }}", "too large"),
        ("{{ range(10**9) | list }}", "rounds"),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "rounds",
        ),
        ("{% for a in range(9000) %}{{ 'a' * 9000 }}{% endfor %}", "characters"),
        ("{{ 'a'.center(10**9) }}", "not allowed"),
        ("{{ 'a'.ljust(10**9) }}", "not allowed"),
        ("{{ 'a'.zfill(10**9) }}", "not allowed"),
        ("{{ '\t'.expandtabs(10**9) }}", "not allowed"),
        ("{{ '%999999999d' % 1 }}", "width"),
        ("{{ '%*d' % (10**9, 1) }}", "width"),
        ("{{ '%999999999d' | format(1) }}", "width"),
        ("{{ '{:999999999}'.format(1) }}", "width"),
        ("{{ '{:{}}'.format(1, 10**9) }}", "width"),
        ("{{ 'a' | indent(10**9) }}", "longer than"),
    ],
)
def test_what_jinja_templates_may_not_do(source: str, says: str) -> None:
    message = fails(source)
    assert message.startswith("case-1: ")
    assert says in message


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("a\n{{ input.prompt", "line 2: "),
        ("{% if %}", "line 1: "),
        ("{{ x | nofilter }}", "nofilter"),
        ("{{ x | center(10) }}", "center"),
        ("{% endfor %}", "line 1: "),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deeply"),
    ],
)
def test_syntax_errors_are_found_when_compiled(source: str, says: str) -> None:
    with pytest.raises(TemplateError, match=says):
        compile_template(source)


def test_json_for_what_has_no_form_in_it() -> None:
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(TemplateError, match="cannot be written as JSON"):
        render("{a}", {"a": nested})
    with pytest.raises(TemplateError, match="object is no value"):
        render("{a}", {"a": object()})
    assert render("{a}", {"a": [{1: (2, 3)}, {4}, b"x"]}) == '[{"1": [2, 3]}, [4], "x"]'


def test_the_input_is_not_changed() -> None:
    values = {"list": [1], "nested": {"a": 1}}
    before = json.dumps(values)
    render("{{ input.list }}{% set x = input.list %}{{ x }}", values)
    assert json.dumps(values) == before


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("{a} {b?} {c.d} {c.e}", {"a", "c"}),
        ("no placeholder", set()),
        ("{{ input.a }} {{ input['b'] }} {{ input.c.upper() }} {{ input.d | upper }}", set("abcd")),
        ("{{ input.a ~ input.b }} {{ f(input.c) }}", set("abc")),
        ("{{ input.get('a') }} {{ input.get(input.b) }}", {"b"}),
        ("{{ input.a | default('x') }} {{ input.b | d }} {{ input.c or 1 }}", set()),
        ("{{ input.a if input.b }} {{ input.c is defined }} {{ not input.d }}", set()),
        (
            "{% if input.a %}{{ input.b }}{% endif %}{% for x in input.c %}{{ x }}{% endfor %}",
            set(),
        ),
        ("{{ input[key] }} {{ other.a }} {{ input[0] }}", set()),
    ],
)
def test_fields_that_are_plainly_required(source: str, fields: set[str]) -> None:
    assert compile_template(source).fields == fields


def test_what_an_input_does_not_provide() -> None:
    assert compile_template("{a} {a.b} {a.x} {b?} {c} {null}").missing(INPUT) == {"a.x", "c"}
    assert compile_template("{{ input.a }} {{ input.z }}").missing(INPUT) == {"z"}


def test_a_template_shows_its_source() -> None:
    assert repr(compile_template("{a}")) == "Template('{a}')"
    assert compile_template("{{ 1 }}").source == "{{ 1 }}"


_texts = st.text() | st.sampled_from(
    ["{a}", "{b?}", "{{ input.a }}", "{% raw %}", "{{", "\\1", "$a"]
)


@given(_texts, _texts)
def test_a_value_is_never_read_as_a_template(one: str, other: str) -> None:
    values = {"a": one or "x", "b": other or "x"}
    assert render("{a}|{b}|{a?}", values) == f"{values['a']}|{values['b']}|{values['a']}"
    text = render("{{ input.a }}|{{ input.b }}", values)
    assert text == f"{values['a']}|{values['b']}"


@given(st.text())
def test_any_text_renders_or_is_a_template_error(source: str) -> None:
    for text in (source, "{{" + source, "{% " + source + " %}"):
        with suppress(TemplateError):  # whatever else is raised fails the test
            render(text)


# -- commands ----------------------------------------------------------------------------------

_no_nul = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(_no_nul, _no_nul)
def test_a_value_stays_part_of_one_word(one: str, other: str) -> None:
    values = {"a": one, "b": other}
    words = command_words("""tool {a} --b={b} '{a} {b}' "{a}" x\\ {b}""", values)
    assert words == ["tool", one, f"--b={other}", f"{one} {other}", one, f"x {other}"]
    # What a shell would have made of the quoted values.
    assert words[1:3] == shlex.split(f"{shlex.quote(one)} --b={shlex.quote(other)}")
    assert command_words(["{a}", "--b={b}"], values) == [one, f"--b={other}"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("a  b\n c", ["a", "b", "c"]),
        ("a '' \"\"", ["a", "", ""]),
        ("a {empty?}", ["a", ""]),
        ("""sh -c 'echo "{n}" | cat; {"a": 1}'""", ["sh", "-c", 'echo "3" | cat; {"a": 1}']),
        ("a # b", ["a", "#", "b"]),
        ("{list}", ['["x", "y"]']),
        (["a b", "{n}", 3, 2.5, True], ["a b", "3", "3", "2.5", "true"]),
        (("a", "{{n}}"), ["a", "{3}"]),
    ],
)
def test_words(command: Any, words: list[str]) -> None:
    assert command_words(command, {"n": 3, "empty": "", "list": ["x", "y"]}) == words


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("a 'b", "runner.command: no closing quotation"),
        ("a \\", "runner.command: no escaped character"),
        ("", "runner.command: is empty"),
        ("  ", "runner.command: is empty"),
        ([], "runner.command: is empty"),
        ("a {absent}", "{absent}: there is no field absent"),
        ("a {nul}", "NUL character"),
        (["a", None], "every word must be a text, not NoneType"),
        (["a", ["b"]], "every word must be a text, not list"),
    ],
)
def test_commands_that_cannot_be_made(command: Any, says: str) -> None:
    with pytest.raises(TemplateError) as caught:
        command_words(command, {"blank": "", "nul": "a\0b"})
    assert says in str(caught.value)
