"""What an unattended agent is answered in one trial: questions in three tiers, tools by rules.

The tiers of a question: a written answer, then a model, then the first option (or *yes*). Which one
answered is an event.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.deadline import DeadlineExceeded
from pytest_agent_eval.errors import CaseError, RunnerError
from pytest_agent_eval.execution.answerer import Answered, Answerer, Known, Unanswered
from pytest_agent_eval.execution.events import event_of
from pytest_agent_eval.execution.names import plain
from pytest_agent_eval.llm.accounting import asked_of
from pytest_agent_eval.llm.errors import MissingRecording
from pytest_agent_eval.runners.base import Execution, Task
from pytest_agent_eval.runners.interaction import Decision, Question, first_option
from pytest_agent_eval.suite.models.tool_handlers import answer_of
from pytest_agent_eval.suite.tool_handlers import ToolHandlers
from pytest_agent_eval.suite.tool_names import QUESTION_TOOL

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case
    from pytest_agent_eval.llm import ModelReply

__all__ = ["Interactions", "TrialInteraction", "with_asides"]

ANSWER_S = 60.0
"""Seconds that one answer may take; never more than the trial has left."""

_OVERRIDES = "case_overrides"
_ANSWERS = "answers.yaml"


@dataclass(frozen=True, slots=True)
class Interactions:
    """What the trials of a suite share.

    Attributes:
        handlers: of questions and tool calls.
        answerer: of questions; None where no model is named.
    """

    handlers: ToolHandlers = field(default_factory=ToolHandlers)
    answerer: Answerer | None = None

    def of_case(self, case: Case | None) -> TrialInteraction:
        """For one trial of a case; of a batch (None) nothing is known but the handlers.

        Raises:
            CaseError: its ``answers.yaml`` cannot be used.
        """
        if case is None or not self.handlers.answers_questions:
            return TrialInteraction(self, "" if case is None else case.name)
        answers = case.answers()
        return TrialInteraction(
            self,
            case.name,
            overrides=_overrides(case, answers),
            known=Known(input=_text_of(case, case.input_name), answers=_text_of(case, _ANSWERS)),
        )


class TrialInteraction:
    """The answers of one trial; an :class:`~pytest_agent_eval.runners.interaction.Interaction`.

    Args:
        shared: of the suite.
        case: its name; empty for a batch.
        overrides: question -> answer, of the case.
        known: what helps a model to answer, without a prompt.

    Attributes:
        notes: things worth telling.
    """

    def __init__(
        self,
        shared: Interactions,
        case: str,
        *,
        overrides: Mapping[str, tuple[str, ...]] | None = None,
        known: Known | None = None,
    ) -> None:
        self._shared = shared
        self._case = case
        self._overrides = {**shared.handlers.overrides, **(overrides or {})}
        self._known = known or Known()
        self._lock = threading.Lock()
        self._events: list[dict[str, Any]] = []
        self._replies: list[ModelReply] = []
        self._error: RunnerError | None = None
        self._denied = 0
        self._task: Task | None = None
        self._deadline = float("inf")
        self.notes: list[str] = []

    # -- for the trial ---------------------------------------------------------------------

    def begin(self, task: Task) -> None:
        """A task of the trial begins, whose time bounds that of the answers."""
        self._task = task
        self._deadline = time.monotonic() + task.timeout
        workspace = str(task.workspace)
        hidden = dict.fromkeys((workspace, os.path.realpath(workspace)), "<workspace>")
        self._known = replace(self._known, hidden=hidden)

    def concluded(self, execution: Execution) -> Execution:
        """What the task came to; a question that could not be answered is no fault of the agent."""
        error = self._error
        if error is None:
            return execution
        return replace(execution, failure="infrastructure", error=str(error), lasting=error.lasting)

    def take_events(self) -> list[dict[str, Any]]:
        """What happened since this was last asked."""
        with self._lock:
            events, self._events = self._events, []
        return events

    @property
    def asked(self) -> dict[str, Any]:
        """What asking the model took, in the form of ``Verdict.asked``; empty if it was not."""
        with self._lock:
            return asked_of(self._replies) if self._replies else {}

    # -- for the runner --------------------------------------------------------------------

    @property
    def answers_questions(self) -> bool:
        """There is a handler of questions."""
        return self._shared.handlers.answers_questions

    @property
    def patterns(self) -> Sequence[str]:
        """Of the tools that handlers are for."""
        return self._shared.handlers.patterns

    def ask(self, question: Question, *, call: str = "", input: Any = None) -> str:
        """The answer, see :class:`~pytest_agent_eval.runners.interaction.Interaction`."""
        question = replace(question, options=tuple(dict.fromkeys(question.options)))
        texts, tier = self._answer(question, input)
        answer = ", ".join(texts)
        event = {
            "type": "question",
            "agent": "root",
            "text": question.text,
            "options": list(question.options),
            "answer": answer,
            "tier": tier,
        }
        with self._lock:
            self._events.append({**event, "id": call} if call else event)
        return answer

    def check_tool(
        self,
        name: str,
        input: Any,
        *,
        call: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Decision:
        """Whether it may be called; questions may always be asked."""
        rule = self._shared.handlers.rule(name, input)
        if rule is None or name == QUESTION_TOOL:
            return Decision(True)
        if environment is None:
            own = {} if self._task is None else self._task.env
            environment = {**os.environ, **own}
        if rule.allows(environment):
            return Decision(True, handled=True)
        if call is None:
            self._tell_denied(name, input, rule.reason)
        return Decision(False, rule.reason, handled=True)

    # -- inside ----------------------------------------------------------------------------

    def _answer(self, question: Question, input: Any) -> tuple[tuple[str, ...], int]:
        written = self._overrides.get(question.text) or self._overrides.get(question.text.strip())
        if written:
            return _as_options(written, question), 1
        asked = [
            {
                "question": question.text,
                "options": [{"label": option} for option in question.options],
                "multiSelect": question.multi,
            }
        ]
        rule = self._shared.handlers.rule(QUESTION_TOOL, input or {"questions": asked})
        short = question.text if len(question.text) <= 60 else f"{question.text[:57]}..."
        why = "no handler is for it"
        if rule is not None:
            answerer = self._shared.answerer
            if answerer is not None:
                try:
                    found = self._by_model(answerer, question, rule.prompt)
                except Unanswered as unanswered:
                    self._count(unanswered.replies)
                    why = f"the model gave no answer: {unanswered}"
                else:
                    self._count(found.replies)
                    return found.texts, 2
            else:
                why = "no model is named (models.hook)"
        what = "its first option" if question.options else "yes"
        self._note(f"the question {short!r} was answered with {what}: {why}")
        return (first_option(question),), 3

    def _by_model(self, answerer: Answerer, question: Question, prompt: str) -> Answered:
        task = self._task
        cancelled = task.cancelled if task is not None else threading.Event()
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Unanswered("the trial's time is up")
        try:
            return answerer.answer(
                question,
                replace(self._known, prompt=prompt),
                case=self._case,
                timeout=min(ANSWER_S, left),
                cancelled=cancelled,
            )
        except MissingRecording as error:
            self._error = RunnerError(str(error), lasting=True)
            raise self._error from None
        except DeadlineExceeded:
            raise RunnerError("cancelled before it ended") from None

    def _count(self, replies: Iterable[ModelReply]) -> None:
        with self._lock:
            self._replies += replies

    def _note(self, note: str) -> None:
        with self._lock:
            if note not in self.notes:
                self.notes.append(note)

    def _tell_denied(self, name: str, input: Any, reason: str) -> None:
        with self._lock:
            self._denied += 1
            about = {"agent": "root", "name": name, "id": f"denied_{self._denied}"}
            self._events += [
                {"type": "tool_call", **about, "input": plain(input)},
                {"type": "tool_result", **about, "text": reason, "is_error": True},
            ]


def with_asides(events: Iterable[Any], asides: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """An agent's events with what was told besides: after the call it belongs to, else at the end.

    Args:
        events: of the agent, in whatever form a runner has them.
        asides: of :meth:`TrialInteraction.take_events`.
    """
    waiting: dict[str, list[Mapping[str, Any]]] = {}
    for aside in asides:
        key = aside.get("id", "") if aside["type"] == "question" else ""
        waiting.setdefault(key, []).append(aside)
    found: list[dict[str, Any]] = []
    for raw in events:
        event = event_of(raw)
        found.append(event)
        if event["type"] == "tool_call" and event.get("id"):
            agent = event["agent"]
            found += [{**aside, "agent": agent} for aside in waiting.pop(event["id"], ())]
    return [*found, *(dict(aside) for left in waiting.values() for aside in left)]


def _overrides(case: Case, answers: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    written = answers.get(_OVERRIDES)
    if written is None:
        return {}
    if not isinstance(written, Mapping):
        message = f"{_ANSWERS}: {_OVERRIDES} is a mapping of questions and their answers"
        raise CaseError(case.name, message)
    found = {}
    for question, answer in written.items():
        if answer is None:
            continue
        try:
            found[str(question)] = answer_of(answer)
        except ValueError as error:
            message = f"{_ANSWERS}: {_OVERRIDES}: {str(question)[:80]!r}: {error}"
            raise CaseError(case.name, message) from None
    return found


def _text_of(case: Case, name: str) -> str:
    """The text of a file of a case, which has been parsed; empty when there is none."""
    try:
        with open(os.path.join(case.path, name), encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def _as_options(written: Sequence[str], question: Question) -> tuple[str, ...]:
    """Written answers in the spelling of the options, where they are options."""
    spelt = {option.strip().casefold(): option for option in question.options}
    return tuple(spelt.get(one.strip().casefold(), one) for one in written)
