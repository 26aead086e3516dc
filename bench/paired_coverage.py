"""Simulates paired comparisons: how often intervals hold the truth and differences are shown.

Two runs over the same cases, with the real code of ``evidence.comparison``; 2,000 datasets a cell.
Each case (or group) has a difficulty that both runs share. Prints a Markdown table; exit status 1
where the mean coverage of a row is outside of 93 to 98 % or a cell is below 90 %, or where a
difference that is none is shown in more than 6 % of the datasets.

Usage: ``python bench/paired_coverage.py [DATASETS]``
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import NormalDist

from pytest_agent_eval.evidence.aggregate import CaseScore, JudgeInfo
from pytest_agent_eval.evidence.comparison import Comparison, compare_scores

DATASETS = 2_000
SIZES = (10, 20, 50, 200)
NORMAL = NormalDist()
Scores = dict[str, CaseScore]


@dataclass(frozen=True)
class Kind:
    """One row for each size: how two runs are made and what their true difference is."""

    name: str
    judge: JudgeInfo
    cells: tuple[tuple[float, float], ...]
    make: Callable[[Random, int, float, float], tuple[Scores, Scores]]
    truth: Callable[[float, float], float]


def booleans(
    trials: int, cluster: int, share: float = 0.5
) -> Callable[[Random, int, float, float], tuple[Scores, Scores]]:
    """Both runs pass a case if a shared difficulty and luck of their own leave them enough."""

    def make(rng: Random, n: int, old: float, new: float) -> tuple[Scores, Scores]:
        cuts = NORMAL.inv_cdf(old), NORMAL.inv_cdf(new)
        found: tuple[Scores, Scores] = ({}, {})
        difficulty = 0.0
        for index in range(n):
            if index % cluster == 0:
                difficulty = rng.gauss(0.0, share**0.5)
            for run, cut in zip(found, cuts, strict=True):
                passes = sum(
                    difficulty + rng.gauss(0.0, (1.0 - share) ** 0.5) < cut for _ in range(trials)
                )
                group = ("group", str(index // cluster))
                run[str(index)] = CaseScore("dev", group, passes=passes, booleans=trials)
        return found[1], found[0]

    return make


def grades(
    cluster: int, scale: bool
) -> Callable[[Random, int, float, float], tuple[Scores, Scores]]:
    """Grades 1 to 5, or numbers without a bound, around a mean that the case shares."""

    def make(rng: Random, n: int, old: float, new: float) -> tuple[Scores, Scores]:
        found: tuple[Scores, Scores] = ({}, {})
        level = 0.0
        for index in range(n):
            if index % cluster == 0:
                level = rng.gauss(0.0, 0.7)
            for run, mean in zip(found, (old, new), strict=True):
                value = mean + level + rng.gauss(0.0, 0.7)
                if scale:
                    value = min(5.0, max(1.0, round(value)))
                group = ("group", str(index // cluster))
                run[str(index)] = CaseScore("dev", group, total=value, numbers=1)
        return found[1], found[0]

    return make


def _grade(old: float, new: float) -> float:
    """The true difference of rounded and bounded grades."""

    def mean(center: float) -> float:
        spread = NormalDist(center, (0.49 + 0.49) ** 0.5)
        cuts = [spread.cdf(k + 0.5) for k in range(1, 5)]
        return 1.0 + sum(1.0 - cut for cut in cuts)

    return mean(new) - mean(old)


RATES = ((0.5, 0.5), (0.8, 0.8), (0.95, 0.95), (0.5, 0.6), (0.8, 0.6), (0.9, 0.95), (0.3, 0.7))
MEANS = ((3.0, 3.0), (4.0, 4.0), (3.0, 3.4), (4.2, 3.6))
KINDS = (
    Kind("pass or fail", JudgeInfo("j"), RATES, booleans(1, 1), lambda old, new: new - old),
    Kind("pairs", JudgeInfo("j"), RATES, booleans(1, 2), lambda old, new: new - old),
    Kind("groups of 5", JudgeInfo("j"), RATES, booleans(1, 5), lambda old, new: new - old),
    Kind("5 trials", JudgeInfo("j"), RATES, booleans(5, 1), lambda old, new: new - old),
    Kind("grades 1 to 5", JudgeInfo("j", score_range=(1, 5)), MEANS, grades(1, True), _grade),
    Kind("grades, pairs", JudgeInfo("j", score_range=(1, 5)), MEANS, grades(2, True), _grade),
    Kind("numbers", JudgeInfo("j"), MEANS, grades(1, False), lambda old, new: new - old),
)


def cell(kind: Kind, n: int, old: float, new: float, datasets: int) -> tuple[float, float, float]:
    """Share of datasets with an interval; of these, with the truth in it; with a difference."""
    rng = Random(f"{kind.name} {n} {old} {new}")
    truth = kind.truth(old, new)
    intervals = held = shown = 0
    for _ in range(datasets):
        found: Comparison = compare_scores(kind.judge, "all", *kind.make(rng, n, old, new))
        shown += found.outcome in ("better", "worse")
        if found.interval is not None:
            intervals += 1
            held += found.interval.low <= truth <= found.interval.high
    return intervals / datasets, held / intervals if intervals else 1.0, shown / datasets


def rows(datasets: int) -> Iterator[tuple[str, bool]]:
    """The table's lines, and whether each keeps the bounds."""
    yield (
        "| cases are | n | coverage, mean | least | shown, no difference | shown, the others |",
        True,
    )
    yield "| --- | --- | --- | --- | --- | --- |", True
    for kind in KINDS:
        for n in SIZES:
            found = [(o, w, *cell(kind, n, o, w, datasets)) for o, w in kind.cells]
            covered = [held for _, _, share, held, _ in found if share >= 0.5]
            false = max(shown for o, w, _, _, shown in found if o == w)
            true = [f"{shown:.2f}" for o, w, _, _, shown in found if o != w]
            if covered:
                mean = sum(covered) / len(covered)
                text = f"{100 * mean:.1f} % | {100 * min(covered):.1f} %"
                kept = 0.93 <= mean <= 0.98 and min(covered) >= 0.9
            else:
                text, kept = "none | none", True
            kept = kept and false <= 0.06
            line = f"| {kind.name} | {n} | {text} | {100 * false:.1f} % | {', '.join(true)} |"
            yield line, kept


def main() -> int:
    """Print the table."""
    datasets = int(sys.argv[1]) if len(sys.argv) > 1 else DATASETS
    broken = 0
    for line, kept in rows(datasets):
        print(line if kept else f"{line} <- outside of the bounds", flush=True)
        broken += not kept
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
