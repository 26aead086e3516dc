"""The ``agent-eval`` command: one subcommand a job.

Exit status: 0 fine, 1 findings or nothing produced, 2 usage or a file that cannot be read or
written. Running agents is pytest's job, so there is no ``agent-eval run``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pytest_agent_eval.errors import AgentEvalError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (AgentEvalError, OSError) as error:
        print(f"agent-eval {arguments.command}: {error}", file=sys.stderr)
        return 2


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "schema":
        from pytest_agent_eval.cli.schema import write_schema

        return write_schema(arguments.output)
    if arguments.command == "runs":
        from pytest_agent_eval.cli.runs import list_runs

        return list_runs(arguments.runs, as_json=arguments.json)
    if arguments.command == "show":
        from pytest_agent_eval.cli.show import show

        return show(
            arguments.run,
            arguments.case,
            trial=arguments.trial,
            directory=arguments.runs,
            as_json=arguments.json,
            files=arguments.files,
            reveal=arguments.reveal,
        )
    if arguments.command == "compare":
        from pytest_agent_eval.cli.compare import compare_runs

        return compare_runs(
            arguments.run,
            variants=arguments.variants,
            suite=arguments.suite,
            directory=arguments.runs,
            as_json=arguments.json,
            verbosity=arguments.verbose,
        )
    if arguments.command == "report":
        from pytest_agent_eval.cli.report import report

        return report(
            arguments.run, arguments.path, baseline=arguments.baseline, directory=arguments.runs
        )
    if arguments.command == "recordings":
        if arguments.action == "prune":
            from pytest_agent_eval.cli.prune import prune_recordings

            return prune_recordings(
                arguments.place, arguments.run, directory=arguments.runs, dry_run=arguments.dry_run
            )
        from pytest_agent_eval.cli.recordings import recording_stats

        return recording_stats(arguments.place, as_json=arguments.json)
    from pytest_agent_eval.cli.init import init

    return init(arguments.directory)


def _parser() -> argparse.ArgumentParser:
    from pytest_agent_eval import __version__

    parser = argparse.ArgumentParser(
        prog="agent-eval",
        description="Tools around the suites that pytest runs (pytest_agent_eval).",
    )
    parser.add_argument("--version", action="version", version=f"agent-eval {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    schema = commands.add_parser(
        "schema", help="write a JSON Schema of eval.yaml, for completion and checks in an editor"
    )
    schema.add_argument(
        "-o", "--output", metavar="FILE", help="write it there instead of standard output"
    )
    init = commands.add_parser(
        "init", help="write a commented starter suite with two cases that runs as it is"
    )
    init.add_argument(
        "directory", nargs="?", default="evals", help="where to write it (default: evals)"
    )
    where = argparse.ArgumentParser(add_help=False)
    where_help = "where runs are stored (default: .agent-eval/runs here or in a directory above)"
    where.add_argument("--runs", metavar="DIR", help=where_help)
    where.add_argument("--json", action="store_true", help="print JSON")
    commands.add_parser("runs", parents=[where], help="list the stored runs, newest first")
    show = commands.add_parser(
        "show", parents=[where], help="show a stored run, or one case of it with its verdicts"
    )
    show.add_argument(
        "run",
        nargs="?",
        default="latest",
        metavar="RUN",
        help="its name, the beginning of it, its path, or latest (the default)",
    )
    show.add_argument("case", nargs="?", metavar="CASE", help="a case, or case[variant]")
    show.add_argument("--trial", type=int, metavar="N", help="only this trial of the case")
    compare = commands.add_parser(
        "compare",
        parents=[where],
        help="compare stored runs with the first of them, or the variants of one run; exit status "
        "1 where a judge got worse",
    )
    compare.add_argument("run", nargs="+", metavar="RUN", help="as of show; the first is the old")
    compare.add_argument(
        "--variants",
        nargs="*",
        metavar="NAME",
        help="of one run its variants, or those named, with the first of them",
    )
    compare.add_argument("--suite", metavar="SUITE", help="only this one, by name or file")
    compare.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="each half too, and all names of cases",
    )
    report = commands.add_parser("report", help="write reports of a stored run: .html, .md ...")
    report.add_argument("run", metavar="RUN", help="as of show; latest is the newest")
    report.add_argument("path", nargs="+", metavar="PATH", help="where to write a report")
    report.add_argument("--baseline", metavar="RUN", help="a run to show beside it")
    report.add_argument("--runs", metavar="DIR", help=where_help)
    show.add_argument(
        "--reveal",
        action="store_true",
        help="show also the cases of a sealed holdout half, and record it in the ledger",
    )
    recordings = commands.add_parser(
        "recordings", help="the calls of models that are recorded beside a suite"
    )
    actions = recordings.add_subparsers(dest="action", metavar="ACTION", required=True)
    beside = argparse.ArgumentParser(add_help=False)
    beside.add_argument(
        "place",
        nargs="?",
        default=".",
        metavar="SUITE",
        help="a suite's file or its directory (default: the current one)",
    )
    stats = actions.add_parser("stats", parents=[beside], help="count them, by model")
    stats.add_argument("--json", action="store_true", help="print JSON")
    prune = actions.add_parser("prune", parents=[beside], help="delete those that no run used")
    prune.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="RUN",
        help="a run of all cases, whose recordings stay (default: latest); repeatable",
    )
    prune.add_argument("--runs", metavar="DIR", help=where_help)
    prune.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    show.add_argument("--files", action="store_true", help="list the files of each record")
    return parser
