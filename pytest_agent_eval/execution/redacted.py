"""What a runner hands over, without secrets."""

from __future__ import annotations

import os
from dataclasses import replace

from pytest_agent_eval.execution.events import event_of, read_events
from pytest_agent_eval.execution.files import copy_file
from pytest_agent_eval.execution.names import to_json
from pytest_agent_eval.execution.record import EVENTS, STDERR, STDOUT
from pytest_agent_eval.redaction import Secrets
from pytest_agent_eval.runners.base import Execution

__all__ = ["redact_logs", "redacted_execution"]

_PART = ".part"


def redacted_execution(execution: Execution, secrets: Secrets) -> Execution:
    """The execution without secrets in output, error, notes, events and model names.

    Without secrets it is returned itself; events are then in the form in which they came.
    """
    if not secrets:
        return execution
    text, usage = secrets.text, execution.usage
    return replace(
        execution,
        output=text(execution.output),
        error=text(execution.error),
        events=tuple(event_of(event, secrets) for event in execution.events),
        usage=secrets.usage(usage),
        notes=tuple(map(text, execution.notes)),
    )


def redact_logs(directory: str, secrets: Secrets) -> None:
    """Replace secrets in logs and events that a runner left without doing so itself.

    Args:
        directory: of the trial (absolute), in which nothing is written any more.
        secrets: a log without any of them is left alone.

    Raises:
        OSError: a log cannot be rewritten; it may hold secrets.
    """
    if not secrets:
        return
    for name in (STDOUT, STDERR, EVENTS):
        path = os.path.join(directory, name)
        if os.path.lexists(path) and _holds_secrets(path, secrets):
            clean = path + _PART
            if os.path.lexists(clean):
                os.unlink(clean)
            if name == EVENTS:
                _copy_events(path, clean, secrets)
            else:
                copy_file(path, clean, secrets)
            os.replace(clean, path)


def _copy_events(path: str, target: str, secrets: Secrets) -> None:
    """Event by event: a secret may be a number, or a word that events are made of."""
    with open(path, "rb") as stream:
        events, _ = read_events(stream.read(), secrets=secrets)
    with open(target, "x", encoding="ascii") as clean:
        clean.writelines(f"{to_json(event)}\n" for event in events)


def _holds_secrets(path: str, secrets: Secrets) -> bool:
    redacted = secrets.filter()
    with open(path, "rb") as stream:
        while data := stream.read(1024 * 1024):
            redacted.feed(data)
            if redacted.found:
                return True
    redacted.flush()
    return redacted.found
