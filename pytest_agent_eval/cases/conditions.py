"""Conditions: ``if:``, ``pass_if:``, ``dataset.if`` and ``--agent-eval-if``.

A condition is one Python expression over a few documented names. It is held against an allow-list
when it is compiled (:mod:`.grammar`), so that a mistake is found when the suite is loaded, and
evaluated by simpleeval with bounded work (:mod:`.evaluation`), never by ``eval``.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.cases.grammar import check_expression
from pytest_agent_eval.errors import ConditionError

__all__ = ["DATASET_NAMES", "JUDGE_NAMES", "VALUE_NAMES", "Condition", "compile_condition"]

DATASET_NAMES = frozenset({"annotations", "input", "name", "split", "tags", "group"})
"""What ``dataset.if`` and ``--agent-eval-if`` may read. A case's category is an annotation."""

JUDGE_NAMES = DATASET_NAMES | {"outputs", "trial", "variant", "case"}
"""What a judge's ``if`` may read."""

VALUE_NAMES = frozenset({"value"})
"""What a judge's ``pass_if`` may read."""

MAX_SOURCE = 2_000
MAX_MESSAGE = 300


class Condition:
    """A compiled condition; made by :func:`compile_condition`. Usable from several threads.

    Attributes:
        source: as written, without blanks around it.
        reads: the names it uses, loop variables aside.
    """

    __slots__ = ("_run", "_tree", "reads", "source")

    def __init__(self, source: str, tree: ast.expr, reads: frozenset[str]) -> None:
        from pytest_agent_eval.cases.evaluation import evaluate

        self.source = source
        self.reads = reads
        self._tree = tree
        self._run = evaluate

    def value(self, scope: Mapping[str, Any]) -> Any:
        """What the expression comes to; ``scope`` holds at least the names in :attr:`reads`.

        Raises:
            ConditionError: it raised, or wants more work than a condition may do.
        """
        try:
            return self._run(self._tree, {name: scope[name] for name in self.reads})
        except RecursionError:
            raise ConditionError(f"{self.source} is nested too deeply") from None
        except Exception as error:
            raise ConditionError(_raised(self.source, error)) from None

    def evaluate(self, scope: Mapping[str, Any]) -> bool:
        """Whether the condition is true, as Python's ``bool`` understands its value.

        Raises:
            ConditionError: as :meth:`value`.
        """
        value = self.value(scope)
        try:
            return bool(value)
        except Exception as error:
            raise ConditionError(_raised(self.source, error)) from None

    def __repr__(self) -> str:
        return f"Condition({self.source!r})"


def compile_condition(source: str, names: frozenset[str]) -> Condition:
    """Compile a condition that may read ``names``.

    Raises:
        ConditionError: not one expression, an unknown name (with the nearest known one), a
            construct that conditions do not have, or too long.
    """
    text = source.strip()
    if not text:
        raise ConditionError("is empty; write an expression such as annotations.get('category')")
    if len(text) > MAX_SOURCE:
        raise ConditionError(f"is longer than {MAX_SOURCE:,} characters")
    try:
        tree = _parse(text)
        reads = check_expression(tree, names)
    except ConditionError as error:
        raise ConditionError(f"{error} (in {_short(text)})") from None
    except (RecursionError, MemoryError):
        raise ConditionError(f"is nested too deeply (in {_short(text)})") from None
    return Condition(text, tree, reads)


def _parse(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            # "1if x" and "\d" are worth a warning to Python, but are no concern of the suite's run.
            warnings.simplefilter("ignore")
            try:
                return ast.parse(text, mode="eval").body
            except SyntaxError:
                if "\n" not in text:
                    raise
                # A YAML block may break a condition into lines.
                return ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError as error:
        where = f" at column {error.offset}" if error.offset and "\n" not in text else ""
        raise ConditionError(f"not a Python expression: {error.msg}{where}") from None
    except ValueError as error:  # a NUL character
        raise ConditionError(f"not a Python expression: {error}") from None


def _raised(source: str, error: Exception) -> str:
    """``annotations['tier'] == 1 raised KeyError: 'tier'``, and what would help."""
    if isinstance(error, ConditionError):
        return f"{source} {error}"
    try:
        said = str(error)
    except Exception:  # of a foreign exception class
        said = "(no message)"
    message = f"{source} raised {type(error).__name__}: {_short(said)}"
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        message += f"; .get({error.args[0]!r}) gives None where it is absent"
    return message


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."
