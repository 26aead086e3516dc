"""What can go wrong when a model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agent_eval.errors import AgentEvalError

if TYPE_CHECKING:
    from pytest_agent_eval.llm.request import ModelReply

__all__ = ["UNFIT", "MissingRecording", "ModelError", "NoAnswer", "ProviderError"]

UNFIT = frozenset(
    {"content_filter", "content_policy_violation", "context_length_exceeded", "invalid_prompt"}
)
"""OpenAI's codes for questions that are taken from nobody."""


class ModelError(AgentEvalError):
    """A model could not be asked; never a verdict on anybody's work.

    Args:
        message: one sentence.
        lasting: it will be so again: a wrong key, a model that does not exist.
        unfit: the question is one that the provider takes from nobody: it is too long for the
            model, or against the provider's rules.
    """

    def __init__(self, message: str, *, lasting: bool = False, unfit: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting
        self.unfit = unfit


class MissingRecording(ModelError):
    """A call is not recorded, and must not be made."""


class NoAnswer(ModelError):
    """The model answered, twice, but not in the form it was asked for.

    Args:
        message: one sentence.
        raw: what it said last.
        replies: all that it said.
    """

    def __init__(self, message: str, raw: str, replies: tuple[ModelReply, ...] = ()) -> None:
        super().__init__(message)
        self.raw = raw
        self.replies = replies


class ProviderError(Exception):
    """One call failed.

    Attributes:
        status: of HTTP, or None when there was no answer at all.
        transient: it may work later.
        retry_after: seconds that the provider asks to wait, or None.
        unfit: as of :class:`ModelError`.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        transient: bool = False,
        retry_after: float | None = None,
        unfit: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.transient = transient
        self.retry_after = retry_after
        self.unfit = unfit
