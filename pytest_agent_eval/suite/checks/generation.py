"""``generation``: seeds where they belong, each with one prompt."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pytest_agent_eval.suite.findings import Findings, Place, block, entries, text
from pytest_agent_eval.suite.known import Known
from pytest_agent_eval.suite.messages import nearest

__all__ = ["check_generation"]

_PROMPTS = ("builtin", "prompt_file", "prompt")


def check_generation(
    data: Mapping[str, Any], findings: Findings, known: Known, directory: str
) -> None:
    """Check what concerns more than one key of ``generation``."""
    generation = block(data, "generation")
    strategy = generation.get("strategy")
    strategy = "skill" if strategy is None else strategy
    seeds = generation.get("seeds")
    if strategy == "synthetic":
        if seeds is None or seeds == []:
            message = "strategy synthetic needs at least one seed {category, count, prompt}"
            findings.problem(("generation", "seeds"), message)
    elif strategy in ("skill", "from-traces"):
        if seeds:
            message = f"only for strategy synthetic, not {strategy}"
            findings.problem(("generation", "seeds"), message)
        if generation.get("context") is not None:
            message = f"context is ignored: only strategy synthetic uses it, not {strategy}"
            findings.warn(("generation", "context"), message)
    for index, seed in entries(generation, "seeds"):
        _check_seed(seed, index, findings, known, directory)


def _check_seed(
    seed: Mapping[str, Any], index: int, findings: Findings, known: Known, directory: str
) -> None:
    place: Place = ("generation", "seeds", index)
    label = f"seed {index + 1} ({text(seed, 'category') or 'no category'})"
    given = [key for key in _PROMPTS if seed.get(key) not in (None, "")]
    if len(given) != 1:
        found = f"{', '.join(given)} are set" if given else "none is set"
        message = f"{label}: needs exactly one of {', '.join(_PROMPTS)}; {found}"
        findings.problem(place, message)
    builtin = text(seed, "builtin")
    if builtin and builtin not in known.prompts:
        there = ", ".join(sorted(name for name in known.prompts if "/" in name))
        close = nearest(builtin, known.prompts)
        joint = " there are" if close else "; there are"
        message = f"no builtin prompt is named {builtin!r}{close}{joint} {there}"
        findings.problem((*place, "builtin"), message)
    _check_file(text(seed, "prompt_file"), directory, (*place, "prompt_file"), findings)


def _check_file(file: str, directory: str, place: Place, findings: Findings) -> None:
    if not file.strip() or "\0" in file or file.startswith(("/", "\\", "~")):
        return  # the model says what is wrong
    if ".." in file.replace("\\", "/").split("/") or not os.path.isdir(directory):
        return
    whole = os.path.realpath(os.path.join(directory, file))
    inside = os.path.join(os.path.realpath(directory), "")
    if not whole.startswith(inside):
        findings.problem(place, f"{file} leads out of the suite's directory")
    elif not os.path.isfile(whole):
        findings.problem(place, f"there is no file {file} in the suite's directory")
