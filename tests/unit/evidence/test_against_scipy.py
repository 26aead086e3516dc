"""The same methods as in scipy and statsmodels, which only tests need."""

from __future__ import annotations

import random
import statistics

import pytest

from pytest_agent_eval.evidence.bootstrap import bca
from pytest_agent_eval.evidence.intervals import (
    Interval,
    NoInterval,
    mcnemar_exact,
    t_interval,
    wilson,
)
from pytest_agent_eval.evidence.spread import spread
from pytest_agent_eval.evidence.student import regularized_beta, t_quantile


def interval_of(found: Interval | NoInterval) -> Interval:
    assert isinstance(found, Interval)
    return found


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson(confidence: float) -> None:
    from scipy.stats import binomtest
    from statsmodels.stats.proportion import proportion_confint

    for n in (1, 2, 7, 20, 35, 200, 5000):
        for k in sorted({0, 1, n // 3, n // 2, n - 1, n}):
            found = interval_of(wilson(k, n, confidence))
            theirs = binomtest(k, n).proportion_ci(confidence, method="wilson")
            assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
            theirs = proportion_confint(k, n, alpha=1 - confidence, method="wilson")
            assert (found.low, found.high) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_students_t(confidence: float) -> None:
    from scipy import special, stats

    rng = random.Random(4)
    for n in (2, 3, 10, 49, 400):
        values = [rng.gauss(3, 1) for _ in range(n)]
        found = interval_of(t_interval(values, confidence))
        theirs = stats.t.interval(
            confidence, n - 1, loc=statistics.fmean(values), scale=stats.sem(values)
        )
        assert (found.low, found.high) == pytest.approx(theirs, rel=1e-9)
        assert t_quantile(confidence, n) == pytest.approx(
            stats.t.ppf(0.5 + confidence / 2, n), rel=1e-11
        )
        assert regularized_beta(confidence, n, 2.5) == pytest.approx(
            special.betainc(n, 2.5, confidence), rel=1e-9
        )


def test_mcnemar() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    for new, old in ((0, 0), (1, 0), (6, 0), (7, 1), (10, 3), (25, 25), (40, 17)):
        theirs = mcnemar([[5, new], [old, 5]], exact=True).pvalue if new + old else 1.0
        assert mcnemar_exact(new, old) == pytest.approx(theirs)


def test_the_variance_of_a_mean_in_clusters() -> None:
    import numpy as np
    import statsmodels.api as sm

    rng = random.Random(8)
    sizes = [rng.randint(1, 4) for _ in range(30)]
    groups = [index for index, size in enumerate(sizes) for _ in range(size)]
    values = [rng.random() + (group % 3) for group in groups]
    sums = [
        sum(v for v, g in zip(values, groups, strict=True) if g == index)
        for index in range(len(sizes))
    ]
    found = spread(list(zip(sums, sizes, strict=True)))
    theirs = sm.OLS(np.array(values), np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(groups)}
    )
    n = len(values)  # their small-sample factor is G / (G - 1) * (n - 1) / (n - 1)
    assert n == sum(sizes)
    assert found.mean == pytest.approx(theirs.params[0])
    assert found.error == pytest.approx(theirs.bse[0])


@pytest.mark.parametrize("name", ["scores of 1 to 5", "exponential", "normal"])
def test_the_bootstrap(name: str) -> None:
    import numpy as np
    from scipy.stats import bootstrap, skew

    rng = np.random.default_rng(12)
    values = {
        "scores of 1 to 5": rng.choice([1.0, 2, 3, 4, 5], 120, p=[0.05, 0.05, 0.1, 0.2, 0.6]),
        "exponential": rng.exponential(1.0, 60),
        "normal": rng.normal(0.0, 1.0, 50),
    }[name]
    found = interval_of(bca([(float(value), 1) for value in values]))
    theirs = bootstrap(
        (values,), np.mean, n_resamples=10_000, batch=2_000, method="BCa", rng=rng
    ).confidence_interval
    # An end of 10,000 resamples is good to about 4 % of a standard error, its constants to 3 %.
    error = float(values.std(ddof=1)) / len(values) ** 0.5
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.12 * error)
    theirs_skewness = skew(values)
    assert spread([(float(v), 1) for v in values]).skewness == pytest.approx(theirs_skewness)
