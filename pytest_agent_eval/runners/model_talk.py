"""One task of a model: what is said, done and spent until it ends.

In which protocol the model is spoken to is its :class:`Voice`; all else is the same for each.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pytest_agent_eval.llm import ModelReply, ModelRequest, ToolCall
from pytest_agent_eval.runners.base import Execution, Failure, Task
from pytest_agent_eval.runners.model_tools import ToolResult, WorkspaceTools
from pytest_agent_eval.runners.model_usage import total_usage

__all__ = ["Done", "Event", "Limits", "Talk", "Voice", "usable_arguments"]

Event = Mapping[str, Any]
"""In the form that judges see."""

Done = Sequence[tuple[ToolCall, ToolResult]]
"""The calls of one reply with what came of each."""


class Voice(Protocol):
    """How a model is spoken to: one protocol."""

    def heard(self, reply: ModelReply) -> Iterable[Event | ToolCall]:
        """What the model said, and the calls that it wants to be carried out, in order."""

    def denied(self, reply: ModelReply) -> Sequence[tuple[str, str]]:
        """Id and name of each call that waits for a permission, which nobody can give."""

    def history(self, reply: ModelReply, done: Done) -> list[Mapping[str, Any]]:
        """What the next question holds of this reply and of its calls."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a task besides its time and its budget.

    Attributes:
        max_turns: questions to the model.
        max_tokens: name of the setting that bounds an answer.
    """

    max_turns: int
    max_tokens: str


class Talk:
    """One task under way.

    Args:
        task: the task.
        voice: of the model.
        first: the first question.
        tools: that the model may call.
        limits: of the task.
        notes: worth storing already.
        started: on the monotonic clock.

    Attributes:
        deadline: on the monotonic clock.
    """

    def __init__(
        self,
        task: Task,
        voice: Voice,
        first: ModelRequest,
        tools: WorkspaceTools,
        *,
        limits: Limits,
        notes: Sequence[str],
        started: float,
    ) -> None:
        self.deadline = started + task.timeout
        self._task = task
        self._voice = voice
        self._first = first
        self._messages: list[Mapping[str, Any]] = [*first.messages]
        self._tools = tools
        self._limits = limits
        self._notes = [*notes]
        self._started = started
        self._replies: list[ModelReply] = []
        self._events: list[Event] = []
        self._ids: set[str] = set()
        self._denied: Counter[str] = Counter()
        self._survivors = False

    def request(self) -> ModelRequest:
        """The next question."""
        return replace(self._first, messages=tuple(self._messages))

    def take(self, reply: ModelReply) -> Execution | None:
        """Do what the model asks for; the execution when it has ended, else None."""
        task, voice = self._task, self._voice
        self._replies.append(reply)
        heard = list(voice.heard(reply))
        calls = [one for one in heard if isinstance(one, ToolCall)]
        denied = voice.denied(reply)
        self._denied.update(name for _, name in denied)
        spent = sum(one.usage.cost_usd or 0.0 for one in self._replies)
        goes_on = bool((calls and self._first.tools) or denied)
        if spent > task.max_budget_usd:
            self._tell(heard)
            error = f"${spent:.4g} were spent, over the budget of ${task.max_budget_usd:.2f}"
            return self.failed("budget", error)
        if reply.finish == "content_filter":
            self._tell(heard)
            return self.failed("agent", "the provider's content filter stopped the answer")
        if reply.finish == "length":
            note = f"an answer was cut off at its longest length ({self._limits.max_tokens})"
            self._notes += [] if note in self._notes else [note]
        if not goes_on:
            self._tell(heard)
            if reply.refused:
                self._notes.append("the model refused")
            return self._execution(output=reply.text, exit_code=0)
        most = self._limits.max_turns
        if len(self._replies) >= most:
            self._tell(heard)
            turns = "1 turn" if most == 1 else f"{most} turns"
            return self.failed("agent", f"not done after {turns} (runner.settings.max_turns)")
        return self._carry_out(reply, heard)

    def cancelled(self) -> Execution:
        """Of a task that the session ended."""
        return self.failed("infrastructure", "cancelled before it ended")

    def timed_out(self) -> Execution:
        """Of a task whose time is up."""
        return self.failed("timeout", f"timed out after {self._task.timeout:g} s")

    def failed(self, failure: Failure, error: str, *, lasting: bool = False) -> Execution:
        """Of a task that did not come to its end."""
        if failure != "timeout" and failure != "budget":
            self._events.append({"type": "error", "agent": "root", "text": error})
        return self._execution(
            failure=failure, error=error, timed_out=failure == "timeout", lasting=lasting
        )

    def _tell(self, heard: Iterable[Event | ToolCall]) -> None:
        self._events += [one for one in heard if not isinstance(one, ToolCall)]

    def _carry_out(self, reply: ModelReply, heard: Iterable[Event | ToolCall]) -> Execution | None:
        done: list[tuple[ToolCall, ToolResult]] = []
        for one in heard:
            if not isinstance(one, ToolCall):
                self._events.append(one)
                continue
            if self._task.cancelled.is_set():
                return self.cancelled()
            call = self._named(one)
            result = self._tools.call(call)
            done.append((call, result))
            about = {"agent": "root", "name": call.name, "id": call.id}
            self._events.append({"type": "tool_call", **about, "input": result.input})
            told = {**about, "text": result.text, "is_error": result.is_error}
            self._events.append({"type": "tool_result", **told})
            outcome = result.outcome
            if outcome is not None:
                if outcome.survivors:
                    self._survivors = True
                    self._notes.append("a process that the agent started could not be ended")
                if outcome.unwatched and outcome.unwatched not in self._notes:
                    self._notes.append(outcome.unwatched)
                if outcome.cancelled:
                    return self.cancelled()
                if outcome.timed_out:
                    return self.timed_out()
        self._messages += self._voice.history(reply, done)
        return None

    def _named(self, call: ToolCall) -> ToolCall:
        """The call with an id that no other call of the task has."""
        name, number = call.id, len(self._ids) + 1
        while not name or name in self._ids:
            name, number = f"call_{number}", number + 1
        self._ids.add(name)
        return ToolCall(name, call.name, call.arguments)

    def _execution(
        self,
        *,
        output: str = "",
        exit_code: int | None = None,
        failure: Failure | None = None,
        error: str = "",
        timed_out: bool = False,
        lasting: bool = False,
    ) -> Execution:
        notes = [*self._notes]
        if self._denied:
            shown = ", ".join(f"{name} {count}" for name, count in self._denied.items())
            notes.append(f"tool calls without permission: {shown}")
        paid = [reply for reply in self._replies if not reply.recorded]
        return Execution(
            output=output,
            exit_code=exit_code,
            timed_out=timed_out,
            failure=failure,
            error=error,
            lasting=lasting,
            duration_s=time.monotonic() - self._started,
            events=tuple(self._events),
            usage=total_usage(self._replies),
            notes=tuple(notes),
            still_running=self._survivors,
            recorded=len(self._replies) - len(paid),
            paid_usd=total_usage(paid).cost_usd if paid else 0.0,
        )


def usable_arguments(call: ToolCall, result: ToolResult) -> str:
    """A call's arguments for the history: some providers take none that are no object."""
    return call.arguments or "{}" if isinstance(result.input, dict) else "{}"
