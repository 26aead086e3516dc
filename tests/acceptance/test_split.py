"""The split against vectors that were computed apart from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xxhash

from pytest_agent_eval.cases import Split, position

VECTORS = json.loads(Path(__file__).with_name("split_vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["salt"] + vector["unit"])
def test_vectors(vector: dict[str, Any]) -> None:
    unit, salt = vector["unit"], vector["salt"]
    assert position(unit, salt) == vector["position"]
    assert int(vector["digest"], 16) / 2**64 == vector["position"]
    assert Split(0.5, salt=salt).half(unit) == vector["split_at_0.5"]
    assert Split(0.2, salt=salt).half(unit) == vector["split_at_0.2"]


def test_the_digest_is_xxh3_of_the_normalised_text() -> None:
    assert xxhash.xxh3_64_hexdigest("na\u00efve".encode()) == "ccccbc10c2277808"
    assert position("nai\u0308ve") == position("na\u00efve")
