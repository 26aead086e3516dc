"""The HTML file: the page's own style sheet and scripts, and the data, which is text in it.

No byte that an agent, a judge or a case had a say in is markup. What the first views need is a
JSON island in which ``<``, ``>`` and ``&`` are escaped; what the pages of cases need is deflated
and written as base64 in chunks that are unpacked when one is opened. The scripts make all elements
themselves and put text into them as text; the page's content security policy allows these scripts
by their hash, no other one, and no request to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pytest_agent_eval.evidence.outcomes import CaseOutcome
from pytest_agent_eval.reports.handler import FinishedRun
from pytest_agent_eval.reports.html.budget import IMAGES, allowances
from pytest_agent_eval.reports.html.case_files import CaseFiles
from pytest_agent_eval.reports.html.detail import Details
from pytest_agent_eval.reports.html.overview import overview
from pytest_agent_eval.reports.html.stored import Images
from pytest_agent_eval.reports.html.table import row
from pytest_agent_eval.runs.lines import sanitised

__all__ = ["SCRIPTS", "document", "island", "packed"]

SCRIPTS = (
    "text.js",
    "data.js",
    "address.js",
    "plots.js",
    "difference.js",
    "filters.js",
    "overview.js",
    "table.js",
    "case.js",
    "main.js",
)
"""In this order, in one function: what one defines the others see, and nobody else does."""

_CHUNK = 256 * 1024
"""Bytes of text before deflating, at most: small enough to be unpacked between two frames."""

_LEVEL = 4
"""Of deflating: twice as fast as 6, and a tenth larger."""


def document(run: FinishedRun, place: Path) -> str:
    """The file's text.

    Args:
        run: only its summary's cases are shown, and only their records are read.
        place: the directory the file will be in (absolute): paths are relative to it.
    """
    data = overview(run)
    every = [(n, suite, c) for n, suite in enumerate(run.summary.suites) for c in suite.cases]
    data["cases"] = [row(run, number, suite, case) for number, suite, case in every]
    chunks = [*_chunks(run, place, [(number, case) for number, _, case in every])]
    data["chunks"] = [first for first, _ in chunks]
    page = _page()
    return page.format(
        data=island(data),
        chunks="\n".join(
            f'<script type="text/plain" id="chunk-{number}">{text}</script>'
            for number, (_, text) in enumerate(chunks)
        ),
    )


def island(value: Any) -> str:
    """JSON that is safe within a script element, and pure ASCII."""
    text = _json(value, ascii_only=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def packed(values: Sequence[Any]) -> str:
    """JSON, deflated (zlib, RFC 1950), as base64."""
    try:
        data = _json(values, ascii_only=False).encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only have as an escape
        data = _json(values, ascii_only=True).encode()
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode("ascii")


def _json(value: Any, *, ascii_only: bool) -> str:
    try:
        return json.dumps(
            value, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"), default=str
        )
    except ValueError:  # a number that is not finite
        return json.dumps(sanitised(value), ensure_ascii=ascii_only, separators=(",", ":"))


def _chunks(
    run: FinishedRun, place: Path, cases: Sequence[tuple[int, CaseOutcome]]
) -> Iterator[tuple[int, str]]:
    """The number of its first case, and the text, of each chunk."""
    images = Images(IMAGES)
    suites = run.summary.suites
    makers = [Details(run, CaseFiles(suite.info, run.directory), images, place) for suite in suites]
    waiting: list[Any] = []
    first = size = 0
    allowed = allowances([case for _, case in cases])
    for index, ((number, case), allowance) in enumerate(zip(cases, allowed, strict=True)):
        waiting.append(makers[number].case(case, allowance))
        size += allowance
        if size >= _CHUNK:
            yield first, packed(waiting)
            waiting, first, size = [], index + 1, 0
    if waiting:
        yield first, packed(waiting)


@cache
def _page() -> str:
    """The page without its data, as a format string with the fields ``data`` and ``chunks``."""
    place = files(__package__) / "page"
    style = (place / "page.css").read_text("utf-8")
    parts = [(place / name).read_text("utf-8") for name in SCRIPTS]
    script = "(() => {\n'use strict';\n" + "\n".join(parts) + "})();\n"
    text = (place / "page.html").read_text("utf-8")
    for name, content in (
        ("POLICY_STYLE", _hash(style)),
        ("POLICY_SCRIPT", _hash(script)),
        ("STYLE", style),
        ("SCRIPT", script),
    ):
        text = text.replace(f"%{name}%", content)
    text = text.replace("{", "{{").replace("}", "}}")
    return text.replace("%DATA%", "{data}").replace("%CHUNKS%", "{chunks}")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
