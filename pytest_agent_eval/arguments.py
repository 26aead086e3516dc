"""Case directories on the command line: ``pytest evals/cases/case-001``.

A case directory holds data, so pytest must neither collect from it nor load a ``conftest.py``
that lies there. This has to be known before pytest looks at its arguments: each argument that
points into a dataset is replaced by the node id of the case, and datasets are kept out of
ordinary collection.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence

__all__ = ["Datasets"]


class Datasets:
    """Which directories are datasets, found by looking for suite files in a directory's parents.

    A directory is read once. YAML is imported only when a file with a suite's name is there.
    """

    def __init__(self, patterns: Sequence[str], root: str) -> None:
        self._patterns = tuple(patterns)
        self._root = os.path.realpath(root)
        self._known: dict[str, tuple[tuple[str, str], ...]] = {}

    def rewrite(self, argument: str, base: str) -> list[str]:
        """Replace an argument that points into a dataset; every other one stays as it is.

        Args:
            argument: a positional argument of pytest, relative to ``base``.
            base: the directory pytest was started in.

        Returns:
            The argument itself, or the node ids (``eval.yaml::case``) of the case in each suite
            that has this dataset, or the suites' files if the dataset itself was named.
        """
        if "::" in argument:
            return [argument]
        path = os.path.abspath(os.path.join(base, argument))
        if not os.path.lexists(path):
            return [argument]
        found = []
        for suite, dataset in self._claims(path):
            if path == dataset and not suite.startswith(path + os.sep):
                found.append(suite)
            elif path.startswith(dataset + os.sep):
                case = path[len(dataset) + 1 :].split(os.sep, 1)[0]
                if os.path.isdir(os.path.join(dataset, case)):
                    from pytest_agent_eval.cases.split import nfc

                    found.append(f"{suite}::{nfc(case)}")
        return [_relative(item, base) for item in found] or [argument]

    def rewrite_all(self, args: list[str], positional: list[str], base: str) -> None:
        """Rewrite the positional arguments in place, in both lists that pytest reads them from."""
        for argument in list(positional):
            nodes = self.rewrite(argument, base)
            if nodes != [argument]:
                for arguments in (args, positional):
                    index = arguments.index(argument)
                    arguments[index : index + 1] = nodes

    def claims_directory(self, path: str) -> bool:
        """Whether a directory is some suite's dataset directory, or lies in one."""
        # A dataset may be the suite's own directory: what holds the suite is not hidden.
        return any(
            (path == dataset or path.startswith(dataset + os.sep))
            and not suite.startswith(path + os.sep)
            for suite, dataset in self._claims(path)
        )

    def is_candidate(self, name: str) -> bool:
        """Whether a file's name matches ``agent_eval_files``."""
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self._patterns)

    def _claims(self, path: str) -> list[tuple[str, str]]:
        """(suite file, dataset directory) of every suite in the parents of ``path``.

        Looks beyond the root directory, which is a case's own directory when pytest is started
        there, but not beyond the checkout.
        """
        claims: list[tuple[str, str]] = []
        parent = os.path.dirname(path)
        while True:
            claims.extend(self._suites_in(parent))
            upper = os.path.dirname(parent)
            outside = not parent.startswith(self._root + os.sep)
            if upper == parent or (outside and os.path.lexists(os.path.join(parent, ".git"))):
                return claims
            parent = upper

    def _suites_in(self, directory: str) -> tuple[tuple[str, str], ...]:
        known = self._known.get(directory)
        if known is None:
            known = self._known[directory] = tuple(self._scan(directory))
        return known

    def _scan(self, directory: str) -> list[tuple[str, str]]:
        try:
            names = sorted(name for name in os.listdir(directory) if self.is_candidate(name))
        except OSError:
            return []
        found = []
        for name in names:
            file = os.path.join(directory, name)
            dataset = _dataset_of(file)
            if dataset:
                found.append((file, os.path.normpath(os.path.join(directory, dataset))))
        return found


def _dataset_of(file: str) -> str:
    """``dataset.path`` of a suite file that can be read; empty for every other file."""
    from pathlib import Path

    from pytest_agent_eval.documents import read_yaml
    from pytest_agent_eval.errors import DocumentError

    try:
        data = read_yaml(Path(file)).data
    except DocumentError:
        return ""  # said when the file itself is collected
    if not isinstance(data, dict) or not isinstance(data.get("dataset"), dict):
        return ""
    if not any(key in data for key in ("execution", "skill", "runner", "judges")):
        return ""
    path = data["dataset"].get("path")
    return path if isinstance(path, str) else ""


def _relative(node: str, base: str) -> str:
    """Shorter to read in messages; only for paths below the base."""
    return node[len(base) + 1 :] if node.startswith(base + os.sep) else node
