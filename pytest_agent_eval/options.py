"""Command-line and ini options, read once into one frozen :class:`Options`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import pytest

__all__ = ["Options", "add_options", "read_options"]

GateMode = Literal["auto", "always", "never"]
LlmMode = Literal["auto", "live", "record", "replay"]
_PROGRESS = ("auto", "off")
DEFAULT_FILES = "eval.yaml *.eval.yaml"


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for.

    Attributes:
        run: suites run also when they are not named on the command line.
        collect: False with ``--no-agent-eval``: nothing is collected.
        files: globs on file names that may be suites.
        split: ``dev``, ``holdout``, ``all``, or None when not given.
        tags: ``KEY`` or ``KEY=VALUE``, all must match.
        condition: source of ``--agent-eval-if``, or empty.
        limit: first N cases per suite and split, or None.
        parallelism: trials at once, or None for the suite's own.
        judge_parallelism: trials that are judged at once.
        max_cost: US dollars after which no more trials start, or None.
        variants: names of the variants that run; empty for all.
        resume: the run to go on with, as the user named it; None for a new one.
        rescore: the run whose records are judged again, or None.
        baseline: the run that this one is compared with, as the user named it, or None.
        dask: address of a Dask scheduler on whose workers the agents run; empty for here.
        runs: directory of run directories (absolute).
        gate: ``auto``, ``always`` (also for a partial selection) or ``never``.
        subtests: report each verdict as a subtest besides.
        model: replaces ``models.skill``; empty when not given.
        max_output: cap of each of stdout and stderr, bytes.
        progress: show the status line, where there is a terminal for it.
        judge_dirs: directories of the project's own builtin judges (absolute).
        llm: how models are asked: ``auto``, ``live``, ``record`` or ``replay``.
        reveal: show the cases of sealed holdout halves, and record that.
        reports: files to write reports to (absolute); their suffixes say which.
    """

    run: bool
    collect: bool
    files: tuple[str, ...]
    split: str | None
    tags: tuple[str, ...]
    condition: str
    limit: int | None
    parallelism: int | None
    judge_parallelism: int
    max_cost: float | None
    variants: tuple[str, ...]
    resume: str | None
    rescore: str | None
    baseline: str | None
    dask: str
    runs: str
    gate: GateMode
    subtests: bool
    model: str
    max_output: int
    progress: bool
    judge_dirs: tuple[str, ...]
    llm: LlmMode
    reports: tuple[str, ...]
    reveal: bool

    def to_dict(self) -> dict[str, Any]:
        """The options that decide what runs and how, without paths of this machine."""
        names = [
            "split",
            "tags",
            "condition",
            "limit",
            "parallelism",
            "gate",
            "model",
            "variants",
            "max_cost",
            "reveal",
        ]
        return {name: getattr(self, name) for name in names if getattr(self, name)}


def add_options(parser: pytest.Parser) -> None:
    """Declare every option; nothing is read or checked here."""
    group = parser.getgroup("agent-eval", "evaluation of AI agents (pytest_agent_eval)")
    add = group.addoption
    add(
        "--agent-eval",
        action="store_true",
        default=None,
        dest="agent_eval_run",
        help="run the suites that are collected; without it a suite runs only if its file, a case "
        "directory or a node id of it is named (ini: agent_eval)",
    )
    add(
        "--no-agent-eval",
        action="store_true",
        default=False,
        dest="agent_eval_off",
        help="collect no suites at all",
    )
    add(
        "--agent-eval-split",
        choices=("dev", "holdout", "all"),
        default=None,
        help="run this half of the cases",
    )
    add(
        "--agent-eval-reveal",
        action="store_true",
        default=False,
        help="show the cases of a sealed holdout half (dataset.split.sealed); the ledger beside "
        "the dataset records that they were seen",
    )
    add(
        "--agent-eval-tag",
        action="append",
        default=[],
        metavar="KEY[=VALUE]",
        help="run cases with this tag; repeatable, all must match",
    )
    add(
        "--agent-eval-if",
        default="",
        metavar="EXPR",
        help="run cases for which this condition over annotations, input, name, split and tags "
        "is true",
    )
    add(
        "--agent-eval-limit",
        type=_positive("--agent-eval-limit"),
        default=None,
        metavar="N",
        help="run the first N cases of each suite and split",
    )
    add(
        "--agent-eval-parallelism",
        type=_positive("--agent-eval-parallelism"),
        default=None,
        metavar="N",
        help="trials at once (default: execution.parallelism of the suite)",
    )
    add(
        "--agent-eval-llm",
        choices=("auto", "live", "record", "replay"),
        default="auto",
        help="how models are asked: auto (from recordings, and those that are missing live; with "
        "CI set from recordings only), live (no recording is read or made), record (all anew), "
        "replay (from recordings only)",
    )
    add(
        "--agent-eval-judge-parallelism",
        type=_positive("--agent-eval-judge-parallelism"),
        default=8,
        metavar="N",
        help="trials judged at once (default: 8)",
    )
    add(
        "--agent-eval-variant",
        action="append",
        default=[],
        metavar="NAME",
        help="run this variant of the suites; repeatable",
    )
    add(
        "--agent-eval-max-cost",
        type=_amount("--agent-eval-max-cost"),
        default=None,
        metavar="USD",
        help="start no more trials once the agents of this session have cost this much",
    )
    add(
        "--agent-eval-resume",
        nargs="?",
        const="latest",
        default=None,
        metavar="RUN",
        help="go on with a stored run (default: the latest): trials that have a result and have "
        "not changed are not carried out again",
    )
    add(
        "--agent-eval-rescore",
        nargs="?",
        const="latest",
        default=None,
        metavar="RUN",
        help="run no agent: let the judges speak about the records of a stored run (default: the "
        "latest)",
    )
    add(
        "--agent-eval-baseline",
        default=None,
        metavar="RUN",
        help="compare with this stored run (its name, the beginning of it, a path, or latest); the "
        "judge pairwise asks which of the two did a case better",
    )
    add(
        "--agent-eval-dask",
        default="",
        metavar="ADDRESS",
        help="let the agents work on the Dask cluster of this scheduler (needs the extra dask)",
    )
    add(
        "--agent-eval-runs",
        default=None,
        metavar="DIR",
        help="where run directories are written (default: ROOTDIR/.agent-eval/runs)",
    )
    add(
        "--agent-eval-report",
        action="append",
        default=[],
        metavar="PATH",
        help="write a report of the run to this file, whose suffix says which: .html, .md, "
        ".json or .csv; repeatable",
    )
    add(
        "--agent-eval-gate",
        choices=("auto", "always", "never"),
        default="auto",
        help="when gates decide: auto = unless the selection is partial (default), always, never",
    )
    add(
        "--agent-eval-subtests",
        action="store_true",
        default=None,
        help="report each verdict as a subtest besides the case (ini: agent_eval_subtests)",
    )
    add(
        "--agent-eval-model",
        default="",
        metavar="NAME",
        help="the agent's model, instead of models.skill",
    )
    add(
        "--agent-eval-max-output",
        type=_positive("--agent-eval-max-output"),
        default=16,
        metavar="MIB",
        help="cap of each of an agent's stdout and stderr, in MiB (default: 16)",
    )
    add(
        "--agent-eval-progress",
        choices=_PROGRESS,
        default=None,
        help="the status line: auto = on a terminal (default), off (ini: agent_eval_progress)",
    )
    parser.addini("agent_eval", "run suites without --agent-eval", type="bool", default=False)
    parser.addini(
        "agent_eval_files",
        f"globs on the names of files that may be suites (default: {DEFAULT_FILES})",
        type="args",
        default=DEFAULT_FILES.split(),
    )
    parser.addini(
        "agent_eval_subtests",
        "report each verdict as a subtest besides the case",
        type="bool",
        default=False,
    )
    parser.addini(
        "agent_eval_progress", "the status line: auto (default) or off", default=_PROGRESS[0]
    )
    parser.addini(
        "agent_eval_judge_dirs",
        "directories with builtin judges of this project (category/name.py)",
        type="paths",
        default=[],
    )


def read_options(config: pytest.Config) -> Options:
    """Read and check all options.

    Raises:
        pytest.UsageError: a value that does not fit.
    """
    option = config.option
    run = option.agent_eval_run
    subtests = option.agent_eval_subtests
    runs = option.agent_eval_runs
    base = str(config.invocation_params.dir) if runs else str(config.rootpath)
    if option.agent_eval_resume is not None and option.agent_eval_rescore is not None:
        raise pytest.UsageError("--agent-eval-resume and --agent-eval-rescore exclude each other")
    if option.agent_eval_dask and getattr(option, "numprocesses", None):
        raise pytest.UsageError(
            "--agent-eval-dask: the cluster runs agents side by side; without -n"
        )
    progress = option.agent_eval_progress or config.getini("agent_eval_progress")
    if progress not in _PROGRESS:
        raise pytest.UsageError(f"agent_eval_progress = {progress}: needs auto or off")
    for tag in option.agent_eval_tag:
        if not tag.partition("=")[0].strip():
            raise pytest.UsageError(f"--agent-eval-tag {tag!r}: needs KEY or KEY=VALUE")
    return Options(
        run=bool(config.getini("agent_eval")) if run is None else run,
        collect=not option.agent_eval_off,
        files=tuple(config.getini("agent_eval_files")),
        split=option.agent_eval_split,
        tags=tuple(option.agent_eval_tag),
        condition=option.agent_eval_if.strip(),
        limit=option.agent_eval_limit,
        parallelism=option.agent_eval_parallelism,
        judge_parallelism=option.agent_eval_judge_parallelism,
        max_cost=option.agent_eval_max_cost,
        variants=tuple(option.agent_eval_variant),
        resume=option.agent_eval_resume,
        rescore=option.agent_eval_rescore,
        baseline=option.agent_eval_baseline,
        dask=option.agent_eval_dask,
        runs=os.path.abspath(os.path.join(base, runs or ".agent-eval/runs")),
        gate=cast(GateMode, option.agent_eval_gate),
        subtests=bool(config.getini("agent_eval_subtests")) if subtests is None else subtests,
        model=option.agent_eval_model,
        max_output=option.agent_eval_max_output * 1024 * 1024,
        progress=progress == "auto",
        judge_dirs=tuple(str(path) for path in config.getini("agent_eval_judge_dirs")),
        llm=cast("LlmMode", config.getoption("--agent-eval-llm")),
        reports=_reports(option.agent_eval_report, str(config.invocation_params.dir)),
        reveal=option.agent_eval_reveal,
    )


def _reports(given: Sequence[str], base: str) -> tuple[str, ...]:
    """The files of the reports that were asked for, each once (absolute).

    Raises:
        pytest.UsageError: there is no report of such a suffix.
    """
    if not given:
        return ()
    from pathlib import Path

    from pytest_agent_eval.errors import ReportError
    from pytest_agent_eval.reports.handler import check_path

    paths = dict.fromkeys(os.path.abspath(os.path.join(base, path)) for path in given)
    for path in paths:
        try:
            check_path(Path(path))
        except ReportError as error:
            raise pytest.UsageError(f"--agent-eval-report: {error}") from None
    return tuple(paths)


class _positive:  # noqa: N801 -- reads as a function at its only use
    """An argparse type: an integer of at least 1."""

    def __init__(self, option: str) -> None:
        self.option = option

    def __call__(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = 0
        if value < 1:
            raise pytest.UsageError(f"{self.option}: needs a whole number above 0, not {text!r}")
        return value


class _amount:  # noqa: N801 -- reads as a function at its only use
    """An argparse type: a number that is not negative."""

    def __init__(self, option: str) -> None:
        self.option = option

    def __call__(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise pytest.UsageError(f"{self.option}: needs an amount in US dollars, not {text!r}")
        return value
