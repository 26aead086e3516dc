"""How often the intervals of ``evidence.aggregate`` hold the true value: a simulation, at 95 %.

Each cell is 2,000 datasets, drawn from a known rate or mean, whose verdicts are combined by the
package as those of a run are. Bounds: on average over the rates (or the distributions of scores)
93 to 97 %, and 90 % in every cell. A cell in which most datasets get no interval is "none".

Rates: a case of a cluster passes with the cluster's own chance, which is beta distributed around
the rate with an intra-cluster correlation (ICC) of 0.3; or all cases of a cluster are copies of
each other (ICC 1). With 5 trials a case has its own chance, beta distributed around that of its
cluster with a correlation of 0.5 between trials.

Scores: a case takes the value that its cluster shares with the chance sqrt(ICC), else its own. They
are drawn from: ``middle``, 1 to 5 around 3; ``ceiling``, 1 to 5 with three in four at 5;
``two-point``, 1 or 5; ``open``, exponential, with no upper end (no scale is given for it).

``python bench/coverage.py`` prints tables in Markdown, and exits with 1 if a bound is missed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_agent_eval.evidence.aggregate import CaseScore, JudgeInfo, combine
from pytest_agent_eval.evidence.intervals import Interval

DATASETS = 2_000
SEED = 95
CASES = (10, 20, 50, 200)
CLUSTERS = (1, 2, 5)
RATES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
TRIALS = (1, 5)
BETWEEN_TRIALS = 0.5
SCORES = {
    "middle": ((1, 2, 3, 4, 5), (0.1, 0.2, 0.4, 0.2, 0.1)),
    "ceiling": ((1, 2, 3, 4, 5), (0.05, 0.05, 0.05, 0.1, 0.75)),
    "two-point": ((1, 5), (0.3, 0.7)),
    "open": None,
}
SCALE = (1.0, 5.0)
AVERAGE = (0.93, 0.97)
LEAST = 0.90

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """What one cell showed.

    Attributes:
        covered: share of the intervals that hold the true value; None if most datasets have none.
        shown: share of the datasets that have an interval.
        width: mean width of the intervals.
    """

    covered: float | None
    shown: float
    width: float


@dataclass(frozen=True)
class Row:
    """The cells of one line of a table, of which the average is bounded."""

    heading: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def average(self) -> float | None:
        """Mean coverage of the cells that have one."""
        covered = [cell.covered for cell in self.cells if cell.covered is not None]
        return statistics.fmean(covered) if covered else None

    @property
    def kept(self) -> bool:
        """Whether the bounds hold."""
        low, high = AVERAGE
        each = all(cell.covered is None or cell.covered >= LEAST for cell in self.cells)
        return each and (self.average is None or low <= self.average <= high)


def passes(
    rng: np.random.Generator, rate: float, cases: int, size: int, icc: float, trials: int
) -> Array:
    """Trials passed, of each case: datasets x clusters x cases of a cluster."""
    shape = (DATASETS, cases // size, size if 0.0 < icc < 1.0 else 1)
    chance = np.full(shape, rate)
    if 0.0 < icc < 1.0:
        chance[:] = _beta(rng, chance[:, :, :1], icc)
    if trials > 1:
        chance = _beta(rng, chance, BETWEEN_TRIALS)
    drawn = rng.binomial(trials, chance).astype(float)
    return np.broadcast_to(drawn, (*shape[:2], size))


def _beta(rng: np.random.Generator, mean: Array, correlation: float) -> Array:
    weight = (1.0 - correlation) / correlation
    # A chance that is 0 or 1 but for rounding has no distribution around it.
    inner = np.clip(mean, 1e-6, 1.0 - 1e-6)
    drawn = rng.beta(inner * weight, (1.0 - inner) * weight)
    return np.asarray(np.where((mean < 1e-6) | (mean > 1.0 - 1e-6), mean, drawn))


def scores(rng: np.random.Generator, name: str, cases: int, size: int, icc: float) -> Array:
    """The score of each case: datasets x clusters x cases of a cluster."""
    shape = (DATASETS, cases // size, size)

    def draw(*wanted: int) -> Array:
        values = SCORES[name]
        if values is None:
            return rng.exponential(1.0, wanted)
        return rng.choice(np.array(values[0], float), wanted, p=values[1])

    shared = rng.random(shape) < np.sqrt(icc)
    return np.asarray(np.where(shared, draw(*shape[:2], 1), draw(*shape)))


def true_mean(name: str) -> float:
    """What the scores of a distribution are on average."""
    values = SCORES[name]
    return 1.0 if values is None else float(np.dot(*values))


def measure(judge: JudgeInfo, data: Array, trials: int, truth: float) -> Cell:
    """Combine each dataset and look whether its interval holds the truth.

    Datasets that differ in the order of their clusters only, or in which case of a cluster has
    which value, are combined once.
    """
    sums = np.sort(np.round(data.sum(axis=2), 9), axis=1)
    _, first, times = np.unique(sums, axis=0, return_index=True, return_counts=True)
    covered = shown = 0
    width = 0.0
    for index, count in zip(first.tolist(), times.tolist(), strict=True):
        interval = interval_of(judge, data[index].tolist(), trials)
        if interval is None:
            continue
        shown += count
        width += count * (interval.high - interval.low)
        covered += count * (interval.low - 1e-9 <= truth <= interval.high + 1e-9)
    share = shown / DATASETS
    return Cell(covered / shown if share >= 0.5 else None, share, width / shown if shown else 0.0)


def interval_of(
    judge: JudgeInfo, clusters: Sequence[Sequence[float]], trials: int
) -> Interval | None:
    """The interval that a report would show: of passes, or of scores if ``trials`` is 0."""
    found = []
    for group, values in enumerate(clusters):
        cluster = ("group" if len(values) > 1 else "case", str(group))
        for value in values:
            found.append(
                CaseScore("dev", cluster, passes=int(value), booleans=trials)
                if trials
                else CaseScore("dev", cluster, total=value, numbers=1)
            )
    return combine(judge, "all", found).interval


def rate_rows(rng: np.random.Generator) -> list[Row]:
    """A row for each number of trials, cases and cluster size, and each correlation."""
    judge = JudgeInfo("judge", "check")
    rows = []
    for trials, cases, size, icc in settings(TRIALS):
        cells = tuple(
            measure(judge, passes(rng, rate, cases, size, icc, trials), trials, rate)
            for rate in RATES
        )
        rows.append(Row((str(trials), *_heading(cases, size, icc)), cells))
    return rows


def score_rows(rng: np.random.Generator, scale: tuple[float, float] | None) -> list[Row]:
    """A row for each number of cases and cluster size, and each correlation."""
    judge = JudgeInfo("judge", "check", score_range=scale)
    names = [name for name, values in SCORES.items() if scale is None or values is not None]
    rows = []
    for _, cases, size, icc in settings((0,)):
        cells = tuple(
            measure(judge, scores(rng, name, cases, size, icc), 0, true_mean(name))
            for name in names
        )
        rows.append(Row(_heading(cases, size, icc), cells))
    return rows


def settings(trials: Sequence[int]) -> list[tuple[int, int, int, float]]:
    """Trials, cases, size of the clusters and correlation within them."""
    return [
        (often, cases, size, icc)
        for often in trials
        for size in CLUSTERS
        for icc in ((0.0,) if size == 1 else (0.3, 1.0))
        for cases in CASES
    ]


def _heading(cases: int, size: int, icc: float) -> tuple[str, ...]:
    return str(cases), str(size), f"{icc:g}" if size > 1 else "", str(cases // size)


def table(first: Sequence[str], columns: Sequence[str], rows: Sequence[Row]) -> str:
    """The rows in Markdown; what misses a bound is bold."""
    names = [*first, *columns, "average"]
    lines = [names, ["---:"] * len(names)]
    for row in rows:
        cells = [_shown(cell.covered, LEAST, 1.0) for cell in row.cells]
        lines.append([*row.heading, *cells, _shown(row.average, *AVERAGE)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _shown(covered: float | None, low: float, high: float) -> str:
    if covered is None:
        return "none"
    text = f"{100 * covered:.1f}"
    return text if low <= covered <= high else f"**{text}**"


def main() -> int:
    """Print the tables and what they come to."""
    started = time.perf_counter()
    rng = np.random.default_rng(SEED)
    common = ("cases", "a cluster", "ICC", "clusters")
    named = {
        "Pass rates": (("trials", *common), [f"{rate:g}" for rate in RATES], rate_rows(rng)),
        "Means, scale known": (common, list(SCORES)[:-1], score_rows(rng, SCALE)),
        "Means, scale not known": (common, list(SCORES), score_rows(rng, None)),
    }
    missed = 0
    for title, (first, columns, rows) in named.items():
        print(f"### {title}\n\n{table(first, columns, rows)}\n")
        averages = [row.average for row in rows if row.average is not None]
        least = [cell.covered for row in rows for cell in row.cells if cell.covered is not None]
        print(
            f"Averages from {100 * min(averages):.1f} to {100 * max(averages):.1f} %, "
            f"least of {len(least)} cells {100 * min(least):.1f} %.\n"
        )
        missed += sum(not row.kept for row in rows)
    print(
        f"{DATASETS} datasets a cell, {time.perf_counter() - started:.0f} s: "
        + (f"{missed} rows MISS a bound" if missed else "all bounds hold")
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
