"""The record of a trial: the mapping that judges know as ``outputs``."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.execution.collect import EVENTS_FILE, FILES, METRICS_FILE, MODIFIED
from pytest_agent_eval.execution.events import (
    conversation,
    has_messages,
    last_message,
    read_events,
    tool_calls,
)
from pytest_agent_eval.execution.evidence_text import describe_evidence
from pytest_agent_eval.execution.names import to_json
from pytest_agent_eval.execution.stored_files import StoredFiles, read_text, text_of
from pytest_agent_eval.execution.workspace import OUTPUT
from pytest_agent_eval.redaction import NO_SECRETS, Secrets

if TYPE_CHECKING:
    from pytest_agent_eval.cases import Case

__all__ = ["EVENTS", "RECORD", "STDERR", "STDOUT", "Record", "RecordView", "fresh"]

RECORD = "record.json"
STDOUT = "stdout.log"
STDERR = "stderr.log"
EVENTS = "events.jsonl"

_STORED = (
    "exit_code",
    "timed_out",
    "duration_s",
    "cost_usd",
    "token_usage",
    "num_turns",
    "model",
    "models_used",
    "per_model_usage",
    "trial",
    "variant",
    "workspace",
)
"""Keys that are handed out as they are stored."""

_LONG = 1 << 16
"""Characters of output from which a record counts as long."""

_ONE_LONG = threading.Lock()
"""Held while a long record is written: each is in memory three times over until the disk has it."""

_IDENTITY = frozenset({"suite", "case", "trial", "variant", "outputs"})
"""Keys by which stored values are found again: no secrets are looked for there."""


class Record(Mapping[str, Any]):
    """What one trial came to, read from where the trial is stored.

    Files, logs and events are read when they are first looked at. Nothing is ever written.

    Args:
        directory: of the trial (absolute).
        data: what ``record.json`` holds.
        case: gives ``input``, ``annotations`` and ``answers``, which are not stored.
        values: the case's input, if it was read already.
        listing: path below ``files`` -> size of each file that is stored, if it is known.
    """

    def __init__(
        self,
        directory: str,
        data: Mapping[str, Any],
        case: Case,
        values: Mapping[str, Any] | None = None,
        listing: Mapping[str, int] | None = None,
    ) -> None:
        self._listing = listing
        self._directory = directory
        self._data = data
        self._case = case
        self._values: dict[str, Any] = {key: data.get(key) for key in _STORED}
        if values is not None:
            self._values["input"] = values
        self._extra: dict[str, Callable[[], Any]] | None = None
        self._stored: frozenset[str] | None = None

    @classmethod
    def from_directory(cls, directory: str, *, case: Case) -> Record:
        """The record of a trial that was stored earlier.

        Raises:
            RunDirectoryError: its ``record.json`` cannot be read.
        """
        path = os.path.join(directory, RECORD)
        try:
            with open(path, encoding="utf-8") as stream:
                data = json.load(stream)
        except (OSError, ValueError) as error:
            raise RunDirectoryError(f"{path}: no usable record: {error}") from None
        if not isinstance(data, dict):
            raise RunDirectoryError(f"{path}: no usable record: not a mapping")
        return cls(directory, data, case)

    @staticmethod
    def write(
        directory: str, data: Mapping[str, Any], secrets: Secrets = NO_SECRETS
    ) -> Mapping[str, Any]:
        """Store the parts of a record that are in no other file of the trial.

        Returns:
            What was stored, which is what judges may see: secrets are replaced.
        """
        if secrets:
            data = {
                key: value if key in _IDENTITY else secrets.value(value)
                for key, value in data.items()
            }
        long = len(data.get("output") or "") > _LONG
        with (
            _ONE_LONG if long else contextlib.nullcontext(),
            open(os.path.join(directory, RECORD), "w", encoding="ascii") as stream,
        ):
            stream.write(to_json(data))
            stream.write("\n")  # by itself: to join them would copy what may be long
        return data

    @property
    def produced(self) -> bool:
        """Whether the agent left any text, file or edit."""
        return bool(self._data.get("produced", True))

    def view(self) -> RecordView:
        """The record for one judge: what the judge changes in it, no other judge sees."""
        return RecordView(self)

    def __getitem__(self, key: str) -> Any:
        values = self._values
        if key in values:
            return values[key]
        load = _LOADERS.get(key)
        if load is not None:
            value = load(self)
        else:
            extra = self._extra_keys()
            if key not in extra:
                raise KeyError(self._unknown(key))
            value = extra[key]()
        values[key] = value
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default when there is no such key."""
        # Not by way of KeyError, whose message looks for the nearest key.
        return self[key] if key in self else default  # noqa: SIM401

    def __contains__(self, key: object) -> bool:
        return key in self._values or key in _LOADERS or key in self._extra_keys()

    def __iter__(self) -> Iterator[str]:
        yield from _STORED
        yield from _LOADERS
        yield from self._extra_keys()

    def __len__(self) -> int:
        return len(_STORED) + len(_LOADERS) + len(self._extra_keys())

    def __repr__(self) -> str:
        return f"<record of {self._case.name}, trial {self._values['trial']}>"

    def _unknown(self, key: str) -> str:
        close = difflib.get_close_matches(str(key), list(self), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"the record has no {key!r}{hint}"

    def _extra_keys(self) -> dict[str, Callable[[], Any]]:
        """Keys that depend on the suite's outputs and the case's annotations."""
        if self._extra is None:
            extra: dict[str, Callable[[], Any]] = {}
            for path in self._data.get("outputs", ()):
                name = os.path.basename(os.path.normpath(path))
                extra.setdefault(f"{name}_content", partial(self._content, path))
                extra.setdefault(f"{name}_file", partial(self._first, path))
            for key, value in self._case.annotations.items():
                file = self._annotated_file(value)
                if file:
                    extra.setdefault(f"annotation_{key}_content", partial(_text_or_empty, file))
            reserved = _LOADERS.keys() | set(_STORED)
            self._extra = {key: load for key, load in extra.items() if key not in reserved}
        return self._extra

    def _annotated_file(self, value: Any) -> str:
        """The file inside the case's directory that an annotation names; empty when none."""
        if not isinstance(value, str) or not 0 < len(value) <= 255:
            return ""
        if "\n" in value or "\0" in value or os.path.isabs(value):
            return ""
        full = os.path.join(self["case_dir"], value)
        if not os.path.isfile(full):
            return ""
        resolved = os.path.realpath(full)
        inside = resolved.startswith(os.path.realpath(self["case_dir"]) + os.sep)
        return resolved if inside else ""

    def _first(self, path: str) -> str | None:
        files: StoredFiles = self["files"]
        return files.first(os.path.normpath(path), besides=(METRICS_FILE, EVENTS_FILE))

    def _content(self, path: str) -> Any:
        found = self._first(path)
        return "" if found is None else self["files"][found]

    def _main_file(self) -> str | None:
        for path in (*self._data.get("outputs", ())[:1], OUTPUT):
            found = self._first(path)
            if found is not None:
                return found
        return None

    def _main_content(self) -> Any:
        found = self["main_file"]
        return self["final_message"] if found is None else self["files"][found]

    def _final_message(self) -> str:
        if self["stdout"] and has_messages(self["events"]):
            return last_message(self["events"])
        return self._data.get("output") or last_message(self["events"]) or self["stdout"]

    def _conversation(self, *, thinking: bool = False) -> str:
        events = self["events"]
        if has_messages(events):
            return conversation(events, thinking=thinking)
        message: str = self["final_message"]
        return message

    def _events(self) -> list[dict[str, Any]]:
        try:
            with open(os.path.join(self._directory, EVENTS), "rb") as stream:
                return read_events(stream.read())[0]
        except FileNotFoundError:
            return []

    def _steps(self) -> dict[str, Record]:
        from pytest_agent_eval.execution.step_record import step_records

        return step_records(self, self._directory, self._data, self._case)

    def _inputs(self) -> str:
        """The input as text, one paragraph a field."""
        return "\n\n".join(f"**{key}**: {_shown(value)}" for key, value in self["input"].items())

    def _log(self, name: str) -> str:
        # Most trials have no log at all, and asking for one that is not there costs an exception.
        if self._stored is None:
            self._stored = frozenset(os.listdir(self._directory))
        return text_of(os.path.join(self._directory, name)) if name in self._stored else ""

    def _files(self, **options: str) -> StoredFiles:
        roots = dict.fromkeys((*map(os.path.normpath, self._data.get("outputs", ())), OUTPUT))
        return StoredFiles(
            os.path.join(self._directory, FILES),
            roots=tuple(roots),
            listing=self._listing,
            **options,
        )


class RecordView(Mapping[str, Any]):
    """A record of one's own: mappings and lists are copied when they are first looked at."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._own: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        own = self._own
        if key not in own:
            own[key] = fresh(self._record[key])
        return own[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default when there is no such key."""
        return self[key] if key in self._record else default

    def __contains__(self, key: object) -> bool:
        return key in self._record

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)

    def __repr__(self) -> str:
        return repr(self._record)


def _text_or_empty(file: str) -> str:
    return read_text(file, os.path.getsize(file)) or ""


def fresh(value: Any) -> Any:
    """A copy of nested mappings and lists; what else there is in YAML and JSON cannot change."""
    kind = type(value)
    if kind is dict:
        return {key: fresh(item) for key, item in value.items()}
    if kind is list:
        return [fresh(item) for item in value]
    return value


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


_LOADERS: Mapping[str, Callable[[Record], Any]] = {
    "files": lambda record: record._files(),
    "main_content": Record._main_content,
    "main_file": Record._main_file,
    "modified_files": lambda record: record._files(below=MODIFIED),
    "tool_calls": lambda record: tool_calls(record["events"], record._data.get("tools", ())),
    "events": Record._events,
    "conversation": Record._conversation,
    "reasoning": lambda record: record._conversation(thinking=True),
    "final_message": Record._final_message,
    "stdout": lambda record: record._log(STDOUT),
    "stderr": lambda record: record._log(STDERR),
    "annotations": lambda record: record._case.annotations,
    "input": lambda record: record._case.input(),
    "answers": lambda record: record._case.answers(),
    "inputs": Record._inputs,
    "evidence": describe_evidence,
    "case": lambda record: record._case.name,
    "split": lambda record: record._case.split,
    "tags": lambda record: dict(record._case.tags),
    "group": lambda record: record._case.group,
    "category": lambda record: record._case.category,
    "case_dir": lambda record: record._case.path,
    "input_path": lambda record: str(record._case.input_path),
    "hook_outputs": lambda record: record._data.get("hook_outputs") or {},
    "steps": Record._steps,
}
"""Keys whose value is made when it is first looked at."""
