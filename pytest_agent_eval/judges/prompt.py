"""The prompt of an LLM judge: a template of the suite's author, filled with a record."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import Template, meta, pass_context
from jinja2.runtime import Context, Undefined

from pytest_agent_eval.cases.jinja import compiled, generated, sandbox
from pytest_agent_eval.errors import TemplateError
from pytest_agent_eval.judges.examples import ShownExamples
from pytest_agent_eval.judges.material import Material, trusted

__all__ = ["MATERIAL", "JudgePrompt", "appendix", "filled", "places", "write_value"]

_CONVERSATION = re.compile(r"\bconversation\b")
_SAID = """

What the agent said:
{{ conversation }}"""
"""Behind a bare criterion."""

_WROTE = """
{%- if outputs.get("main_file") %}

The file {{ outputs.main_file }} that it wrote:
{{ outputs.main_content }}
{%- endif %}"""
"""Behind that: an agent may say nothing and write a file."""

MATERIAL = "the material"
"""Under it a template's expressions find what writes them; no name that a template could set."""


class JudgePrompt:
    """A compiled prompt. Used from several threads at once.

    Args:
        source: the template.
        rubric: it is a bare criterion: what the agent said is put behind it if it does not use
            ``conversation`` itself.
        arguments: of the judge.
        context: name -> text of files that are put behind it, as the author wrote them.
        shows_file: behind a bare criterion stands also the main file.
        examples: scored outputs that are put before it.

    Raises:
        TemplateError: it cannot be parsed, or uses a name that there is not.
    """

    def __init__(
        self,
        source: str,
        *,
        rubric: bool,
        arguments: Mapping[str, Any],
        context: Sequence[tuple[str, str]] = (),
        shows_file: bool = True,
        examples: ShownExamples | None = None,
    ) -> None:
        self._examples = examples
        if rubric:
            source = f"Judge by this criterion:\n\n{source}"
            if not _CONVERSATION.search(source):
                source += _SAID + (_WROTE if shows_file else "")
        self._arguments = trusted(dict(arguments))
        self._context = appendix(context)
        self._template, tree = compiled(source, sandbox(write_value))
        self._names = meta.find_undeclared_variables(tree) - {"range"}
        unknown = sorted(self._names - _NAMES.keys() - {"arguments"})
        if unknown:
            known = ", ".join(sorted([*_NAMES, "arguments"]))
            raise TemplateError(f"{unknown[0]} is no name of a prompt; there is {known}")

    def render(self, record: Mapping[str, Any]) -> str:
        """The prompt for one record.

        Raises:
            TemplateError: of what the template does.
        """
        material = Material(record, places(record))
        names = {name: _NAMES[name](material) for name in self._names - {"arguments"}}
        names["arguments"] = self._arguments
        asked = filled(self._template, {**names, MATERIAL: material}) + self._context
        before = self._examples.before(record) if self._examples is not None else ""
        return before + asked


def filled(template: Template, names: Mapping[str, Any]) -> str:
    """The text that a prompt's template makes of these names.

    Raises:
        TemplateError: of what the template does.
    """
    try:
        return generated(template, names)
    except TemplateError as error:
        raise TemplateError(f"the prompt cannot be filled in: {error}") from None


def appendix(context: Sequence[tuple[str, str]]) -> str:
    """What is put behind a prompt: the files of ``context``, name and text, as they are."""
    return "".join(f"\n\nFor reference, the file {name}:\n\n{text}" for name, text in context)


@pass_context
def write_value(context: Context, value: Any) -> Any:
    """What becomes of an expression's value: the sandbox calls it for each."""
    if isinstance(value, Undefined):
        return value
    material: Material = context.parent[MATERIAL]
    return material.write(value)


def places(record: Mapping[str, Any]) -> dict[str, str]:
    """Paths that are others in each trial and on each machine -> what stands for them."""
    found: dict[str, str] = {}
    for key in ("workspace", "case_dir"):
        path = record.get(key)
        if isinstance(path, str) and len(path) > 1:
            for form in (path, os.path.realpath(path)):
                found[form] = f"<{key}>"
    return found


_NAMES: Mapping[str, Callable[[Material], Any]] = {
    "outputs": lambda material: material,
    "conversation": lambda material: material["conversation"],
    "reasoning": lambda material: material["reasoning"],
    "tool_trace": Material.tool_trace,
    "inputs": lambda material: material["inputs"],
    "input": lambda material: material["input"],
    "annotations": lambda material: trusted(material["annotations"]),
    "evidence": lambda material: material["evidence"],
}
"""What a prompt may use, beside the judge's arguments."""
