"""Writing a run directory: the one place that does.

``results.jsonl`` is the source of truth. Each line is appended with one write as soon as its
trial is done, so that a kill loses nothing that was finished; it is flushed to the disk at most a
second later, so that a power cut loses no more than that second.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from pytest_agent_eval.errors import RunDirectoryError
from pytest_agent_eval.results import TrialResult
from pytest_agent_eval.runs.appender import Appender
from pytest_agent_eval.runs.directories import (
    failure,
    new_directory,
    part,
    point_latest,
    prepare,
    remove_tree,
    replace_file,
    reserved,
)
from pytest_agent_eval.runs.lines import decode_line, encode_line, sanitised
from pytest_agent_eval.runs.lock import SessionLock, try_lock
from pytest_agent_eval.runs.reader import RESULTS, read_attempts, read_header, result_files
from pytest_agent_eval.runs.totals import run_totals
from pytest_agent_eval.runs.yaml_text import dump_yaml

__all__ = ["RunWriter"]


class RunWriter:
    """One open run directory. ``append`` and ``trial_directory`` may be called from any thread.

    Attributes:
        path: the run directory (absolute).
        run_id: its name.
    """

    def __init__(
        self,
        path: Path,
        results: Appender,
        header: Mapping[str, Any] | None = None,
        lock: SessionLock | None = None,
    ) -> None:
        self.path = path
        self.run_id = path.name
        self._header = None if header is None else dict(header)
        self._cases = os.path.join(path, "cases")
        self._results = results
        self._lock = lock

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
            RunDirectoryError: it cannot be written, or another session writes it.
        """
        directory = directory.absolute()
        try:
            prepare(directory)
            path = reserved(directory / name) if name else new_directory(directory)
            lock = SessionLock.take(path)
        except OSError as error:
            raise failure(directory, error) from None
        try:
            if (path / "run.json").exists():  # two sessions that began in one moment
                raise FileExistsError(None, f"there is a run named {path.name}", str(path))
            full = {"run_id": path.name, "started": _now(), "complete": False, **header}
            replace_file(path / "run.json", _json(full))
            (path / RESULTS).touch()
        except OSError as error:
            lock.release()
            raise failure(directory, error) from None
        writer = cls(path, Appender(os.path.join(path, RESULTS)), full, lock)
        point_latest(directory, path.name)
        return writer

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> RunWriter:
        """Go on with a run: what it holds stays, what is appended comes after it.

        ``run.json`` keeps how the run began and gets one more entry in ``sessions``. Files that
        workers of a killed session left are brought into ``results.jsonl`` first, and half a line
        at its end is cut off. ``latest`` points at the run afterwards.

        Args:
            path: the run directory.
            header: as for :meth:`create`, of the session that goes on.

        Raises:
            RunDirectoryError: there is no such run, another session writes it (named), or it
                cannot be written.
        """
        path = path.absolute()
        if not path.is_dir():
            raise RunDirectoryError(f"{path}: there is no such run")
        try:
            lock = SessionLock.take(path)
        except OSError as error:
            raise failure(path, error) from None
        try:
            full = _resumed(path, header)
            (path / "cases").mkdir(exist_ok=True)
            _cut_torn_line(path / RESULTS)
            replace_file(path / "run.json", _json(full))
            writer = cls(path, Appender(os.path.join(path, RESULTS)), full, lock)
            writer.merge()
        except OSError as error:
            lock.release()
            raise failure(path, error) from None
        except BaseException:
            lock.release()
            raise
        point_latest(path.parent, path.name)
        return writer

    @classmethod
    def join(cls, path: Path, worker: str) -> RunWriter:
        """Write into a run that another process creates or resumes, as ``results-<worker>.jsonl``.

        A file that a worker of the same name left there is not touched: the name gets a number.

        Raises:
            RunDirectoryError: it cannot be written.
        """
        path = path.absolute()
        name = part(worker)
        try:
            prepare(path.parent)
        except OSError as error:
            raise failure(path.parent, error) from None
        try:
            reserved(path)
            for number in count(1):
                ending = "" if number == 1 else f".{number}"
                try:
                    results = Appender.new(os.path.join(path, f"results-{name}{ending}.jsonl"))
                except FileExistsError:
                    continue
                return cls(path, results)
        except OSError as error:
            raise failure(path, error) from None
        raise AssertionError("count ends never")

    def describe(self, suites: Sequence[Mapping[str, Any]]) -> None:
        """Say in ``run.json`` which suites run, as soon as it is known, in case of a kill.

        Raises:
            RunDirectoryError: it cannot be written.
        """
        if self._header is None:
            return
        self._header["suites"] = _merged_suites(self._header.get("suites"), suites)
        try:
            replace_file(self.path / "run.json", _json(self._header))
        except OSError as error:
            raise failure(self.path, error) from None

    @property
    def git(self) -> Mapping[str, Any] | None:
        """``{commit, dirty}`` of the session that writes; None if unknown."""
        header = self._header or {}
        found = (header.get("sessions") or [header])[-1].get("git")
        return found if isinstance(found, Mapping) else None

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
        for name in parts:
            path = f"{path}{os.sep}{part(name)}"
            try:
                os.mkdir(path)
            except FileExistsError:
                continue
            except OSError as error:
                raise failure(path, error) from None
        return path

    def fresh_trial_directory(self, *parts: str) -> str:
        """:meth:`trial_directory`, empty: what an earlier attempt left in it is removed.

        Called when a trial starts, so that files of an attempt that was killed do not mix with
        those of the new one.

        Raises:
            RunDirectoryError: as :meth:`trial_directory`, or something cannot be removed.
        """
        path = self.trial_directory(*parts[:-1])
        path = f"{path}{os.sep}{part(parts[-1])}"
        try:
            with suppress(FileExistsError):
                os.mkdir(path)
                return path
            if os.path.islink(path) or not os.path.isdir(path) or os.listdir(path):
                remove_tree(path)
                os.mkdir(path)
        except OSError as error:
            raise failure(path, error) from None
        return path

    def relative(self, path: str) -> str:
        """A path below the run directory relative to it, with slashes."""
        return os.path.relpath(path, self.path).replace(os.sep, "/")

    def merge(self) -> tuple[str, ...]:
        """Bring the files of all workers into ``results.jsonl``, each trial once.

        Of several attempts of a trial the last one stays, with the others under ``earlier``. May
        be called again, and survives a kill at any moment. The file of a worker that still
        writes (one that outlived its session) is read and left where it is.

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
        claimed = _claimed(workers, notes)
        try:
            attempts = read_attempts(files, notes)
            content = b"".join(
                encode_line(several[-1], tuple(several[:-1])) for several in attempts.values()
            )
            self._results.close()
            replace_file(self.path / RESULTS, content)
            for path in claimed:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise failure(self.path, error) from None
        finally:
            for fd in claimed.values():
                os.close(fd)
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
                replace_file(self.path / "summary.yaml", _yaml(summary))
            if self._header is not None:
                closed = self._closed(summary, exit_status, complete, suites)
                replace_file(self.path / "run.json", _json(closed))
        except OSError as error:
            raise failure(self.path, error) from None
        finally:
            if self._lock is not None:
                self._lock.release()

    def _closed(
        self,
        summary: Mapping[str, Any] | None,
        exit_status: int | None,
        complete: bool,
        suites: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        header = dict(self._header or {})
        end = {"ended": _now(), "exit_status": exit_status}
        header["suites"] = _merged_suites(header.get("suites"), suites)
        if header.get("sessions"):
            header["sessions"] = [*header["sessions"][:-1], {**header["sessions"][-1], **end}]
        totals = {} if summary is None else {"totals": run_totals(summary)}
        return {**header, **end, "complete": complete, **totals}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _resumed(path: Path, header: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a run that goes on."""
    try:
        old = read_header(path)
    except RunDirectoryError:  # killed before it was written, or the disk was full
        old = {"run_id": path.name, "started": _now(), **header}
    sessions = old.get("sessions")
    if not isinstance(sessions, list) or not sessions:
        kept = ("started", *_OF_A_SESSION, "ended", "exit_status")
        sessions = [{key: old[key] for key in kept if key in old}]
    now = {"started": _now(), **{key: header[key] for key in _OF_A_SESSION if key in header}}
    ended = ("ended", "exit_status", "totals")
    return {
        **{key: value for key, value in old.items() if key not in ended},
        "complete": False,
        "sessions": [*sessions, now],
    }


_OF_A_SESSION = ("options", "versions", "git")


def _merged_suites(old: Any, new: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The suites and variants of all sessions of a run, each as it was last."""
    varied = {suite.get("file"): suite.get("variant") is not None for suite in new}
    kept = [
        suite
        for suite in old or ()
        if varied.get(suite.get("file")) in (None, suite.get("variant") is not None)
    ]
    found = {(s.get("file"), s.get("variant")): dict(s) for s in (*kept, *new)}
    return list(found.values())


def _cut_torn_line(path: Path) -> None:
    """Let a results file end with a whole line, so that every line of it is JSON."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(fd, "r+b") as stream:
        content = stream.read()
        start = content.rfind(b"\n") + 1
        if start == len(content):
            return
        try:
            decode_line(content[start:])
        except ValueError:
            stream.truncate(start)
        else:
            stream.write(b"\n")


def _claimed(workers: Sequence[Path], notes: list[str]) -> dict[Path, int]:
    """The files that nobody writes any more, each with an open descriptor that locks it."""
    found: dict[Path, int] = {}
    for path in workers:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue  # reading it says why
        if try_lock(fd):
            found[path] = fd
        else:
            os.close(fd)
            notes.append(f"{path.name}: a worker still writes it; it was read and left")
    return found


def _yaml(data: Mapping[str, Any]) -> bytes:
    try:
        return dump_yaml(data)
    except ValueError:  # a lone surrogate, a number that is none: worth the walk
        return dump_yaml(sanitised(dict(data)))


def _json(data: Mapping[str, Any]) -> bytes:
    text = json.dumps(sanitised(dict(data)), ensure_ascii=False, indent=2)
    return text.encode() + b"\n"
