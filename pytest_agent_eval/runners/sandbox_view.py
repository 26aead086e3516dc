"""What an agent in a sandbox sees of the file system.

Everything is readable but what is hidden: homes, temporary directories, the answer key, results.
Of what is hidden some is shown again, read-only: the project and the programs in ``PATH``.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pytest_agent_eval.cases.case import INPUT_NAMES
from pytest_agent_eval.errors import RunnerError
from pytest_agent_eval.suite import Suite
from pytest_agent_eval.suite.recognise import is_suite

__all__ = ["Mount", "View", "program_mounts", "view_of"]

Kind = Literal["private", "hidden", "masked", "shown", "writable"]

_KEY_STEMS = ("annotations", "answers")
_INSTALLED = ("bin", "sbin", "lib", "lib64", "libexec")
"""What a program needs of the place where it is installed, beside which a home may have secrets."""

_RESOLVER = "/etc/resolv.conf"


class Mount(NamedTuple):
    """One place in the agent's file system.

    Attributes:
        kind: ``private``: an empty directory of the agent's own; ``hidden``: an empty one that
            cannot be written; ``masked``: a file that cannot be opened; ``shown``: read-only;
            ``writable``.
        place: absolute path that the agent sees it at.
        source: absolute path of what is shown there.
    """

    kind: Kind
    place: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """What all agents of a suite see, and how a workspace is added to it.

    Attributes:
        mounts: of the suite.
        project: directories that hold the suite; never hidden as a whole.
        repo: the workspace is the real checkout.
    """

    mounts: tuple[Mount, ...]
    project: tuple[str, ...] = ()
    repo: bool = False

    def mounts_of(self, workspace: str, log_dir: str, programs: Iterable[str] = ()) -> list[Mount]:
        """All mounts of one task, outer before inner ones, without those that change nothing.

        Args:
            workspace: the only directory that the agent may write to (absolute).
            log_dir: where its logs go; the runs around it are hidden (absolute).
            programs: files or directories that its command needs (absolute).
        """
        mounts = [*self.mounts, Mount("hidden", _runs_around(os.path.realpath(log_dir)))]
        siblings = os.path.dirname(os.path.realpath(workspace))
        if not self.repo and not any(_within(place, siblings) for place in self.project):
            mounts.append(Mount("hidden", siblings))
        mounts += [mount for path in programs for mount in _shown(path)]
        mounts += (Mount("writable", place, workspace) for place in _hops(workspace))
        return _effective(mounts)


def view_of(
    suite: Suite,
    rootdir: str,
    env: Mapping[str, str],
    *,
    readable: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> View:
    """The view of a suite's agents.

    Args:
        suite: its dataset, its files with criteria and the results beside it are hidden.
        rootdir: pytest's root directory (absolute).
        env: what the agents get: ``PATH``, ``PYTHONPATH``, ``HOME``.
        readable: more that is shown; ``~`` is the home, a relative path starts at the suite.
        hidden: more that is hidden, likewise.

    Raises:
        RunnerError: the suite lies where nothing can be shown, such as right in a home.
    """
    directory = os.path.realpath(suite.directory)
    homes = _homes(env)
    private = {*homes, *_temporary(env)}
    if any(_within(place, directory) for place in (*homes, "/tmp")):
        raise RunnerError(
            f"a sandbox hides {directory}, and the suite lies right in it; give the suite a "
            "directory of its own",
            lasting=True,
        )
    rootdir = os.path.realpath(rootdir)
    project = _project(directory, rootdir, private)
    repo = suite.config.runner.workspace_mode == "repo"
    mounts = [Mount("private", place) for place in private]
    mounts.append(Mount("hidden", "/run"))
    mounts += _shown(project)
    if os.path.islink(_RESOLVER):
        mounts += _shown(_RESOLVER)
    for name in ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"):
        for entry in env.get(name, "").split(os.pathsep):
            if os.path.isabs(entry):
                mounts += _program_directory(entry, private)
    mounts += _answers(suite, directory)
    mounts += [Mount("hidden", os.path.join(place, ".agent-eval")) for place in (rootdir, project)]
    if not repo:
        mounts += _history(project)
    for path in readable:
        mounts += _shown(os.path.join(directory, os.path.expanduser(path)))
    mounts += [_blocked(os.path.join(directory, os.path.expanduser(path))) for path in hidden]
    return View(tuple(_effective(mounts)), (project, directory), repo)


def program_mounts(path: str) -> Iterator[str]:
    """What a program outside of ``PATH`` needs: itself, where it is installed, its interpreter."""
    for hop in _hops(path):
        yield hop
        yield from _installation(os.path.dirname(hop))
    interpreter = _interpreter(path)
    if interpreter and interpreter != path:
        for hop in _hops(interpreter):
            yield hop
            yield from _installation(os.path.dirname(hop))


def _answers(suite: Suite, directory: str) -> Iterator[Mount]:
    """The dataset, suites, and what their judges go by."""
    dataset = os.path.realpath(suite.dataset_directory)
    if _within(directory, dataset):
        # The suite lies among its cases: show what is no case.
        yield Mount("hidden", dataset)
        for entry in os.scandir(directory):
            if not _is_case(entry):
                yield from _shown(entry.path)
    else:
        yield _blocked(dataset)
    for entry in os.scandir(directory):
        stem, _, ending = entry.name.casefold().partition(".")
        if stem in _KEY_STEMS or (ending.endswith(("yaml", "yml")) and is_suite(entry.path).suite):
            yield _blocked(entry.path)
    yield _blocked(str(suite.file))
    judges = [judge for one in (suite.config, *suite.variants.values()) for judge in one.judges]
    examples = [judge.examples.source for judge in judges if judge.examples is not None]
    named = [path for judge in judges for path in (judge.prompt_file, judge.labels) if path]
    for path in dict.fromkeys([*named, *examples, *suite.handler_files.paths]):
        yield _blocked(os.path.join(directory, path))


def _is_case(entry: os.DirEntry[str]) -> bool:
    names = (*INPUT_NAMES, "annotations.yaml")
    return entry.is_dir() and any(os.path.exists(f"{entry.path}/{name}") for name in names)


def _history(project: str) -> Iterator[Mount]:
    """The repository's: the answers are in it as well."""
    git = os.path.join(project, ".git")
    if os.path.isdir(git):
        yield Mount("hidden", os.path.realpath(git))
    elif os.path.isfile(git):
        # A linked worktree or a submodule: a file that says where the repository is.
        yield Mount("masked", git)
        with open(git, encoding="utf-8", errors="surrogateescape") as stream:
            where = os.path.join(project, stream.read(4096).partition("gitdir:")[2].strip())
        repository = os.path.realpath(where)
        if os.path.basename(os.path.dirname(repository)) == "worktrees":
            repository = os.path.dirname(os.path.dirname(repository))
        if os.path.isdir(repository) and not _within(project, repository):
            yield Mount("hidden", repository)


def _project(directory: str, rootdir: str, private: Iterable[str]) -> str:
    """The checkout, or pytest's root directory, or that of the suite: whatever is no home."""
    candidates = [place for place in _upwards(directory) if os.path.lexists(f"{place}/.git")]
    candidates += [rootdir] if _within(directory, rootdir) else []
    for place in candidates:
        if place != "/" and not any(_within(hidden, place) for hidden in private):
            return place
    return directory


def _homes(env: Mapping[str, str]) -> list[str]:
    found = ["/home", "/root", env.get("HOME", ""), os.environ.get("HOME", "")]
    try:
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        found.append("")
    return [os.path.realpath(place) for place in found if _is_directory(place)]


def _temporary(env: Mapping[str, str]) -> list[str]:
    found = ["/tmp", "/var/tmp", env.get("TMPDIR", ""), tempfile.gettempdir()]
    return [os.path.realpath(place) for place in found if _is_directory(place)]


def _is_directory(place: str) -> bool:
    return place.startswith("/") and os.path.realpath(place) != "/" and os.path.isdir(place)


def _program_directory(path: str, private: Iterable[str]) -> Iterator[Mount]:
    """A directory of ``PATH``, where its programs are installed, and what links in it lead to."""
    for place in _hops(path):
        if place != "/":
            yield from _shown(place)
        yield from (mount for part in _installation(place) for mount in _shown(part))
    try:
        entries = [entry.path for entry in os.scandir(path) if entry.is_symlink()]
    except OSError:
        return
    for entry in entries:
        if "/" not in os.readlink(entry):
            continue
        for hop in list(_hops(entry))[1:]:
            if any(_within(hop, place) for place in private):
                yield Mount("shown", hop, hop)
                for part in _installation(os.path.dirname(hop)):
                    yield from _shown(part)


def _installation(directory: str) -> Iterator[str]:
    """Where the programs in ``directory`` are installed: all of an environment, else its parts."""
    if os.path.basename(directory) not in ("bin", "sbin"):
        return
    prefix = os.path.dirname(directory)
    if any(os.path.exists(f"{prefix}/{mark}") for mark in ("pyvenv.cfg", "conda-meta")):
        yield prefix
        return
    for part in _INSTALLED:
        if os.path.isdir(f"{prefix}/{part}") and prefix != "/":
            yield f"{prefix}/{part}"


def _interpreter(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            line = stream.readline(512)
    except OSError:
        return ""
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    return words[0] if words and words[0].startswith("/") else ""


def _runs_around(log_dir: str) -> str:
    """The directory of all runs that a trial's logs are in; without one, the logs' own."""
    for place in _upwards(log_dir):
        if os.path.basename(place) == ".agent-eval":
            return place
        if os.path.exists(f"{place}/run.json"):
            return os.path.dirname(place)
    return log_dir


def _shown(path: str) -> list[Mount]:
    return [Mount("shown", place, place) for place in _hops(path) if os.path.exists(place)]


def _blocked(path: str) -> Mount:
    place = os.path.realpath(path)
    return Mount("hidden" if os.path.isdir(place) else "masked", place)


def _hops(path: str) -> Iterator[str]:
    """The path as it is written, and what links on the way lead to, to the last."""
    seen: set[str] = set()
    while path not in seen:
        seen.add(path)
        yield path
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    real = os.path.realpath(path)
    if real not in seen:
        yield real


def _effective(mounts: Iterable[Mount]) -> list[Mount]:
    """Sorted, outer before inner, without hiding twice and without showing what is visible."""
    chosen: dict[str, Mount] = {}
    for mount in mounts:
        known = chosen.get(mount.place)
        if known is None or _RANK[mount.kind] >= _RANK[known.kind]:
            chosen[mount.place] = mount
    done: dict[str, Mount] = {}
    for place in sorted(chosen):
        mount = chosen[place]
        around = next((done[above] for above in _upwards(place)[1:] if above in done), None)
        empty = around is not None and around.kind in ("private", "hidden")
        if mount.kind == "shown":
            needed = empty
        elif mount.kind == "writable":
            needed = around is None or around.kind != "writable"
        elif mount.kind == "private":
            needed = True
        else:
            needed = not empty and os.path.lexists(place)
        if needed:
            done[place] = mount
    return list(done.values())


_RANK: Mapping[Kind, int] = {"private": 0, "shown": 1, "hidden": 2, "masked": 2, "writable": 3}


def _upwards(path: str) -> list[str]:
    """The path and all directories above it, innermost first."""
    places = [path]
    while path != "/":
        path = os.path.dirname(path)
        places.append(path)
    return places


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
