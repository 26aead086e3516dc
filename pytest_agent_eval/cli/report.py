"""``agent-eval report``: reports of a stored run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_agent_eval.cli.places import runs_directory
from pytest_agent_eval.cli.revealing import open_part
from pytest_agent_eval.cli.stored_summary import stored_summary
from pytest_agent_eval.evidence.sealing import sealed
from pytest_agent_eval.reports.handler import FinishedRun, make_handler
from pytest_agent_eval.runs.finding import find_run
from pytest_agent_eval.runs.stored import StoredRun

__all__ = ["report"]


def report(
    run: str, paths: Sequence[str], *, baseline: str | None = None, directory: str | None = None
) -> int:
    """Write reports of a stored run; of a sealed half they hold aggregates only.

    Args:
        run: what :func:`~pytest_agent_eval.runs.finding.find_run` takes.
        paths: of the reports; their suffixes say which.
        baseline: the run to show beside it, or None.
        directory: of the runs; None to look for it.

    Raises:
        RunDirectoryError: no such run, or it cannot be read.
        ReportError: no report has such a suffix, or it cannot be written.
    """
    handlers = [make_handler(Path(path)) for path in paths]
    runs = runs_directory(directory)
    every = StoredRun.open(find_run(runs, run))
    other = StoredRun.open(find_run(runs, baseline)) if baseline else None
    summary = stored_summary(every, other)
    stored = open_part(every, summary)
    finished = FinishedRun(
        stored.path.name, stored.path, stored.header, sealed(summary), stored.notes, other
    )
    for handler in handlers:
        for result in stored.results:
            handler.trial(result)
        print(handler.finished(finished))
    return 0
