"""``agent-eval recordings``: what calls of models are recorded beside a suite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_agent_eval.cli.places import recordings_directory
from pytest_agent_eval.cli.terminal import print_lines, width
from pytest_agent_eval.llm.errors import ModelError
from pytest_agent_eval.llm.recordings import Recordings, read_recording
from pytest_agent_eval.llm.request import ModelReply
from pytest_agent_eval.reports.numbers import count, money, tokens
from pytest_agent_eval.reports.printable import hanging, one_line
from pytest_agent_eval.reports.terminal import Line

__all__ = ["recording_stats"]


@dataclass(frozen=True, slots=True)
class ModelRow:
    """The recorded calls of one model.

    Attributes:
        model: as the provider names it.
        calls: how many.
        input_tokens, output_tokens: sums; None where one is unknown.
        cost_usd: what they cost when they were made; None where one is unknown.
        first, last: dates, ISO 8601.
    """

    model: str
    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    first: str
    last: str

    @classmethod
    def of(cls, model: str, replies: Sequence[ModelReply]) -> ModelRow:
        """Sum over the replies of a model."""
        dates = sorted(reply.date for reply in replies)
        return cls(
            model,
            len(replies),
            _sum([reply.usage.input_tokens for reply in replies]),
            _sum([reply.usage.output_tokens for reply in replies]),
            _sum([reply.usage.cost_usd for reply in replies]),
            dates[0],
            dates[-1],
        )

    def to_dict(self) -> dict[str, Any]:
        """A mapping of JSON types."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def recording_stats(place: str, *, as_json: bool) -> int:
    """Print what is recorded beside a suite; 1 if a file there is no usable recording.

    Args:
        place: a suite's file, its directory, or the directory of the recordings.
        as_json: print JSON.

    Raises:
        SelectionError: nothing is recorded there.
    """
    recordings = Recordings(recordings_directory(place))
    replies: dict[str, list[ModelReply]] = {}
    problems, size = [], 0
    for path in recordings.all():
        try:
            reply = read_recording(path)
        except ModelError as error:
            problems.append(str(error))
            continue
        size += path.stat().st_size
        replies.setdefault(reply.model, []).append(reply)
    rows = [ModelRow.of(model, found) for model, found in sorted(replies.items())]
    if as_json:
        print(
            json.dumps(
                {
                    "directory": str(recordings.directory),
                    "bytes": size,
                    "models": [row.to_dict() for row in rows],
                    "problems": problems,
                },
                indent=2,
            )
        )
    else:
        print_lines(_lines(recordings.directory, size, rows, problems))
    return 1 if problems else 0


def _lines(
    directory: Path, size: int, rows: Sequence[ModelRow], problems: Sequence[str]
) -> list[Line]:
    calls = sum(row.calls for row in rows)
    lines = [Line(f"{one_line(str(directory))}: {count(calls, 'call')}, {size / 1000:,.0f} kB")]
    for row in rows:
        parts = [
            count(row.calls, "call"),
            f"{_known(row.input_tokens)} tokens in, {_known(row.output_tokens)} out",
            "cost unknown" if row.cost_usd is None else money(row.cost_usd),
            row.first[:10]
            if row.first[:10] == row.last[:10]
            else f"{row.first[:10]} to {row.last[:10]}",
        ]
        lines.append(Line(f"  {one_line(row.model)}: {', '.join(parts)}"))
    for problem in problems:
        lines += [Line(part, "red") for part in hanging(problem, width())]
    return lines


def _known(number: int | None) -> str:
    return "unknown" if number is None else tokens(number)


def _sum(numbers: Sequence[Any]) -> Any:
    return None if None in numbers else sum(numbers)
