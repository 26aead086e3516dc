"""How much of what a trial left is put into the file, so that the file stays one that opens.

All trials share :data:`TOTAL` bytes of text. One that did not pass gets :data:`WEIGHT` times as
much as one that did, as it is the one that is looked at. A small run has room for everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_agent_eval.evidence.outcomes import CaseOutcome

__all__ = ["IMAGES", "LARGEST_IMAGE", "TOTAL", "WEIGHT", "Purse", "Text", "allowances"]

TOTAL = 16 * 1024 * 1024
"""Bytes of text of all trials, before they are deflated; base64 of incompressible text would still
be a file below 30 MB."""
WEIGHT = 4
IMAGES = 4 * 1024 * 1024
"""Bytes of all images."""
LARGEST_IMAGE = 1024 * 1024
_LEAST, _MOST = 1024, 512 * 1024

Text = str | dict[str, Any]
"""A text, or what is left of one that was cut: ``{text, cut: bytes that are missing, see: where
all of it is, end: whether the end was kept}``."""


def allowances(cases: Sequence[CaseOutcome]) -> list[int]:
    """Bytes of text for each trial of each case, case by case; at least 1 KiB, at most 512 KiB."""
    weights = [1 if case.status == "passed" else WEIGHT for case in cases]
    whole = sum(
        weight * max(len(case.trials), 1) for weight, case in zip(weights, cases, strict=True)
    )
    unit = TOTAL / max(whole, 1)
    return [min(max(int(unit * weight), _LEAST), _MOST) for weight in weights]


class Purse:
    """The bytes that are left for one trial. Each text may take a share of what is left, so that
    one that is long leaves something for the others.
    """

    def __init__(self, size: int) -> None:
        self.left = size

    def share(self, part: float) -> int:
        """Bytes that a text may take."""
        return max(int(self.left * part), 0)

    def text(self, text: str, part: float, see: str = "", *, end: bool = False) -> Text:
        """A text, cut to its share.

        Args:
            text: all of it.
            part: of what is left, 0 to 1.
            see: path at which all of it is.
            end: keep the end and not the beginning.
        """
        most = self.share(part)
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if size <= most:
            self.left -= size
            return text
        data = text.encode("utf-8", "surrogatepass")
        kept = data[-most:] if end and most else data[:most]
        return self.piece(kept, len(data), see, end=end)

    def piece(self, data: bytes, size: int, see: str, *, end: bool = False) -> Text:
        """The text of a part that was read of a file.

        Args:
            data: what was read.
            size: bytes of the file.
            see: its path.
            end: ``data`` is its end.
        """
        self.left -= len(data)
        text = data.decode("utf-8", "replace")
        missing = size - len(data)
        if missing <= 0:
            return text
        # A character that was cut in two.
        text = text.lstrip("\ufffd") if end else text.rstrip("\ufffd")
        cut: dict[str, Any] = {"text": text, "cut": missing, "see": see}
        if end:
            cut["end"] = True
        return cut
