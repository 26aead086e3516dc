"""The agents that are running, and that none of them outlives this process."""

from __future__ import annotations

import atexit
import os

from pytest_agent_eval.runners import process_tree
from pytest_agent_eval.runners.process_tree import ProcessTable, ProcessTree, end_trees
from pytest_agent_eval.runners.watchdog import Watchdog

__all__ = ["LiveTrees"]


class LiveTrees:
    """The trees of running processes; used from several threads.

    A thread that waits for an agent may be frozen by the interpreter's end without running its
    ``finally``, and then only ``atexit`` can still end the agent. Where not even that is left,
    after ``kill -9``, the watchdog does it. A forked child begins with none of its parent's.

    Attributes:
        roots: ids of their first processes.
    """

    def __init__(self) -> None:
        self._watchdog = Watchdog(process_tree.__file__)
        self._begin()
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self._end_all)

    def expect(self, marker: str, *, wrapped: bool = False) -> ProcessTree:
        """A process is about to be started; to be called before, so that no moment is missed.

        Args:
            marker: will be in its environment; empty when there is none.
            wrapped: as for ``ProcessTree``.
        """
        tree = ProcessTree(0, marker, wrapped=wrapped, table=self._table)
        self._trees[tree] = self._watchdog.expect(marker)
        return tree

    def started(self, tree: ProcessTree, root: int) -> None:
        """It was started, and ``root`` is its id."""
        tree.root = root
        self.roots.add(root)
        self._watchdog.started(self._trees[tree], root, tree.marker)

    def forget(self, tree: ProcessTree) -> None:
        """Nothing of it runs any more, or it could not be started."""
        self.roots.discard(tree.root)
        key = self._trees.pop(tree, None)
        if key is not None:
            self._watchdog.forget(key)

    def kill(self) -> None:
        """SIGKILL to all of them, until nothing is left."""
        end_trees(list(self._trees), grace=0)

    def problem(self) -> str:
        """Why nobody would end the agents if this process were killed; said once, then empty."""
        return self._watchdog.problem()

    def _begin(self) -> None:
        self._trees: dict[ProcessTree, int] = {}
        self.roots: set[int] = set()
        self._table = ProcessTable()
        self._watchdog.close()
        self._watchdog = Watchdog(process_tree.__file__)

    def _end_all(self) -> None:
        end_trees(list(self._trees))
        self._trees.clear()
