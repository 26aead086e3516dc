"""The prompt of a comparison: one task, and two pieces of work that are called A and B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import meta

from pytest_agent_eval.cases.jinja import compiled, sandbox
from pytest_agent_eval.errors import TemplateError
from pytest_agent_eval.judges.material import Material, Trusted, trusted
from pytest_agent_eval.judges.prompt import MATERIAL, appendix, filled, places, write_value
from pytest_agent_eval.llm.fences import LONGEST

__all__ = ["ComparisonPrompt", "is_empty"]

_QUESTION = """\
Which of the two does what the task asks for better? Think of whether all of it is done, whether
what is said is right, whether it is to the point, and how well it is made."""
_SIDES = ("a", "b")
_NAMES = frozenset({*_SIDES, "inputs", "input", "annotations", "arguments"})
_TASK = "\n\nThe task:\n{{ inputs }}"
_WORKS = "\n\nWork A:\n{{ work_a }}\n\nWork B:\n{{ work_b }}"
_OURS = ("output/metrics.json", "output/events.jsonl")
"""Files by which an agent reports what it took: costs and times, and no part of its work."""


class ComparisonPrompt:
    """A compiled prompt. Used from several threads at once.

    Args:
        source: the template; empty for a question of our own. The task and both pieces of work are
            put behind it, unless it uses them itself.
        rubric: it is a bare criterion.
        arguments: of the judge.
        context: name and text of files that are put behind it, as the author wrote them.

    Raises:
        TemplateError: it cannot be parsed, uses a name that there is not, or uses one side only.
    """

    def __init__(
        self,
        source: str,
        *,
        rubric: bool = False,
        arguments: Mapping[str, Any],
        context: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._arguments = trusted(dict(arguments))
        self._context = appendix(context)
        used = self._compile(source)[1]
        unknown = sorted(used - _NAMES)
        if unknown:
            known = ", ".join(sorted(_NAMES))
            raise TemplateError(
                f"{unknown[0]} is no name of a comparison's prompt; there is {known} (a and b are "
                "the two records: a.main_content, b.conversation)"
            )
        sides = [side for side in _SIDES if side in used]
        if len(sides) == 1:
            raise TemplateError(f"uses {sides[0]} and not the other side: a comparison shows both")
        text = source.strip() or _QUESTION
        if rubric:
            text = f"Compare by this criterion:\n\n{text}"
        if not used & {"inputs", "input"}:
            text += _TASK
        if not sides:
            text += _WORKS
        self.source = text
        self._template, self._names = self._compile(text)

    @staticmethod
    def _compile(source: str) -> tuple[Any, frozenset[str]]:
        template, tree = compiled(source, sandbox(write_value))
        return template, frozenset(meta.find_undeclared_variables(tree) - {"range"})

    def render(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
        """The prompt for two records of one case.

        Raises:
            TemplateError: of what the template does.
        """
        hidden = {**places(a), **places(b)}
        sides = {"a": Material(a, hidden), "b": Material(b, hidden)}
        names: dict[str, Any] = {MATERIAL: sides["a"], **sides, "arguments": self._arguments}
        for key in ("inputs", "input"):
            if key in self._names:
                names[key] = a[key]
        if "annotations" in self._names:
            names["annotations"] = trusted(a["annotations"])
        if "work_a" in self._names:
            names |= {f"work_{name}": Trusted(_work(side)) for name, side in sides.items()}
        return filled(self._template, names) + self._context


def is_empty(record: Mapping[str, Any]) -> bool:
    """Whether an agent left nothing that could be compared."""
    return not str(record["conversation"]).strip() and not _files(record)


def _files(record: Mapping[str, Any]) -> list[str]:
    return [path for path in record["files"] if path not in _OURS]


def _work(side: Material) -> str:
    """What an agent said and the files that it wrote, each between fences; not too much of it."""
    left = LONGEST
    said = str(side["conversation"])
    parts = ["What was said:" + side.write(said, left // 2)]
    left -= min(len(said), left // 2)
    untold = []
    for path in _files(side):
        content = side["files"][path]
        if isinstance(content, Mapping):
            parts.append("A file:" + side.write(f"{path}: binary, {content.get('size', 0)} bytes"))
        elif left > 0:
            parts.append("A file:" + side.write(f"{path}:\n\n{content}", left))
            left -= len(content)
        else:
            untold.append(f"{path} ({len(content):,} characters)")
    if untold:
        parts.append("More files, which are not shown:" + side.write("\n".join(untold)))
    return "\n".join(parts)
