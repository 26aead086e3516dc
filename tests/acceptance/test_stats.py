from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from pytest_agent_eval.evidence.intervals import (
    Interval,
    mcnemar_exact,
    min_all_pass_n,
    pass_at_k,
    pass_hat_k,
    t_interval,
    wilson,
)

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("stats_vectors.json").read_text("utf-8")
)
EXACT = 1e-9


@pytest.mark.parametrize("vector", VECTORS["wilson_95"], ids=str)
def test_wilson(vector: dict[str, Any]) -> None:
    interval = wilson(vector["k"], vector["n"])
    assert isinstance(interval, Interval)
    assert interval.low == pytest.approx(vector["low"], abs=EXACT)
    assert interval.high == pytest.approx(vector["high"], abs=EXACT)


@pytest.mark.parametrize("vector", VECTORS["t_interval_95"], ids=str)
def test_t_interval(vector: dict[str, Any]) -> None:
    interval = t_interval(vector["values"])
    assert isinstance(interval, Interval)
    assert statistics.fmean(vector["values"]) == pytest.approx(vector["mean"], abs=EXACT)
    assert interval.low == pytest.approx(vector["low"], abs=EXACT)
    assert interval.high == pytest.approx(vector["high"], abs=EXACT)


@pytest.mark.parametrize("vector", VECTORS["mcnemar_exact_p"], ids=str)
def test_mcnemar_exact(vector: dict[str, Any]) -> None:
    p = mcnemar_exact(vector["only_new_passes"], vector["only_old_passes"])
    assert p == pytest.approx(vector["p"], abs=EXACT)


@pytest.mark.parametrize("vector", VECTORS["pass_at_k"], ids=str)
def test_pass_at_k(vector: dict[str, Any]) -> None:
    value = pass_at_k(vector["n"], vector["c"], vector["k"])
    assert value == pytest.approx(vector["value"], abs=EXACT)


@pytest.mark.parametrize("vector", VECTORS["pass_hat_k"], ids=str)
def test_pass_hat_k(vector: dict[str, Any]) -> None:
    value = pass_hat_k(vector["n"], vector["c"], vector["k"])
    assert value == pytest.approx(vector["value"], abs=EXACT)


@pytest.mark.parametrize("vector", VECTORS["min_all_pass_n_for_lower_bound_above"], ids=str)
def test_smallest_number_of_cases_that_all_pass(vector: dict[str, Any]) -> None:
    assert min_all_pass_n(vector["edge"]) == vector["n"]
