"""The ``agent-eval`` command: one subcommand a job.

Exit status: 0 fine, 1 findings or nothing produced, 2 usage or a file that cannot be read or
written. Running agents is pytest's job, so there is no ``agent-eval run``.
"""

from __future__ import annotations

import argparse
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
        if arguments.command == "schema":
            from pytest_agent_eval.cli.schema import write_schema

            return write_schema(arguments.output)
        from pytest_agent_eval.cli.init import init

        return init(arguments.directory)
    except (AgentEvalError, OSError) as error:
        print(f"agent-eval {arguments.command}: {error}", file=sys.stderr)
        return 2


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
    return parser
