"""Recorded model calls: one file each, beside the suite, made to be committed and reviewed.

``recordings/<first 2 of the key>/<key>.json``. The key is that of the request, so it changes with
the model, the messages, the form of the answer, the parameters and the sample, and with nothing
else: not with the server that was asked, nor with who asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_agent_eval.llm.errors import ModelError
from pytest_agent_eval.llm.request import ModelReply, ModelRequest, ToolCall
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.results import Usage
from pytest_agent_eval.suite.digests import canonical_digest

__all__ = ["DIRECTORY", "VERSION", "Recordings", "read_recording"]

DIRECTORY = "recordings"
VERSION = 1
"""Of the form of a file."""

_TEMPORARY = ".recording-"
_USAGE = ("cost_usd", "input_tokens", "output_tokens", "cache_read_tokens", "cache_create_tokens")


class Recordings:
    """The recordings of one suite. Safe to use from several threads and processes.

    Args:
        directory: of the recordings; made with the first one.
        secrets: are in no recording.
    """

    def __init__(self, directory: Path, secrets: Secrets = NO_SECRETS) -> None:
        self.directory = directory
        self._secrets = secrets

    def path(self, key: str) -> Path:
        """The file of a request."""
        return self.directory / key[:2] / f"{key}.json"

    def key(self, request: ModelRequest) -> str:
        """The key under which a request is recorded: that of what may be stored of it."""
        return canonical_digest(self._secrets.value(request.to_dict()))

    def find(self, key: str) -> ModelReply | None:
        """The reply that is recorded under a key, or None.

        Raises:
            ModelError: the file is no recording, or one of another request: it was edited.
        """
        path = self.path(key)
        return read_recording(path) if path.exists() else None

    def store(self, request: ModelRequest, reply: ModelReply) -> Path:
        """Write a recording, over an earlier one of the same request; returns its file.

        Raises:
            ModelError: it cannot be written.
        """
        asked = self._secrets.value(request.to_dict())
        data = {
            "v": VERSION,
            "request": asked,
            "reply": self._secrets.value(
                {
                    "text": reply.text,
                    "tool_calls": [call.to_dict() for call in reply.tool_calls],
                    "finish": reply.finish,
                }
            ),
            "usage": {name: getattr(reply.usage, name) for name in _USAGE},
            "model": reply.model,
            "date": reply.date,
        }
        data["digest"] = _digest(data)
        text = json.dumps(data, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        path = self.path(canonical_digest(asked))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY)
            try:
                # A lone surrogate, which UTF-8 cannot hold, is written as JSON escapes it.
                with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
                    stream.write(text)
                os.chmod(temporary, 0o644)
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            message = f"{path}: cannot be written: {error.strerror or error}"
            raise ModelError(message, lasting=True) from None
        return path

    def all(self) -> Iterator[Path]:
        """The files of all recordings, sorted."""
        yield from sorted(self.directory.glob("[0-9a-f][0-9a-f]/*.json"))

    def leftovers(self) -> Iterator[Path]:
        """Files of recordings that were never written to their end."""
        yield from self.directory.glob(f"[0-9a-f][0-9a-f]/{_TEMPORARY}*")

    def remove_empty(self) -> None:
        """Remove the directories below that hold nothing."""
        for path in self.directory.glob("[0-9a-f][0-9a-f]"):
            with contextlib.suppress(OSError):  # it holds something
                path.rmdir()


def read_recording(path: Path) -> ModelReply:
    """The reply of a recording.

    Raises:
        ModelError: the file cannot be read, is no recording, or one of another request.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}", lasting=True) from None
    try:
        data = json.loads(text)
        if data["v"] != VERSION:
            raise ModelError(f"{path}: a recording of version {data['v']}, not {VERSION}")
        if data["digest"] != _digest(data) or canonical_digest(data["request"]) != path.stem:
            message = "is not the recording of its request: it was edited or renamed; delete it"
            raise ModelError(f"{path}: {message} and record it again", lasting=True)
        reply, usage = data["reply"], data["usage"]
        return ModelReply(
            text=_text(reply["text"]),
            tool_calls=tuple(
                ToolCall(_text(call["id"]), _text(call["name"]), _text(call["arguments"]))
                for call in reply["tool_calls"]
            ),
            usage=_usage(usage, data["model"]),
            model=_text(data["model"]),
            date=_text(data["date"]),
            finish=_text(reply["finish"]),
            recorded=True,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        sentence = f"{type(error).__name__}: {error}"
        raise ModelError(f"{path}: no usable recording: {sentence}", lasting=True) from None


def _digest(data: Mapping[str, Any]) -> str:
    """Over all else that a file holds: what a model said is not for people to change."""
    return canonical_digest(
        {key: data[key] for key in ("request", "reply", "usage", "model", "date")}
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _usage(stored: Mapping[str, Any], model: str) -> Usage:
    return Usage(
        cost_usd=stored["cost_usd"],
        input_tokens=stored["input_tokens"],
        output_tokens=stored["output_tokens"],
        cache_read_tokens=stored["cache_read_tokens"],
        cache_create_tokens=stored["cache_create_tokens"],
        model=model,
        models_used=(model,),
    )
