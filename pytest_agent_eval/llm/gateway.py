"""The one way to a model: recorded or live, tried again where that helps, counted."""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pytest_agent_eval.llm.answers import LADDER, instruction, submitted, wanted
from pytest_agent_eval.llm.errors import MissingRecording, ModelError, NoAnswer, ProviderError
from pytest_agent_eval.llm.process import ModelProcess
from pytest_agent_eval.llm.recordings import DIRECTORY, Recordings
from pytest_agent_eval.llm.request import AnswerForm, ModelReply, ModelRequest
from pytest_agent_eval.redaction import NO_SECRETS, Secrets

__all__ = ["Answered", "Gateway", "Mode"]

Mode = Literal["auto", "live", "record", "replay"]

TRIES = 5
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_SLICE_S = 0.1
"""A thread that waits can be interrupted between two of these."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """A structured answer, and the replies it took: one, or two when the first did not fit."""

    value: T
    replies: tuple[ModelReply, ...]


class Gateway:
    """Asks models for one suite. Used from several threads at once.

    Args:
        directory: of the suite; its recordings are below.
        mode: ``auto`` reads recordings and makes those that are missing, ``live`` neither reads nor
            makes any, ``record`` makes all anew, ``replay`` only reads. With the variable ``CI``
            set, ``auto`` only reads as well.
        api_base: of the server, for every model; empty for what the provider's variables say.
        secrets: are neither sent to a recording nor named in a message.
        environment: where ``CI`` is looked up; None for that of this process.
        process: that asks models; None for one of its own.
    """

    def __init__(
        self,
        directory: Path,
        *,
        mode: Mode = "auto",
        api_base: str = "",
        secrets: Secrets = NO_SECRETS,
        environment: Mapping[str, str] | None = None,
        process: ModelProcess | None = None,
    ) -> None:
        self.mode = mode
        self._process = process or ModelProcess()
        self.recordings = Recordings(directory / DIRECTORY, secrets)
        self._api_base = api_base
        self._secrets = secrets
        self._offline = mode == "replay" or (
            mode == "auto"
            and _is_set((os.environ if environment is None else environment).get("CI"))
        )
        self._lock = threading.Lock()
        self._asking: dict[str, threading.Lock] = {}
        self._rungs: dict[str, int] = {}

    def warm_up(self) -> None:
        """Start the process that asks models, if a call without a recording is to be expected."""
        if self._offline or (self.mode == "auto" and any(self.recordings.all())):
            return
        with contextlib.suppress(ProviderError):  # it is said where a model is asked
            self._process.start()

    def ask(self, request: ModelRequest, *, asker: str, timeout: float) -> ModelReply:
        """Put one question.

        Args:
            request: the question.
            asker: who wants to know, for messages: ``case late-parcel, judge tone``.
            timeout: seconds for all tries together.

        Raises:
            MissingRecording: it is not recorded, and must not be asked live.
            ModelError: the model cannot be asked.
        """
        if self.mode == "live":
            return self._live(request, timeout)
        key = self.recordings.key(request)
        with self._one(key):  # the same question from two trials is asked once
            if self.mode != "record":
                known = self.recordings.find(key)
                if known is not None:
                    return _recorded_as(known, key)
            if self._offline:
                raise MissingRecording(self._missing(key, asker), lasting=True)
            reply = self._live(request, timeout)
            self.recordings.store(request, reply)
            return _recorded_as(reply, key)

    def answer(
        self,
        request: ModelRequest,
        read: Callable[[Mapping[str, Any]], T],
        *,
        asker: str,
        timeout: float,
    ) -> Answered[T]:
        """Put a question whose answer has a form; a reply without one is asked for again, once.

        Args:
            request: with ``answer`` set.
            read: makes the answer of an object that the model submitted; raises ValueError, with
                a sentence, where it does not fit.
            asker: as of :meth:`ask`.
            timeout: seconds for all of it.

        Raises:
            NoAnswer: neither reply held an answer.
            ModelError: as :meth:`ask`.
        """
        form = request.answer
        assert form is not None
        deadline = time.monotonic() + timeout
        questions: list[ModelRequest] = []
        replies: list[ModelReply] = []
        wrong = ""
        for _ in range(2):
            left = max(deadline - time.monotonic(), 0.001)
            reply = self.ask(request, asker=asker, timeout=left)
            questions.append(request)
            replies.append(reply)
            wrong = ""
            for found in submitted(reply, form):
                try:
                    return Answered(read(found), tuple(replies))
                except ValueError as error:
                    wrong = wrong or str(error)
            request = _asked_again(request, form, reply, wrong)
        raw = reply.text or "\n".join(one.arguments for one in reply.tool_calls)
        message = f"no structured answer: {wrong or 'no JSON object in it'}"
        for question, said in zip(questions, replies, strict=True):
            path = self.recordings.path(self.recordings.key(question))
            if said.recorded:
                message += f" (recorded in {path}: delete it to ask again)"
                break
            if self.mode != "live":  # it is worth nothing to anybody
                path.unlink(missing_ok=True)
        raise NoAnswer(message, raw, tuple(replies))

    # -- live ------------------------------------------------------------------------------

    def _live(self, request: ModelRequest, timeout: float) -> ModelReply:
        deadline = time.monotonic() + timeout
        for attempt in range(1, TRIES + 1):
            try:
                reply = self._call(request, deadline)
            except ProviderError as error:
                wait = _wait(attempt, error.retry_after)
                late = time.monotonic() + wait >= deadline
                if not error.transient or attempt == TRIES or late:
                    raise self._failed(request, error, attempt, late) from None
                _sleep(wait)
            else:
                now = datetime.now(timezone.utc).isoformat(timespec="seconds")
                return replace(reply, date=now)
        raise AssertionError("unreachable")

    def _call(self, request: ModelRequest, deadline: float) -> ModelReply:
        """One try, in the most binding form that the model's server understands."""
        if request.answer is None:
            tools = {"tools": list(request.tools)} if request.tools else {}
            return self._send(request, request.messages, tools, deadline)
        first: ProviderError | None = None
        start = self._rungs.get(request.model, 0)
        for number in range(start, len(LADDER)):
            rung = LADDER[number]
            messages = _with_instruction(request.messages, instruction(request.answer, rung))
            try:
                reply = self._send(request, messages, wanted(request.answer, rung), deadline)
            except ProviderError as error:
                first = first or error
                # Servers refuse what they do not know in many ways, also as an error of their own.
                if request.model in self._rungs or error.status not in (400, 404, 422, 500, 501):
                    raise
            else:
                self._rungs[request.model] = number
                return reply
        assert first is not None
        raise first

    def _send(
        self,
        request: ModelRequest,
        messages: tuple[Mapping[str, Any], ...],
        more: Mapping[str, Any],
        deadline: float,
    ) -> ModelReply:
        return self._process.call(
            request.model,
            messages,
            timeout=max(deadline - time.monotonic(), 0.001),
            api_base=self._api_base,
            parameters={**request.parameters, **more},
        )

    def _failed(
        self, request: ModelRequest, error: ProviderError, tries: int, late: bool
    ) -> ModelError:
        often = f" ({tries} tries)" if tries > 1 else ""
        if error.transient and late and tries < TRIES:
            often += ", and there was no time for another"
        message = f"{request.model} could not be asked{often}: {error}"
        return ModelError(self._secrets.text(message), lasting=not error.transient)

    # -- recordings ------------------------------------------------------------------------

    def _one(self, key: str) -> threading.Lock:
        with self._lock:
            return self._asking.setdefault(key, threading.Lock())

    def _missing(self, key: str, asker: str) -> str:
        why = "CI is set" if self.mode == "auto" else "--agent-eval-llm replay"
        return (
            f"{asker}: a call of a model is not recorded, and none is made ({why}); record it: "
            f"pytest --agent-eval --agent-eval-llm record (-k picks cases); it would be "
            f"{self.recordings.path(key)}"
        )


def _recorded_as(reply: ModelReply, key: str) -> ModelReply:
    return replace(reply, usage=replace(reply.usage, recordings=(key,)))


def _is_set(value: str | None) -> bool:
    return (value or "").strip().lower() not in ("", "0", "false", "no")


def _with_instruction(
    messages: tuple[Mapping[str, Any], ...], text: str
) -> tuple[Mapping[str, Any], ...]:
    """The messages with one more sentence at the end of the last one, which is the user's."""
    *before, last = messages
    return (*before, {**last, "content": f"{last['content']}\n\n{text}"})


def _asked_again(
    request: ModelRequest, form: AnswerForm, reply: ModelReply, wrong: str
) -> ModelRequest:
    said = reply.text or "\n".join(one.arguments for one in reply.tool_calls) or "(nothing)"
    reason = f" ({wrong})" if wrong else ""
    again = f"That was no valid answer{reason}. Give the answer in the form that was asked for."
    return replace(
        request,
        messages=(
            *request.messages,
            {"role": "assistant", "content": said},
            {"role": "user", "content": again},
        ),
    )


def _wait(attempt: int, asked: float | None) -> float:
    """Seconds before the next try: what the provider asks for, else longer each time, jittered."""
    if asked is not None:
        return min(asked, _LONGEST_WAIT_S) + random.uniform(0, 0.1)
    return min(_FIRST_WAIT_S * 2.0 ** (attempt - 1), _LONGEST_WAIT_S) * random.uniform(0.5, 1.0)


def _sleep(seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _SLICE_S))
