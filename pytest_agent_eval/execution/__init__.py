"""Execution: from a case to the result of one trial.

:mod:`.trial` is the way through it: workspace, runner, collection, record, judges, outcome.
"""

from __future__ import annotations
