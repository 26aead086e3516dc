"""Judges of the reply that are too long for eval.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def share_of_points(outputs: Mapping[str, Any]) -> tuple[float, str]:
    """The share of the reference's points that the reply makes, in [0, 1].

    A point is a list item of the case's reference file; wordings between bars are equally good.
    """
    reply = outputs["files"]["output/reply.md"].lower()
    lines = outputs["annotation_reference_content"].splitlines()
    points = [line[2:] for line in lines if line.startswith("- ")]
    missing = [
        point
        for point in points
        if not any(wording.strip().lower() in reply for wording in point.split("|"))
    ]
    share = 1 - len(missing) / len(points)
    return share, f"missing: {'; '.join(missing)}" if missing else f"all {len(points)} points"


def word_count(outputs: Mapping[str, Any], file: str) -> tuple[int, str]:
    """How many words a file of the output has."""
    words = len(outputs["files"][file].split())
    return words, f"{words} words"
