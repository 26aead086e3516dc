"""The prompt of an LLM judge: a template of the suite's author, filled with a record."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import meta, pass_context
from jinja2.runtime import Context, Undefined

from pytest_agent_eval.cases.jinja import compiled, generated, sandbox
from pytest_agent_eval.errors import TemplateError
from pytest_agent_eval.judges.material import Material, trusted

__all__ = ["JudgePrompt"]

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

_MATERIAL = "the material"
"""No name that a template could set."""


class JudgePrompt:
    """A compiled prompt. Used from several threads at once.

    Args:
        source: the template.
        rubric: it is a bare criterion: what the agent said is put behind it if it does not use
            ``conversation`` itself.
        arguments: of the judge.
        context: name -> text of files that are put behind it, as the author wrote them.
        shows_file: behind a bare criterion stands also the main file.

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
    ) -> None:
        if rubric:
            source = f"Judge by this criterion:\n\n{source}"
            if not _CONVERSATION.search(source):
                source += _SAID + (_WROTE if shows_file else "")
        self._arguments = trusted(dict(arguments))
        self._context = "".join(
            f"\n\nFor reference, the file {name}:\n\n{text}" for name, text in context
        )
        self._template, tree = compiled(source, sandbox(_write))
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
        material = Material(record, _places(record))
        names = {name: _NAMES[name](material) for name in self._names - {"arguments"}}
        names["arguments"] = self._arguments
        try:
            return generated(self._template, {**names, _MATERIAL: material}) + self._context
        except TemplateError as error:
            raise TemplateError(f"the prompt cannot be filled in: {error}") from None


@pass_context
def _write(context: Context, value: Any) -> Any:
    if isinstance(value, Undefined):
        return value
    material: Material = context.parent[_MATERIAL]
    return material.write(value)


def _places(record: Mapping[str, Any]) -> dict[str, str]:
    """Paths that are others in each trial and on each machine."""
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
