"""The output is what the case expects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pytest_agent_eval.documents import parse_yaml
from pytest_agent_eval.errors import DocumentError
from pytest_agent_eval.judges.content import content_of, place_in
from pytest_agent_eval.judges.difference import Difference, Rules, differences, show
from pytest_agent_eval.judges.verdict import shorten
from pytest_agent_eval.results import Verdict

_IN_RATIONALE = 5
_IN_DETAIL = 50
_FENCE = re.compile(r"\s*```[\w+-]*\n(.*?)\n?```\s*", re.DOTALL)


def judge(
    outputs: Mapping[str, Any],
    expected: str = "annotations.expected_output",
    file: str | None = None,
    path: str | None = None,
    field: str | list[str] | None = None,
    tolerance: float = 1e-9,
    normalize: bool = False,
) -> Verdict:
    """Pass if the output equals ``annotations.expected_output``.

    An expected text is compared with the output's text, but for a line break at its end. Anything
    else is compared with the output read as JSON (as YAML for a ``.yaml`` file).

    Args:
        outputs: the record.
        expected: where the expectation is, a dotted place in the record.
        file: the output file to look at (``path`` says the same); default: the main content.
        path: see ``file``.
        field: one or more dotted places; only these are compared, on both sides.
        tolerance: numbers that differ by at most this are equal.
        normalize: ignore letter case, amount of white space and Unicode form of texts.

    Raises:
        ValueError: the case expects nothing at that place.
    """
    wanted = place_in(outputs, expected)
    content = content_of(outputs, file if file is not None else path)
    if content.fault:
        return _failed([Difference("", f"{content.fault}; expected {show(wanted)}")])
    rules = Rules(tolerance, normalize)
    actual: Any = content.text
    if isinstance(wanted, str) and field is None:
        found = differences(_chomp(wanted), _chomp(actual), rules)
    else:
        try:
            actual = _parse(content.text, content.name)
        except ValueError as error:
            said = f"{content.name} is no {error}; it begins {show(content.text.strip())}"
            return _failed([Difference("", said)])
        found = _compare(wanted, actual, field, rules)
    faults = list(islice(found, _IN_DETAIL + 1))
    return _failed(faults) if faults else Verdict("", True, f"{content.name} is as expected")


def validate(**arguments: Any) -> Iterator[tuple[str, str]]:
    """Arguments that contradict each other, as (argument, message)."""
    if arguments.get("file") is not None and arguments.get("path") is not None:
        yield "path", "path and file say the same; set one of them"
    if arguments.get("tolerance", 0) < 0:
        yield "tolerance", "tolerance must not be negative"


def _compare(
    wanted: Any, actual: Any, field: str | list[str] | None, rules: Rules
) -> Iterator[Difference]:
    if field is None:
        yield from differences(wanted, actual, rules)
        return
    for place in [field] if isinstance(field, str) else field:
        # An expectation that is no mapping is the value of the one field itself.
        one = place_in(wanted, place) if isinstance(wanted, Mapping) else wanted
        try:
            other = place_in(actual if isinstance(actual, Mapping) else {}, place)
        except ValueError:
            yield Difference(place, f"expected {show(one)}, but the key is missing")
        else:
            yield from differences(one, other, rules, place)


def _parse(text: str, name: str) -> Any:
    """The data in a text; a fence around all of it is taken off.

    Raises:
        ValueError: it is none; the message is ``JSON (why)``.
    """
    fenced = _FENCE.fullmatch(text)
    if fenced is not None:
        text = fenced.group(1)
    if name.endswith((".yaml", ".yml")):
        try:
            return parse_yaml(text).data
        except DocumentError as error:
            raise ValueError(f"YAML ({error.problems[0].message})") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"JSON ({error.msg}, line {error.lineno})") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"JSON that can be read ({shorten(str(error), 100)})") from None


def _chomp(text: str) -> str:
    return text.replace("\r\n", "\n").removesuffix("\n")


def _failed(faults: list[Difference]) -> Verdict:
    rationale = "; ".join(str(fault) for fault in faults[:_IN_RATIONALE])
    more = len(faults) - _IN_RATIONALE
    if more > 0:
        count = f"more than {_IN_DETAIL}" if len(faults) > _IN_DETAIL else f"{len(faults)}"
        rationale += f"; {count} differences in all"
    detail = "\n".join(str(fault) for fault in faults[:_IN_DETAIL]) if more > 0 else ""
    return Verdict("", False, rationale, detail=detail)
