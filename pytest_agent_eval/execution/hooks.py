"""Commands of the suite's author, run around the agent's work; what they hand over and how they
fail.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_agent_eval.baton import BATON
from pytest_agent_eval.documents import read_document
from pytest_agent_eval.errors import DocumentError, RunnerError
from pytest_agent_eval.execution.names import clean_text
from pytest_agent_eval.redaction import NO_SECRETS, Secrets
from pytest_agent_eval.runners.capped_log import read_tail
from pytest_agent_eval.runners.process import ProcessOutcome, run_process
from pytest_agent_eval.runners.process_tree import ProcessTree
from pytest_agent_eval.suite.models.hooks import HookConfig

__all__ = [
    "CONDITION_TIMEOUT_S",
    "HANDOVER_FILES",
    "Handed",
    "HookPlace",
    "Ran",
    "end_left_running",
    "run_hooks",
]

CONDITION_TIMEOUT_S = 30.0
"""Seconds that a hook's condition may take."""

HANDOVER_FILES = (".hook-outputs.yaml", ".hook-outputs.json")
"""Written by a hook in its working directory, read and removed when it has ended."""

_TAIL_BYTES = 4096
_TAIL_LINES = 20
_NO_COMMAND = (126, 127)
_HANDED_KEYS = ("env", "data")

# One log in the order of writing: the inner shell's error output goes where its output goes.
_WRAPPER = 'exec bash -c "$1" 2>&1'


class Handed(NamedTuple):
    """What hooks hand over.

    Attributes:
        env: variables for later hooks and for the agent.
        data: for judges, as ``outputs["hook_outputs"]``.
    """

    env: Mapping[str, str] = {}
    data: Mapping[str, Any] = {}

    def plus(self, later: Handed) -> Handed:
        """Both; of what both have, the later one's."""
        return Handed({**self.env, **later.env}, {**self.data, **later.data})


@dataclass(frozen=True, slots=True)
class HookPlace:
    """Where hooks run and what they see.

    Attributes:
        directory: their working directory (absolute).
        env: their whole environment.
        logs: directory for their output (absolute); made when it is needed.
        marker: marks what hooks leave running, for :func:`end_left_running`; if it is empty,
            that is ended with each hook.
        label: comes after the phase in the names of logs, such as a step's id; may be empty.
        secrets: what no log, note or message may hold.
    """

    directory: str
    env: Mapping[str, str]
    logs: str
    label: str = ""
    marker: str = ""
    secrets: Secrets = field(default=NO_SECRETS, repr=False)


class Ran(NamedTuple):
    """What came of the hooks of one phase.

    Attributes:
        handed: by all of them together.
        failure: why the first hook that counts failed, as one line, and the end of its output in
            the lines after it; empty if none did.
        notes: of hooks that failed and do not count, or were not run for a reason worth telling.
    """

    handed: Handed = Handed()
    failure: str = ""
    notes: tuple[str, ...] = ()


def run_hooks(
    phase: str,
    hooks: Sequence[HookConfig],
    place: HookPlace,
    *,
    cancelled: threading.Event | None = None,
) -> Ran:
    """Run the hooks of a phase in their order.

    A failing hook ends the phase unless its ``on_failure`` is ``continue``. Those of ``after_*``
    phases and of ``before_report`` all run and fail nothing: their failures are notes.

    Args:
        phase: one of the keys of ``hooks``.
        hooks: of this phase.
        place: where they run.
        cancelled: ends a hook early when set; that is a failure.
    """
    lenient = phase.startswith("after_") or phase == "before_report"
    handed, notes = Handed(), list[str]()
    for number, hook in enumerate(hooks, start=1):
        one = _Hook(phase, number, hook, place)
        try:
            gave = one.run({**place.env, **handed.env}, cancelled)
            handed = handed.plus(gave)
        except RunnerError as error:
            said = place.secrets.text(clean_text(str(error)))
            if not lenient and hook.on_failure == "fail":
                return Ran(handed, said, tuple(notes))
            notes.append(said.partition("\n")[0])
        notes += one.notes
    return Ran(handed, "", tuple(notes))


class _Hook:
    """One hook of one phase, at one place."""

    def __init__(self, phase: str, number: int, config: HookConfig, place: HookPlace) -> None:
        self._config = config
        self._place = place
        self._name = f"hooks.{phase}[{number - 1}]"
        if config.description:
            self._name += f" ({config.description.strip()})"
        self._log = ".".join(filter(None, (phase, place.label, str(number), "log")))
        self.notes: list[str] = []

    def run(self, env: Mapping[str, str], cancelled: threading.Event | None) -> Handed:
        """Run it if its condition holds.

        Raises:
            RunnerError: it failed, ran out of time, or handed over what cannot be read.
        """
        config = self._config
        os.makedirs(self._place.logs, exist_ok=True)
        if config.condition is not None and not self._holds(config.condition, env, cancelled):
            return Handed()
        try:
            outcome = self._start(config.command, env, config.timeout, self._log, cancelled)
        finally:
            handed = _take_over(self._place.directory)
        if outcome.exit_code != 0:
            raise RunnerError(self._failure(outcome, config.timeout))
        if outcome.survivors:
            self.notes.append(f"{self._name}: {outcome.survivors} processes could not be ended")
        if isinstance(handed, str):
            raise RunnerError(f"{self._name}: {handed}")
        return handed

    def _holds(
        self, condition: str, env: Mapping[str, str], cancelled: threading.Event | None
    ) -> bool:
        log = self._log.removesuffix(".log") + ".condition.log"
        outcome = self._start(condition, env, CONDITION_TIMEOUT_S, log, cancelled)
        if outcome.exit_code in _NO_COMMAND:
            self.notes.append(
                f"{self._name} was not run: its condition is no command that can be run: "
                f"{condition.strip().splitlines()[0][:200]}"
            )
        elif outcome.timed_out:
            said = f"its condition did not end within {CONDITION_TIMEOUT_S:g} s"
            self.notes.append(f"{self._name} was not run: {said}")
        return outcome.exit_code == 0

    def _start(
        self,
        command: str,
        env: Mapping[str, str],
        timeout: float,
        log: str,
        cancelled: threading.Event | None,
    ) -> ProcessOutcome:
        path = os.path.join(self._place.logs, log)
        with contextlib.suppress(FileNotFoundError):  # of an earlier session of this run
            os.unlink(path)
        return run_process(
            ["bash", "-c", _WRAPPER, "hook", command],
            cwd=self._place.directory,
            env=env,
            timeout=timeout,
            stdout_path=path,
            stderr_path=path + ".err",  # of the outer shell, which says nothing
            trial_id=self._place.marker,
            cancelled=cancelled,
            secrets=self._place.secrets,
            leave_running=bool(self._place.marker),
        )

    def _failure(self, outcome: ProcessOutcome, timeout: float) -> str:
        if outcome.cancelled:
            return f"{self._name} was ended: the session stops"
        if outcome.timed_out:
            said = f"{self._name} timed out after {timeout:g} s"
        else:
            code = outcome.exit_code or 0
            how = f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"
            said = f"{self._name} {how}"
        tail = read_tail(os.path.join(self._place.logs, self._log), _TAIL_BYTES)
        lines = tail.strip("\n").splitlines()[-_TAIL_LINES:]
        if not lines:
            return f"{said}; it wrote nothing"
        return "\n".join((f"{said}: {lines[-1].strip()[:300]}", *lines))


def end_left_running(marker: str, grace: float = 5.0) -> int:
    """End what hooks have left running: SIGTERM, after ``grace`` seconds SIGKILL.

    Args:
        marker: of the hooks' place.
        grace: seconds.

    Returns:
        How many processes there were.
    """
    tree = ProcessTree(_NO_PROCESS, marker)
    seen: set[int] = set()
    until = time.monotonic() + grace
    while members := tree.signal(signal.SIGTERM if time.monotonic() < until else signal.SIGKILL):
        seen.update(process.pid for process in members)
        if time.monotonic() > until + grace:
            break
        with BATON.waiting():
            time.sleep(_PAUSE_S)
    return len(seen)


_NO_PROCESS = -1
_PAUSE_S = 0.02


def _take_over(directory: str) -> Handed | str:
    """Read and remove what a hook wrote for us; what is wrong with it, as a sentence."""
    found: Handed | str = Handed()
    for name in HANDOVER_FILES:
        path = Path(directory, name)
        if not os.path.lexists(path):
            continue
        try:
            read = _read(path)
        except DocumentError as error:
            read = str(error)
        finally:
            _remove(path)
        if isinstance(found, str) or isinstance(read, str):
            found = read if isinstance(read, str) else found
        else:
            found = found.plus(read)
    return found


def _read(path: Path) -> Handed | str:
    if not path.is_file():
        return f"{path.name} is not a file"
    value = read_document(path)
    if value is None:
        return Handed()
    if not isinstance(value, Mapping):
        return f"{path.name} must be a mapping with env and data, not {type(value).__name__}"
    unknown = [str(key) for key in value if key not in _HANDED_KEYS]
    if unknown:
        return f"{path.name} has the unknown key {unknown[0]!r}; there are env and data"
    env, data = value.get("env") or {}, value.get("data") or {}
    for key, part in (("env", env), ("data", data)):
        if not isinstance(part, Mapping):
            return f"{path.name}: {key} must be a mapping, not {type(part).__name__}"
    return _variables(path.name, env, data)


def _variables(file: str, env: Mapping[Any, Any], data: Mapping[Any, Any]) -> Handed | str:
    found: dict[str, str] = {}
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            return f"{file}: env: {name!r} is no name of a variable"
        if value is None:
            continue
        if not isinstance(value, str | int | float):
            return f"{file}: env.{name} must be a text or a number, not {type(value).__name__}"
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if "\0" in text:
            return f"{file}: env.{name} holds a NUL character, which no variable can"
        found[name] = text
    return Handed(found, {str(key): value for key, value in data.items()})


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except (IsADirectoryError, PermissionError):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
