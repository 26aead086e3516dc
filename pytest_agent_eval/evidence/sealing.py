"""What may be shown of a run whose holdout half is sealed: aggregates, and no case of it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from pytest_agent_eval.evidence.comparison import Comparison
from pytest_agent_eval.evidence.summary import SuiteInfo, SuiteSummary, Summary
from pytest_agent_eval.results import TrialResult, Usage

__all__ = ["anonymous", "is_open", "sealed", "sealed_header"]


def is_open(split: str, sealed: bool) -> bool:
    """Whether a case of this split may be shown. One that could not be read has no known split
    (an empty one), so that it may be of the sealed half.
    """
    return not sealed or split == "dev"


def sealed(summary: Summary) -> Summary:
    """The summary without the cases of sealed halves, and without their names in any list.

    Aggregates, gates, counts and costs stay as they are: they are of all cases. Called before
    anything is reported or written, and harmless where nothing is sealed.
    """
    return replace(summary, suites=tuple(map(_sealed_suite, summary.suites)))


def _sealed_suite(suite: SuiteSummary) -> SuiteSummary:
    if not suite.info.sealed:
        return suite
    cases = tuple(case for case in suite.cases if is_open(case.split, True))
    names = {trial.case for case in cases for trial in case.trials}
    calibrations = tuple(
        replace(one, disagreeing=tuple(name for name in one.disagreeing if name in names))
        for one in suite.calibrations
    )
    hidden = {trial.case for case in suite.cases for trial in case.trials} - names
    compared = _sealed_comparisons(suite, {case.label for case in cases}, hidden)
    info = _sealed_info(suite.info, names)
    return replace(suite, info=info, cases=cases, calibrations=calibrations, **compared)


def _sealed_comparisons(
    suite: SuiteSummary, labels: Collection[str], hidden: Collection[str]
) -> dict[str, Any]:
    """What a comparison with a baseline says, where there is one: its lists of cases with the
    ``labels`` only, and a sentence that names a ``hidden`` case cut before what it lists.
    """

    def shown(one: Comparison) -> Comparison:
        kept: dict[str, Any] = {
            key: tuple(label for label in getattr(one, key) if label in labels)
            for key in ("improved", "regressed", "only_new", "only_old")
        }
        return replace(one, **kept)

    return {
        "comparisons": tuple(map(shown, suite.comparisons)),
        "changes": tuple(
            text.partition(": ")[0] if any(case in text for case in hidden) else text
            for text in suite.changes
        ),
    }


def _sealed_info(info: SuiteInfo, names: Collection[str]) -> SuiteInfo:
    """Without human labels, examples and pairs of other cases than those named."""
    judges = tuple(
        replace(
            judge,
            labels=None
            if judge.labels is None
            else {name: value for name, value in judge.labels.items() if name in names},
            taught=judge.taught & frozenset(names),
        )
        for judge in info.judges
    )
    return replace(info, judges=judges, pairs=())


def sealed_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """``run.json`` as reports may see it: what sealed suites say of single cases is left out."""
    shown = dict(header)
    suites = header.get("suites")
    if isinstance(suites, list):
        shown["suites"] = [_sealed_entry(entry) for entry in suites]
    return shown


def _sealed_entry(entry: Any) -> Any:
    if not isinstance(entry, dict) or not entry.get("sealed"):
        return entry
    judges = [
        {key: value for key, value in judge.items() if key not in ("labels", "taught")}
        for judge in entry.get("judges") or ()
        if isinstance(judge, dict)
    ]
    return {**{key: value for key, value in entry.items() if key != "pairs"}, "judges": judges}


def anonymous(result: TrialResult) -> TrialResult:
    """What a report of pytest may still carry of a sealed trial: its half, status and cost."""
    usage = Usage(cost_usd=result.usage.cost_usd, recorded_usd=result.usage.recorded_usd)
    return TrialResult(
        suite=result.suite,
        case="",
        split=result.split,
        status=result.status,
        trial=result.trial,
        variant=result.variant,
        usage=usage,
    )
