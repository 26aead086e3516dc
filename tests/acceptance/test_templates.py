"""Templates and the words of commands, against exact results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_agent_eval.cases import command_words, compile_template
from pytest_agent_eval.errors import TemplateError

DATA = json.loads(Path(__file__).with_name("templates.json").read_text(encoding="utf-8"))
FIELDS = ("missing", "empty", "nothing")


@pytest.mark.parametrize(("source", "text"), DATA["ok"])
def test_renders(source: str, text: str) -> None:
    assert compile_template(source).render(DATA["input"], case="case-7") == text


@pytest.mark.parametrize("source", DATA["error"])
def test_is_an_error(source: str) -> None:
    with pytest.raises(TemplateError) as caught:
        compile_template(source).render(DATA["input"], case="case-7")
    for field in FIELDS:
        if field in source:
            assert "case-7" in str(caught.value)
            assert field in str(caught.value)


def test_command_words() -> None:
    vector = DATA["command_words"]
    assert command_words(vector["command"], DATA["input"]) == vector["argv"]
