"""What can go wrong when a model is asked."""

from __future__ import annotations

from pytest_agent_eval.errors import AgentEvalError

__all__ = ["MissingRecording", "ModelError", "NoAnswer"]


class ModelError(AgentEvalError):
    """A model could not be asked; never a verdict on anybody's work.

    Args:
        message: one sentence.
        lasting: it will be so again: a wrong key, a model that does not exist.
    """

    def __init__(self, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.lasting = lasting


class MissingRecording(ModelError):
    """A call is not recorded, and must not be made."""


class NoAnswer(ModelError):
    """The model answered, twice, but not in the form it was asked for.

    Args:
        message: one sentence.
        raw: what it said last.
    """

    def __init__(self, message: str, raw: str) -> None:
        super().__init__(message)
        self.raw = raw
