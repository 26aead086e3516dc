"""What a runner asks on behalf of its agent, which nobody attends: questions, and permissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["UNATTENDED", "Decision", "Interaction", "Question", "first_option"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question of an agent to its user.

    Attributes:
        text: the question.
        options: the answers there are; empty: any text answers it.
        multi: several options may be chosen.
        details: option -> more about it.
    """

    text: str
    options: tuple[str, ...] = ()
    multi: bool = False
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a tool may be called.

    Attributes:
        allowed: it may.
        reason: why not, for the agent; empty when it may.
        handled: a handler decided; otherwise the call is none of our business.
    """

    allowed: bool
    reason: str = ""
    handled: bool = False


class Interaction(Protocol):
    """Answers for one task; used from several threads at once.

    Attributes:
        answers_questions: there is a handler of questions, so that an agent should have a tool to
            ask them with.
        patterns: names of the tools that handlers are for, or ``prefix*``.
    """

    @property
    def answers_questions(self) -> bool:
        """As the attribute."""

    @property
    def patterns(self) -> Sequence[str]:
        """As the attribute."""

    def ask(self, question: Question, *, call: str = "", input: Any = None) -> str:
        """The answer: one of the options where there are any, several joined by ``", "``.

        Args:
            question: the question.
            call: id of the tool call by which it is asked, if there is one.
            input: of that call, as the tool of the runner has it.

        Raises:
            RunnerError: it cannot be answered, and the task is of no use any more.
        """

    def check_tool(
        self,
        name: str,
        input: Any,
        *,
        call: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Decision:
        """Whether the agent may call a tool.

        Args:
            name: of the tool, as Claude Code's are called.
            input: of the call, of JSON types.
            call: its id, where the runner tells in its events of the call and of what came of it;
                None: a denied call is told here.
            environment: of the agent; None for that of this process with the task's own.
        """


class Unattended:
    """Without handlers: the first option or *yes*, and all tools."""

    answers_questions = False
    patterns = ()

    def ask(self, question: Question, *, call: str = "", input: Any = None) -> str:
        """The first option, or *yes*."""
        return first_option(question)

    def check_tool(
        self,
        name: str,
        input: Any,
        *,
        call: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Decision:
        """Yes."""
        return Decision(True)


UNATTENDED: Interaction = Unattended()


def first_option(question: Question) -> str:
    """What is answered where nothing else is: the first option, or *yes*."""
    return question.options[0] if question.options else "yes"
