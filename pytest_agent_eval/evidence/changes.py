"""What else is different between two runs that are compared, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_agent_eval.results import TrialResult

__all__ = ["changes"]

_NAMES = 3


def changes(
    new: Iterable[TrialResult],
    old: Iterable[TrialResult],
    new_header: Mapping[str, Any],
    old_header: Mapping[str, Any],
    *,
    suite: str = "",
) -> tuple[str, ...]:
    """Sentences such as ``model: a -> b``, ``agent: what is run or how has changed``, ``2 cases
    changed: x, y``; none where nothing is known to have changed.

    Args:
        new: results of one suite, or of one variant of it, in this run.
        old: the same in the baseline.
        new_header: ``run.json`` of this run.
        old_header: that of the baseline.
        suite: the suite's key, to find its digest in the headers.
    """
    new, old = list(new), list(old)
    found = [
        _moved("commit", _commit(old_header), _commit(new_header)),
        _moved("suite", _digest(old_header, suite), _digest(new_header, suite)),
        _moved("model", _models(old), _models(new)),
        _agent(new, old),
        *_judges(new, old),
        _cases(new, old),
        *_versions(new_header, old_header),
    ]
    return tuple(text for text in found if text)


def _moved(what: str, old: str, new: str) -> str:
    return f"{what}: {old} -> {new}" if old and new and old != new else ""


def _commit(header: Mapping[str, Any]) -> str:
    git = header.get("git")
    if not isinstance(git, Mapping) or not git.get("commit"):
        return ""
    return str(git["commit"])[:12] + (" with changes" if git.get("dirty") else "")


def _digest(header: Mapping[str, Any], suite: str) -> str:
    entries = header.get("suites")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and suite in (entry.get("key"), entry.get("file")):
            return str(entry.get("digest") or "")[:8]
    return ""


def _models(results: Iterable[TrialResult]) -> str:
    return ", ".join(sorted({r.usage.model for r in results if r.usage.model}))


def _agent(new: Sequence[TrialResult], old: Sequence[TrialResult]) -> str:
    digests = [{r.execution_digest for r in part if r.execution_digest} for part in (old, new)]
    if not all(digests) or digests[0] == digests[1]:
        return ""
    return "agent: what is run, or how, has changed (runner, execution, models or their files)"


def _judges(new: Sequence[TrialResult], old: Sequence[TrialResult]) -> list[str]:
    before, after = _judge_digests(old), _judge_digests(new)
    changed = [name for name in after if name in before and after[name] != before[name]]
    found = [f"{_counted(changed, 'judge')} changed: {_some(changed)}"] if changed else []
    for names, where in (
        ([name for name in after if name not in before], "only in this run"),
        ([name for name in before if name not in after], "only in the baseline"),
    ):
        if names:
            found.append(f"{_counted(names, 'judge')} {where}: {_some(names)}")
    return found


def _judge_digests(results: Iterable[TrialResult]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for result in results:
        for verdict in result.verdicts:
            digests = found.setdefault(verdict.judge, set())
            if verdict.digest:
                digests.add(verdict.digest)
    return found


def _cases(new: Sequence[TrialResult], old: Sequence[TrialResult]) -> str:
    before = {result.case: result.case_digest for result in old}
    names = dict.fromkeys(
        result.case
        for result in new
        if result.case_digest
        and before.get(result.case)
        and before[result.case] != result.case_digest
    )
    return f"{_counted(names, 'case')} changed: {_some([*names])}" if names else ""


def _versions(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    before, after = old.get("versions"), new.get("versions")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return []
    return [
        text
        for name in after
        if (text := _moved(str(name), str(before.get(name) or ""), str(after[name] or "")))
    ]


def _counted(names: Sequence[str] | Mapping[str, None], noun: str) -> str:
    return f"{len(names)} {noun}" + ("" if len(names) == 1 else "s")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more
