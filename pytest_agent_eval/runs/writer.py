"""Writing a run directory: the one place that does.

``results.jsonl`` is the source of truth. Each line is appended with one write as soon as its
trial is done, so that a kill loses nothing that was finished; it is flushed to the disk at most a
second later, so that a power cut loses no more than that second.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.appender import Appender
from pytest_agent_eval.runs.lines import encode_line, sanitised
from pytest_agent_eval.runs.names import new_run_name
from pytest_agent_eval.runs.reader import RESULTS, read_attempts, result_files
from pytest_agent_eval.runs.yaml_text import dump_yaml

__all__ = ["RunWriter"]

_NAMES_TO_TRY = 100


class RunWriter:
    """One open run directory. ``append`` and ``trial_directory`` may be called from any thread.

    Attributes:
        path: the run directory (absolute).
        run_id: its name.
    """

    def __init__(self, path: Path, results_name: str, header: Mapping[str, Any] | None) -> None:
        self.path = path
        self.run_id = path.name
        self._header = header
        self._cases = os.path.join(path, "cases")
        self._results = Appender(os.path.join(path, results_name))

    @classmethod
    def create(cls, directory: Path, header: Mapping[str, Any], *, name: str = "") -> RunWriter:
        """Make ``<directory>/<UTC time>-<4 hex>/`` with ``run.json`` and point ``latest`` at it.

        Args:
            directory: where runs are kept; made if it is missing, with a ``.gitignore`` of ``*``
                (in ``.agent-eval`` where that is its parent).
            header: of :func:`~pytest_agent_eval.runs.header.make_header`; JSON types.
            name: from :func:`~pytest_agent_eval.runs.names.new_run_name`, for processes that
                agreed on it before; others may have begun to write there.

        Raises:
            RunDirectoryError: it cannot be written.
        """
        directory = directory.absolute()
        try:
            _prepare(directory)
            path = _reserved(directory / name) if name else _new_directory(directory)
            started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            full = {"run_id": path.name, "started": started, **header}
            _replace(path / "run.json", _json(full))
            (path / RESULTS).touch()
        except OSError as error:
            raise _failure(directory, error) from None
        writer = cls(path, RESULTS, full)
        _point_latest(directory, path.name)
        return writer

    @classmethod
    def join(cls, path: Path, worker: str) -> RunWriter:
        """Write into a run that another process creates, as ``results-<worker>.jsonl``.

        Raises:
            RunDirectoryError: it cannot be written.
        """
        try:
            _prepare(path.parent)
            _reserved(path)
        except OSError as error:
            raise _failure(path, error) from None
        return cls(path.absolute(), f"results-{_part(worker)}.jsonl", None)

    def append(self, result: TrialResult) -> None:
        """Store one finished trial, now.

        Raises:
            RunDirectoryError: the disk is full or the directory has gone.
        """
        self._results.append(encode_line(result))

    def trial_directory(self, *parts: str) -> str:
        """Make ``cases/<part>/<part>...`` and return its absolute path.

        ``TrialResult.record`` is :meth:`relative` of it. An existing directory is fine.

        Raises:
            RunDirectoryError: a part is no file name, or the directory cannot be made.
        """
        path = self._cases
        for part in parts:
            path = f"{path}{os.sep}{_part(part)}"
            try:
                os.mkdir(path)
            except FileExistsError:
                continue
            except OSError as error:
                raise _failure(path, error) from None
        return path

    def relative(self, path: str) -> str:
        """A path below the run directory relative to it, with slashes."""
        return os.path.relpath(path, self.path).replace(os.sep, "/")

    def merge(self) -> tuple[str, ...]:
        """Bring the files of all workers into ``results.jsonl``, each trial once.

        Of several attempts of a trial the last one stays, with the others under ``earlier``. May
        be called again, and survives a kill at any moment. No worker may be writing any more.

        Returns:
            Notes on lines that could not be read.

        Raises:
            RunDirectoryError: the files cannot be read or written.
        """
        notes: list[str] = []
        files = result_files(self.path)
        workers = [path for path in files if path.name != RESULTS]
        if not workers:
            return ()
        attempts = read_attempts(files, notes)
        content = b"".join(
            encode_line(several[-1], tuple(several[:-1])) for several in attempts.values()
        )
        try:
            self._results.close()
            _replace(self.path / RESULTS, content)
            for path in workers:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise _failure(self.path, error) from None
        self._results = Appender(os.path.join(self.path, RESULTS))
        return tuple(notes)

    def close(
        self,
        summary: Mapping[str, Any] | None = None,
        exit_status: int | None = None,
        complete: bool = True,
        suites: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Flush the results; on the process that created the run also write ``summary.yaml`` and
        close ``run.json`` with end time, exit status, the suites that ran (for a process that did
        not know them when it created the run) and whether the run is complete.

        Raises:
            RunDirectoryError: the disk is full or the directory has gone.
        """
        try:
            self._results.close()
            if summary is not None:
                _replace(self.path / "summary.yaml", _yaml(summary))
            if self._header is not None:
                ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                closed = {
                    **self._header,
                    "suites": [dict(suite) for suite in suites] or self._header.get("suites", []),
                    "ended": ended,
                    "exit_status": exit_status,
                    "complete": complete,
                }
                _replace(self.path / "run.json", _json(closed))
        except OSError as error:
            raise _failure(self.path, error) from None


def _failure(path: str | Path, error: OSError) -> RunDirectoryError:
    reason = error.strerror or type(error).__name__
    return RunDirectoryError(f"{path}: results cannot be stored here: {reason}")


def _part(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
        raise RunDirectoryError(f"{name!r} cannot name a directory of stored results")
    return name


def _prepare(directory: Path) -> None:
    ours = directory.parent if directory.parent.name == ".agent-eval" else directory
    fresh = not ours.exists()
    directory.mkdir(parents=True, exist_ok=True)
    # A directory that was there may hold files that belong into version control.
    if fresh or ours.name == ".agent-eval":
        ignore = ours / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")


def _new_directory(directory: Path) -> Path:
    for _ in range(_NAMES_TO_TRY):
        path = directory / new_run_name()
        try:
            path.mkdir()
        except FileExistsError:
            continue
        (path / "cases").mkdir()
        return path
    raise FileExistsError(None, "every name for a new run is taken", str(directory))


def _reserved(path: Path) -> Path:
    (path / "cases").mkdir(parents=True, exist_ok=True)
    return path


def _point_latest(directory: Path, name: str) -> None:
    """Best effort: some file systems have no symlinks, and a reader does without."""
    link = directory / f".latest-{secrets.token_hex(4)}"
    try:
        link.symlink_to(name, target_is_directory=True)
    except (OSError, NotImplementedError):
        return
    try:
        os.replace(link, directory / "latest")
    except OSError:
        link.unlink(missing_ok=True)


def _yaml(data: Mapping[str, Any]) -> bytes:
    try:
        return dump_yaml(data)
    except ValueError:  # a lone surrogate, a number that is none: worth the walk
        return dump_yaml(sanitised(dict(data)))


def _json(data: Mapping[str, Any]) -> bytes:
    text = json.dumps(sanitised(dict(data)), ensure_ascii=False, indent=2)
    return text.encode() + b"\n"


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old content or the new one, never a part."""
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
